package migrate_test

import (
	"cmp"
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
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// system is an old system. A file has its statements, in parts.
type system struct {
	db   *sql.DB
	file string
}

func connect(t *testing.T, file string) system {
	kind := servers.MariaDB
	if file == "postgres" || file == "serial" {
		kind = servers.PostgreSQL
	}
	return system{exampletest.Open(t, servers.For(t, kind), ""), file}
}

// run runs parts of the file on one connection, and returns the last number that they show. A part begins
// with its name in a comment, and ends with an empty line.
func (s system) run(ctx context.Context, parts string) (shown int64, err error) {
	text, err := os.ReadFile("sql/" + s.file + ".sql")
	if err != nil {
		return 0, err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	for part := range strings.FieldsSeq(parts) {
		_, statements, found := strings.Cut(string(text), "-- "+part+"\n")
		if !found {
			return 0, fmt.Errorf("%s.sql has no part %s", s.file, part)
		}
		statements, _, _ = strings.Cut(statements, "\n\n")
		for statement := range strings.SplitSeq(strings.TrimSpace(statements), ";\n") {
			if strings.HasPrefix(statement, "SELECT") || strings.Contains(statement, "RETURNING") {
				err = conn.QueryRowContext(ctx, statement).Scan(&shown)
			} else {
				_, err = conn.ExecContext(ctx, statement)
			}
			if err != nil {
				return 0, fmt.Errorf("%s: %w", statement, err)
			}
		}
	}
	return shown, nil
}

// redis is an old system that counts in Redis.
type redis struct{ *goredis.Client }

func (r redis) run(ctx context.Context, part string) (int64, error) {
	switch part {
	case "old":
		return r.Incr(ctx, "orders").Result()
	case "take":
		return r.IncrBy(ctx, "orders", 1_000_000).Result()
	case "largest":
		return r.Get(ctx, "orders").Int64()
	case "end":
		return 0, r.Set(ctx, "orders", "moved to a sequence", 0).Err()
	}
	return 0, nil // there is nothing to do before
}

// must returns what parts show that do not fail.
func must(t *testing.T, parts string, run func(context.Context, string) (int64, error)) int64 {
	t.Helper()
	shown, err := run(t.Context(), parts)
	require.NoError(t, err)
	return shown
}

// Writers leave the ID to the database, and others give one of a generator, while the guide's statements
// run. No ID comes twice, an old writer fails after the last statement, and the way back leads back.
func TestAutoIncrement(t *testing.T) {
	for file, always := range map[string]bool{ // the database refuses the ID of a writer until the part open
		"postgres": true, "serial": false, "mysql": false,
	} {
		t.Run(file, func(t *testing.T) {
			old, gen := connect(t, file), exampletest.IDs(t)
			insert := func() (id snowflake.ID, err error) {
				var twice *mysql.MySQLError
				for {
					if id, err = gen.Next(); err == nil {
						_, err = old.db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO orders (id, item) VALUES (%d, 'pen')", id))
					}
					// MariaDB counts on from our ID, so the primary key is what keeps the two apart.
					if !errors.As(err, &twice) || twice.Number != 1062 {
						return id, err
					}
				}
			}
			want := []int64{must(t, "before old", old.run)}
			must(t, "widen", old.run)
			if always {
				_, err := insert()
				require.ErrorContains(t, err, "non-DEFAULT value")
				must(t, "open", old.run)
			}
			if _, err := old.run(t.Context(), "old"); err != nil {
				require.ErrorContains(t, err, "cached plan must not change result type") // and not again
			}
			for range 2 {
				id, err := insert()
				require.NoError(t, err)
				want = append(want, id.Int64(), must(t, "old", old.run))
			}
			must(t, "done", old.run)
			_, err := old.run(t.Context(), "old")
			require.Error(t, err, "an old writer goes unnoticed")
			assert.NotContains(t, want, must(t, "back old", old.run))
			for _, id := range want {
				var n int
				require.NoError(t, old.db.QueryRow(fmt.Sprint("SELECT COUNT(*) FROM orders WHERE id = ", id)).Scan(&n))
				assert.Equal(t, 1, n, id)
			}
		})
	}
}

// counters are the old systems that count. A process claims so many numbers by the part old, or by the
// parts that old names, which show the first, or 0 if another process was faster; it gives out those that
// leave the remainder. The parts take and largest show the largest number less last, and after the part
// end old processes fail.
var counters = []struct {
	name, file, old, take, end    string
	claim, last, delta, remainder int64
	chosen                        sequence.Definition // the range, if it is not that of take
}{
	{name: "PostgreSQL", file: "postgres", take: "take", end: "done", claim: 1, delta: 1},
	{name: "MariaDB", file: "mysql", take: "take new", end: "widen done", claim: 1, delta: 1, chosen: sequence.Definition{Start: 10_000, Max: 1_009_999}},
	{name: "Redis", take: "take", end: "end", claim: 1, delta: 1},
	{name: "Leaf", file: "leaf", take: "take", end: "end", claim: 30, last: -1, delta: 1},
	{name: "Tinyid", file: "tinyid", old: "read claim", take: "take", end: "end", claim: 31, delta: 1},
	{name: "Tinyid, one of two servers", file: "tinyid", old: "read claim", take: "take", end: "end", claim: 31, delta: 2, remainder: 1},
}

// Two old processes give out numbers while the guide's steps lead to a sequence: no number comes twice, and
// those of the sequence are the range. At the end the sequence counts on above all, and old processes fail.
func TestCounted(t *testing.T) {
	for _, c := range counters {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			var run func(context.Context, string) (int64, error)
			if c.file != "" {
				run = connect(t, c.file).run
			} else {
				client, err := servers.For(t, servers.Redis).Redis()
				require.NoError(t, err)
				t.Cleanup(func() { _ = client.Close() })
				run = redis{client}.run
			}
			must(t, "before", run)
			process := func() func(context.Context) (int64, error) {
				var claimed []int64
				return func(ctx context.Context) (int64, error) {
					for len(claimed) == 0 {
						first, err := run(ctx, cmp.Or(c.old, "old"))
						if err != nil {
							return 0, err
						}
						for n := first; first > 0 && n < first+c.claim; n++ {
							if n%c.delta == c.remainder {
								claimed = append(claimed, n)
							}
						}
					}
					number := claimed[0]
					claimed = claimed[1:]
					return number, nil
				}
			}
			store, err := stores.Open(ctx, t.TempDir())
			require.NoError(t, err)
			defer func() { _ = store.Close() }()
			var mu sync.Mutex
			seen := map[int64]string{}
			issue := func(by string, n int, next func(context.Context) (int64, error)) error {
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
			var group errgroup.Group
			for range 2 {
				next := process()
				require.NoError(t, issue("old", 50, next))
				group.Go(func() error { return issue("old", 150, next) })
			}
			taken, definition := must(t, c.take, run)+c.last, c.chosen
			if definition.Max == 0 {
				for definition = (sequence.Definition{Start: taken - 999_999, Max: taken}); definition.Start%c.delta != c.remainder; definition.Start++ {
				}
			}
			definition.Stride = sequence.Every(c.delta, 0)
			require.True(t, taken == definition.Max || taken < definition.Start, "the range is not above %d", taken)
			require.NoError(t, sequence.Create(ctx, store, "orders", definition))
			orders, err := sequence.Open(ctx, store, "orders")
			require.NoError(t, err)
			defer func() { require.NoError(t, orders.Close()) }()
			group.Go(func() error { return issue("new", 1000, orders.Next) })
			require.NoError(t, group.Wait())

			if c.file == "tinyid" {
				assert.Zero(t, must(t, "read take claim", run), "a process that has read before claims what was taken")
			}
			largest := must(t, "largest", run) + c.last
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
			must(t, c.end, run)
			_, err = process()(ctx)
			require.Error(t, err, "a forgotten process")
		})
	}
}
