package sequences_test

import (
	"context"
	"database/sql"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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

// transaction executes statements, and commits or rolls back.
func transaction(ctx context.Context, db *sql.DB, commit bool, statements string) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, statements); err != nil || !commit {
		return err
	}
	return tx.Commit()
}

// Transactions of many connections, of which some are rolled back, leave no gap.
func TestNoGap(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			ctx, db := t.Context(), exampletest.Open(t, servers.For(t, engine.kind), engine.parameters)
			schema, err := os.ReadFile("sql/" + engine.name + "/schema.sql")
			require.NoError(t, err)
			_, err = db.ExecContext(ctx, string(schema))
			require.NoError(t, err)
			insert, err := os.ReadFile("sql/" + engine.name + "/insert.sql")
			require.NoError(t, err)
			group, bounded := errgroup.WithContext(ctx)
			for i := range 8 * 12 {
				group.Go(func() error { // the number comes last
					return transaction(bounded, db, i%3 != 0, "SELECT count(*) FROM invoices;"+string(insert))
				})
			}
			require.NoError(t, group.Wait())
			var count, first, last int
			require.NoError(t, db.QueryRow("SELECT count(*), min(number), max(number) FROM invoices").Scan(&count, &first, &last))
			assert.Equal(t, []int{64, 1, 64}, []int{count, first, last})
		})
	}
}
