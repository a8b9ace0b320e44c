package sequences_test

import (
	"database/sql"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
)

// engines has the databases, by the names of their folders in sql. A row there has the last number; a transaction
// that needs the next one updates that row, which stays locked until it ends. So a number is given out only if its
// transaction is committed.
var engines = []struct {
	name       string
	kind       servers.Kind
	parameters string // by which the driver takes several statements at once
}{
	{"postgres", servers.PostgreSQL, ""},
	{"mariadb", servers.MariaDB, "&multiStatements=true"},
}

// Two transactions take a number each. One between them is rolled back, and leaves no gap.
func TestNoGap(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			db := exampletest.Open(t, servers.For(t, engine.kind), engine.parameters)
			schema, err := os.ReadFile("sql/" + engine.name + "/schema.sql")
			require.NoError(t, err)
			_, err = db.Exec(string(schema))
			require.NoError(t, err)
			insert, err := os.ReadFile("sql/" + engine.name + "/insert.sql")
			require.NoError(t, err)
			for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback, (*sql.Tx).Commit} {
				tx, err := db.Begin()
				require.NoError(t, err)
				_, err = tx.Exec(string(insert))
				require.NoError(t, err)
				require.NoError(t, end(tx))
			}
			var count, first, last int
			require.NoError(t, db.QueryRow("SELECT count(*), min(number), max(number) FROM invoices").Scan(&count, &first, &last))
			assert.Equal(t, []int{2, 1, 2}, []int{count, first, last})
		})
	}
}
