package migrate_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// system is an old system. A file has its statements, in parts.
type system struct {
	db   *sql.DB
	file string
}

func connect(t *testing.T, file string) system {
	kind := map[string]servers.Kind{"postgres": servers.PostgreSQL, "serial": servers.PostgreSQL}[file]
	return system{exampletest.Open(t, servers.For(t, cmp.Or(kind, servers.MariaDB)), ""), file}
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

// Each statement of the guide runs: writers leave the ID to the database, and then give one of a generator; an old
// writer fails after the last statement, and the way back leads back.
func TestAutoIncrement(t *testing.T) {
	for _, file := range []string{"postgres", "serial", "mysql"} {
		t.Run(file, func(t *testing.T) {
			old, gen := connect(t, file), exampletest.IDs(t)
			first := must(t, "before old widen", old.run)
			if file == "postgres" { // which refuses the ID of a writer until then
				must(t, "open", old.run)
			}
			id, err := gen.Next()
			require.NoError(t, err)
			_, err = old.db.Exec(fmt.Sprintf("INSERT INTO orders (id, item) VALUES (%d, 'pen')", id))
			require.NoError(t, err)
			must(t, "done", old.run)
			_, err = old.run(t.Context(), "old")
			require.Error(t, err, "an old writer goes unnoticed")
			assert.NotContains(t, []int64{first, id.Int64()}, must(t, "back old", old.run))
		})
	}
}

// The steps of the guide run: an old process counts, a range is taken, a sequence counts in it and then on above all,
// and an old process fails. old and take are parts; the numbers of take and largest are too high by beyond.
func TestCounted(t *testing.T) {
	for _, c := range []struct {
		name, file, old, take, end string
		beyond                     int64
		chosen                     sequence.Definition // the range, if it is not that of take
	}{
		{"PostgreSQL", "postgres", "old", "take", "done", 0, sequence.Definition{}},
		{"MariaDB", "mysql", "old", "take new", "widen done", 0, sequence.Definition{Start: 10_000, Max: 1_009_999}},
		{"Redis", "", "old", "take", "end", 0, sequence.Definition{}},
		{"Leaf", "leaf", "old", "take", "end", 1, sequence.Definition{}},
		{"Tinyid", "tinyid", "read claim", "take", "end", 0, sequence.Definition{}},
	} {
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
			last := must(t, c.old, run)
			definition := c.chosen
			if taken := must(t, c.take, run) - c.beyond; definition.Max == 0 {
				definition = sequence.Definition{Start: taken - 999_999, Max: taken}
			}
			require.Greater(t, definition.Start, last)
			store, err := stores.Open(ctx, t.TempDir())
			require.NoError(t, err)
			defer func() { _ = store.Close() }()
			require.NoError(t, sequence.Create(ctx, store, "orders", definition))
			orders, err := sequence.Open(ctx, store, "orders")
			require.NoError(t, err)
			defer func() { require.NoError(t, orders.Close()) }()
			number, err := orders.Next(ctx)
			require.NoError(t, err)
			assert.Equal(t, definition.Start, number)
			last = must(t, c.old, run)
			assert.Greater(t, last, definition.Max, "an old process goes on above the range")
			largest := must(t, "largest", run) - c.beyond
			require.GreaterOrEqual(t, largest, last, "a counter that the guide reads too low")
			_, _, err = sequence.Set(ctx, store, "orders", sequence.Change{Next: largest + 1, Max: math.MaxInt64})
			require.NoError(t, err)
			must(t, c.end, run)
			_, err = run(ctx, c.old)
			require.Error(t, err, "a forgotten process")
		})
	}
}
