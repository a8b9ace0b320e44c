package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

func postgreSQL(t *testing.T) *sql.DB { return exampletest.Open(t, "pgx", exampletest.PostgreSQL(t)) }

func mariaDB(t *testing.T) *sql.DB { return exampletest.Open(t, "mysql", exampletest.MariaDB(t)) }

// execute runs a part of a file in the folder sql on one connection, and returns the number that it shows.
// A part begins with its name in a comment, and ends with an empty line.
func execute(t *testing.T, db *sql.DB, file, part string) (shown int64) {
	t.Helper()
	text, err := os.ReadFile("sql/" + file + ".sql")
	require.NoError(t, err)
	_, statements, found := strings.Cut(string(text), "-- "+part+"\n")
	require.True(t, found, "%s: %s", file, part)
	statements, _, _ = strings.Cut(statements, "\n\n")
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	for statement := range strings.SplitSeq(strings.TrimSpace(statements), ";\n") {
		if strings.HasPrefix(statement, "SELECT") {
			err = conn.QueryRowContext(t.Context(), statement).Scan(&shown)
		} else {
			_, err = conn.ExecContext(t.Context(), statement)
		}
		require.NoError(t, err, statement)
	}
	return shown
}

// next returns the next number or ID of a process.
type next func(context.Context) (int64, error)

func byPostgreSQL(db *sql.DB) next {
	return func(ctx context.Context) (id int64, err error) {
		err = db.QueryRowContext(ctx, "INSERT INTO orders (item) VALUES ('ink') RETURNING id").Scan(&id)
		return id, err
	}
}

func byMariaDB(db *sql.DB) next {
	return func(ctx context.Context) (int64, error) {
		result, err := db.ExecContext(ctx, "INSERT INTO orders (item) VALUES ('ink')")
		if err != nil {
			return 0, err
		}
		return result.LastInsertId()
	}
}

// Writers leave the ID to the database, and others give one of a generator, while the guide's statements
// run. No ID comes twice, an old writer fails after the last statement, and the way back leads back.
func TestAutoIncrement(t *testing.T) {
	for _, c := range []struct {
		file   string
		open   func(*testing.T) *sql.DB
		old    func(*sql.DB) next
		always bool // the database refuses the ID of a writer until the part open
	}{
		{"postgres", postgreSQL, byPostgreSQL, true},
		{"serial", postgreSQL, byPostgreSQL, false},
		{"mysql", mariaDB, byMariaDB, false},
	} {
		t.Run(c.file, func(t *testing.T) {
			db := c.open(t)
			old, gen := c.old(db), exampletest.IDs(t)
			count := func() int64 {
				t.Helper()
				id, err := old(t.Context())
				require.NoError(t, err)
				return id
			}
			insert := func() (id snowflake.ID, err error) {
				var twice *mysql.MySQLError
				for {
					if id, err = gen.Next(); err == nil {
						_, err = db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO orders (id, item) VALUES (%d, 'pen')", id))
					}
					// MariaDB counts on from our ID, so the primary key is what keeps the two apart.
					if !errors.As(err, &twice) || twice.Number != 1062 {
						return id, err
					}
				}
			}
			execute(t, db, c.file, "before")
			want := []int64{count()}
			execute(t, db, c.file, "widen")
			if c.always {
				_, err := insert()
				require.ErrorContains(t, err, "non-DEFAULT value")
				execute(t, db, c.file, "open")
			}
			if _, err := old(t.Context()); err != nil {
				require.ErrorContains(t, err, "cached plan must not change result type") // and not again
			}
			for range 2 {
				id, err := insert()
				require.NoError(t, err)
				want = append(want, id.Int64(), count())
			}
			execute(t, db, c.file, "done")
			_, err := old(t.Context())
			require.Error(t, err, "an old writer goes unnoticed")
			execute(t, db, c.file, "back")
			assert.NotContains(t, want, count())
			for _, id := range want {
				var n int
				require.NoError(t, db.QueryRow(fmt.Sprint("SELECT COUNT(*) FROM orders WHERE id = ", id)).Scan(&n))
				assert.Equal(t, 1, n, id)
			}
		})
	}
}

// counter is an old system that counts.
type counter struct {
	start   func() next                // an old process
	take    func() sequence.Definition // the numbers that the guide takes
	largest func() int64               // that was given out, or may have been
	end     func()                     // an old process fails from then on
}

// sqlCounter is a counter whose statements are the parts of a file. last is the last number of the range
// that the part take shows, less that number; the part largest shows as much too.
func sqlCounter(t *testing.T, db *sql.DB, file, end string, last int64, start func() next) counter {
	execute(t, db, file, "before")
	return counter{
		start: start,
		take: func() sequence.Definition {
			taken := execute(t, db, file, "take") + last
			return sequence.Definition{Start: taken - 999_999, Max: taken}
		},
		largest: func() int64 { return execute(t, db, file, "largest") + last },
		end:     func() { execute(t, db, file, end) },
	}
}

// segments gives out the numbers of segments that claim returns, as Leaf and Tinyid do.
func segments(db *sql.DB, by int64, claim func(context.Context, *sql.Tx) (next, last int64, err error)) func() next {
	return func() next {
		next, last := int64(1), int64(0)
		return func(ctx context.Context) (int64, error) {
			for next > last {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return 0, err
				}
				next, last, err = claim(ctx, tx)
				if err = errors.Join(err, tx.Commit()); err != nil {
					return 0, err
				}
			}
			next += by
			return next - by, nil
		}
	}
}

func leaf(ctx context.Context, tx *sql.Tx) (next, last int64, err error) {
	if _, err = tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'orders'"); err != nil {
		return 0, 0, err
	}
	err = tx.QueryRowContext(ctx, "SELECT max_id - step, max_id - 1 FROM leaf_alloc WHERE biz_tag = 'orders'").Scan(&next, &last)
	return next, last, err
}

// tinyid returns no numbers if another server was faster. Its row has a delta and a remainder.
func tinyid(t *testing.T, delta, remainder int64) counter {
	db := mariaDB(t)
	claim := func(ctx context.Context, tx *sql.Tx) (next, last int64, err error) {
		var step, version int64
		row := tx.QueryRowContext(ctx, "SELECT max_id, step, version FROM tiny_id_info WHERE biz_type = 'orders'")
		if err = row.Scan(&last, &step, &version); err != nil {
			return 0, 0, err
		}
		result, err := tx.ExecContext(ctx, "UPDATE tiny_id_info SET max_id = ?, version = version + 1 "+
			"WHERE biz_type = 'orders' AND version = ?", last+step, version)
		if err != nil {
			return 0, 0, err
		}
		if changed, err := result.RowsAffected(); err != nil || changed == 0 {
			return 1, 0, err
		}
		for next = last + 1; next%delta != remainder; next++ {
		}
		return next, last + step, nil
	}
	counter := sqlCounter(t, db, "tinyid", "end", 0, segments(db, delta, claim))
	take := counter.take
	counter.take = func() sequence.Definition {
		definition := take()
		for definition.Stride = sequence.Every(delta, 0); definition.Start%delta != remainder; definition.Start++ {
		}
		return definition
	}
	return counter
}

var counters = map[string]func(*testing.T) counter{
	"PostgreSQL": func(t *testing.T) counter {
		db := postgreSQL(t)
		return sqlCounter(t, db, "postgres", "done", 0, func() next { return byPostgreSQL(db) })
	},
	"MariaDB": func(t *testing.T) counter {
		db := mariaDB(t)
		counter := sqlCounter(t, db, "mysql", "done", 0, func() next { return byMariaDB(db) })
		counter.end = func() { execute(t, db, "mysql", "widen"); execute(t, db, "mysql", "done") }
		counter.take = func() sequence.Definition {
			require.Less(t, execute(t, db, "mysql", "take"), int64(10_000))
			for _, statement := range []string{
				"INSERT INTO orders (id, item) VALUES (1009999, 'pen')", "DELETE FROM orders WHERE id = 1009999",
			} {
				_, err := db.Exec(statement)
				require.NoError(t, err) // and the counter of the table stays where it is
			}
			return sequence.Definition{Start: 10_000, Max: 1_009_999}
		}
		return counter
	},
	"Redis": func(t *testing.T) counter {
		client, err := servers.For(t, servers.Redis).Redis()
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		answer := func(n int64, err error) int64 { require.NoError(t, err); return n }
		return counter{
			start: func() next {
				return func(ctx context.Context) (int64, error) { return client.Incr(ctx, "orders").Result() }
			},
			take: func() sequence.Definition {
				last := answer(client.IncrBy(t.Context(), "orders", 1_000_000).Result())
				return sequence.Definition{Start: last - 999_999, Max: last}
			},
			largest: func() int64 { return answer(client.Get(t.Context(), "orders").Int64()) },
			end:     func() { require.NoError(t, client.Set(t.Context(), "orders", "moved to a sequence", 0).Err()) },
		}
	},
	"Leaf": func(t *testing.T) counter {
		db := mariaDB(t)
		return sqlCounter(t, db, "leaf", "end", -1, segments(db, 1, leaf))
	},
	"Tinyid":                     func(t *testing.T) counter { return tinyid(t, 1, 0) },
	"Tinyid, one of two servers": func(t *testing.T) counter { return tinyid(t, 2, 1) },
}

// Two old processes give out numbers while the guide's steps lead to a sequence: no number comes twice, and
// those of the sequence are the range. At the end the sequence counts on above all, and old processes fail.
func TestCounted(t *testing.T) {
	for name, open := range counters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, ctx := open(t), t.Context()
			store, err := stores.Open(ctx, t.TempDir())
			require.NoError(t, err)
			defer func() { _ = store.Close() }()
			var mu sync.Mutex
			seen := map[int64]string{}
			issue := func(by string, n int, next next) error {
				for range n {
					number, err := next(ctx)
					mu.Lock()
					first, twice := seen[number]
					seen[number] = by
					mu.Unlock()
					if err != nil || twice {
						return fmt.Errorf("%s: %d, before by %q: %w", by, number, first, err)
					}
				}
				return nil
			}
			processes := []next{old.start(), old.start()}
			for _, next := range processes {
				require.NoError(t, issue("old", 50, next))
			}
			var group errgroup.Group
			for _, next := range processes {
				group.Go(func() error { return issue("old", 150, next) })
			}
			definition := old.take()
			require.NoError(t, sequence.Create(ctx, store, "orders", definition))
			orders, err := sequence.Open(ctx, store, "orders")
			require.NoError(t, err)
			defer func() { require.NoError(t, orders.Close()) }()
			group.Go(func() error { return issue("new", 1000, orders.Next) })
			require.NoError(t, group.Wait())

			largest := old.largest()
			for number, by := range seen {
				mine := number >= definition.Start && number <= definition.Max
				require.Equal(t, by == "new", mine, "%d of %s; the new numbers are %s", number, by, definition)
				require.LessOrEqual(t, number, largest, "a counter that the guide reads too low")
			}
			_, after, err := sequence.Set(ctx, store, "orders", sequence.Change{Next: largest + 1, Max: math.MaxInt64})
			require.NoError(t, err)
			for number := int64(0); number <= largest; { // after the numbers that were reserved before
				require.NoError(t, issue("new", 1, func(ctx context.Context) (int64, error) {
					number, err = orders.Next(ctx)
					return number, err
				}))
				require.True(t, number <= definition.Max || number == after.Next, "%d", number)
			}
			old.end()
			_, err = old.start()(ctx)
			require.Error(t, err, "a forgotten process")
		})
	}
}
