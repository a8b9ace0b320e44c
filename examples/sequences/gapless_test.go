package sequences_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
)

// engines has the databases, by the names of their folders.
var engines = []struct {
	name     string
	open     func(testing.TB) *sql.DB
	locked   func(error) bool // that a statement did not get its lock
	noWait   string           // makes statements of a connection fail instead of wait for a lock
	database string           // the same without a counter row, for the benchmark
}{
	{
		name: "postgres",
		open: func(t testing.TB) *sql.DB { return exampletest.Open(t, "pgx", exampletest.PostgreSQL(t)) },
		locked: func(err error) bool {
			var refused *pgconn.PgError
			return errors.As(err, &refused) && refused.Code == "55P03"
		},
		noWait:   "SET lock_timeout = '1ms'",
		database: "CREATE TABLE counted (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer text NOT NULL)",
	},
	{
		name: "mariadb",
		open: func(t testing.TB) *sql.DB { return exampletest.Open(t, "mysql", exampletest.MariaDB(t)) },
		locked: func(err error) bool {
			var refused *mysql.MySQLError
			return errors.As(err, &refused) && refused.Number == 1205
		},
		noWait:   "SET innodb_lock_wait_timeout = 0",
		database: "CREATE TABLE counted (number BIGINT AUTO_INCREMENT PRIMARY KEY, customer VARCHAR(40) NOT NULL)",
	},
}

// statements returns those of a file in the folder sql.
func statements(t testing.TB, engine, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("sql/" + engine + "/" + file)
	require.NoError(t, err)
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if strings.TrimSpace(statement) != "" {
			all = append(all, statement)
		}
	}
	return all
}

type execer interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

func execute(ctx context.Context, on execer, statements []string) error {
	for _, statement := range statements {
		if _, err := on.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// transaction reads, inserts an invoice, and commits or rolls back.
func transaction(ctx context.Context, db *sql.DB, insert []string, commit bool) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var count int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM invoices").Scan(&count); err != nil {
		return err
	}
	if err := execute(ctx, tx, insert); err != nil || !commit {
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
			db := engine.open(t)
			require.NoError(t, execute(t.Context(), db, statements(t, engine.name, "schema.sql")))
			insert := statements(t, engine.name, "insert.sql")

			const workers, each = 8, 12
			group, ctx := errgroup.WithContext(t.Context())
			for range workers {
				group.Go(func() error {
					for i := range each {
						if err := transaction(ctx, db, insert, i%3 != 0); err != nil {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, group.Wait())
			var count, first, last int
			require.NoError(t, db.QueryRow("SELECT count(*), min(number), max(number) FROM invoices").Scan(&count, &first, &last))
			assert.Equal(t, []int{workers * each * 2 / 3, 1, workers * each * 2 / 3}, []int{count, first, last})

			open, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = open.Rollback() }()
			require.NoError(t, execute(t.Context(), open, insert))
			other, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer func() { _ = other.Close() }()
			_, err = other.ExecContext(t.Context(), engine.noWait)
			require.NoError(t, err)
			err = execute(t.Context(), other, insert)
			require.True(t, engine.locked(err), "%v", err)
			require.NoError(t, open.Rollback())
			require.NoError(t, execute(t.Context(), other, insert))
			require.NoError(t, db.QueryRow("SELECT max(number) FROM invoices").Scan(&count))
			assert.Equal(t, last+1, count, "a number that was rolled back is given out again")
		})
	}
}

// BenchmarkInvoices inserts by 16 connections at once, a transaction for each row: with the
// database's own numbers, which have gaps, and with a counter row.
func BenchmarkInvoices(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine.name, func(b *testing.B) {
			db := engine.open(b)
			db.SetMaxIdleConns(16)
			require.NoError(b, execute(b.Context(), db, statements(b, engine.name, "schema.sql")))
			_, err := db.Exec(engine.database)
			require.NoError(b, err)
			for _, way := range []struct {
				name   string
				insert []string
			}{
				{"gaps", []string{"INSERT INTO counted (customer) VALUES ('Ada')"}},
				{"gapless", statements(b, engine.name, "insert.sql")},
			} {
				b.Run(way.name, func(b *testing.B) {
					b.SetParallelism(8)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							tx, err := db.BeginTx(b.Context(), nil)
							if err == nil {
								if err = execute(b.Context(), tx, way.insert); err == nil {
									err = tx.Commit()
								}
							}
							if err != nil {
								b.Error(err)
								return
							}
						}
					})
				})
			}
		})
	}
}
