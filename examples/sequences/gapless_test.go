package sequences_test

import (
	"context"
	"database/sql"
	"os"
	"strings"
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
	name   string
	kind   servers.Kind
	noWait string // makes statements of a connection fail with this error instead of wait for a lock
	locked string
}{
	{"postgres", servers.PostgreSQL, "SET lock_timeout = '1ms'", "lock timeout"},
	{"mariadb", servers.MariaDB, "SET innodb_lock_wait_timeout = 0", "Lock wait timeout"},
}

// statements returns those of a file in the folder sql.
func statements(t *testing.T, engine, file string) []string {
	t.Helper()
	text, err := os.ReadFile("sql/" + engine + "/" + file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), ";\n")
}

func execute(ctx context.Context, on interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statements ...string) error {
	for _, statement := range statements {
		if _, err := on.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// transaction executes statements, and commits or rolls back.
func transaction(ctx context.Context, db *sql.DB, commit bool, statements ...string) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := execute(ctx, tx, statements...); err != nil || !commit {
		return err
	}
	return tx.Commit()
}

// Transactions of many connections, of which some are rolled back, leave no gap. A transaction
// that has a number keeps all others from theirs until it ends.
func TestNoGap(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			db := exampletest.Open(t, servers.For(t, engine.kind), "")
			require.NoError(t, execute(t.Context(), db, statements(t, engine.name, "schema.sql")...))
			insert := statements(t, engine.name, "insert.sql")
			invoice := append([]string{"SELECT count(*) FROM invoices"}, insert...) // the number comes last
			group, ctx := errgroup.WithContext(t.Context())
			for i := range 8 * 12 {
				group.Go(func() error { return transaction(ctx, db, i%3 != 0, invoice...) })
			}
			require.NoError(t, group.Wait())
			var count, first, last int
			require.NoError(t, db.QueryRow("SELECT count(*), min(number), max(number) FROM invoices").Scan(&count, &first, &last))
			assert.Equal(t, []int{64, 1, 64}, []int{count, first, last})

			open, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = open.Rollback() }()
			require.NoError(t, execute(t.Context(), open, insert...))
			other, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer func() { _ = other.Close() }()
			require.ErrorContains(t, execute(t.Context(), other, append([]string{engine.noWait}, insert...)...), engine.locked)
			require.NoError(t, open.Rollback())
			require.NoError(t, execute(t.Context(), other, insert...))
			require.NoError(t, db.QueryRow("SELECT max(number) FROM invoices").Scan(&count))
			assert.Equal(t, last+1, count, "a number that was rolled back is given out again")
		})
	}
}
