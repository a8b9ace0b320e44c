package databases_test

import (
	"database/sql"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/snowflake"
)

// dialects are the databases, with the table of the page.
var dialects = []struct {
	name       string
	kind       servers.Kind
	parameters string // of the driver
	table      string
	zone       string // after an instant in UTC
}{
	{"postgres", servers.PostgreSQL, "", "CREATE TABLE orders (id bigint PRIMARY KEY) PARTITION BY RANGE (id)", "+00"},
	{"mysql", servers.MariaDB, "&multiStatements=true&parseTime=true", "CREATE TABLE orders (id BIGINT PRIMARY KEY)", ""},
}

func TestMain(m *testing.M) { fleet.Main(m) }

// print returns what the command prints.
func print(t testing.TB, args ...string) string {
	t.Helper()
	program, err := fleet.Build("./cmd/tickflake", false)
	require.NoError(t, err)
	out, err := exec.Command(program, append([]string{"layout", "sql"}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// The functions agree with the library for the first and the last ID of each layout, for those of a
// day, and beside them; an ID that the layout cannot have is NULL.
func TestFunctions(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			db := exampletest.Open(t, servers.For(t, d.kind), d.parameters)
			for _, spec := range []string{"tickflake", "twitter", "sonyflake", "javascript", "baidu", "time=41,shard=13,sequence=9,tick=7ms,epoch=1999-12-31T23:59:59.999999Z"} {
				l, err := snowflake.ParseLayout(spec)
				require.NoError(t, err)
				_, err = db.Exec(print(t, spec, "--dialect", d.name))
				require.NoError(t, err, spec)
				last := l.End().Add(-1)
				for _, at := range []time.Time{l.Epoch, l.Epoch.Add(l.Tick), exampletest.Day, exampletest.Day.Add(-time.Microsecond), last} {
					if at.Before(l.Epoch) || at.After(last) {
						continue
					}
					low, err := l.Min(at)
					require.NoError(t, err)
					high, err := l.Max(at)
					require.NoError(t, err)
					for _, id := range []snowflake.ID{low, high} {
						want, err := l.Decode(id)
						require.NoError(t, err)
						var began time.Time
						var node, sequence int64
						require.NoError(t, db.QueryRow(fill("SELECT tickflake_time(?), tickflake_node(?), tickflake_sequence(?)", id)).Scan(&began, &node, &sequence))
						assert.Equal(t, []any{want.Time, want.Node, want.Sequence}, []any{began.UTC(), node, sequence}, "%s %d", spec, id)
						for part, number := range want.Parts {
							var got int64
							require.NoError(t, db.QueryRow(fill("SELECT tickflake_"+part+"(?)", id)).Scan(&got))
							assert.Equal(t, number, got, "%s %d %s", spec, id, part)
						}
					}
					assert.Equal(t, int64(low), minID(t, db, at), "%s %s", spec, at)
				}
				largest, err := l.Max(last)
				require.NoError(t, err)
				for _, foreign := range []snowflake.ID{-1, largest + 1} { // above 63 bits there is only a negative number
					var time, node any
					require.NoError(t, db.QueryRow(fill("SELECT tickflake_time(?), tickflake_node(?)", foreign)).Scan(&time, &node))
					assert.Equal(t, []any{nil, nil}, []any{time, node}, "%s %d", spec, foreign)
				}
			}
		})
	}
}

func fill(query string, id snowflake.ID) string {
	return strings.ReplaceAll(query, "?", id.String())
}

func minID(t *testing.T, db *sql.DB, at time.Time) (id int64) {
	t.Helper()
	text := at.UTC().Format("2006-01-02 15:04:05.000000")
	require.NoError(t, db.QueryRow("SELECT tickflake_min_id('"+text+"')").Scan(&id))
	return id
}

// The statements of the page run: they make a table by month, and a query by day has the rows of the day.
func TestMonths(t *testing.T) {
	t.Parallel()
	inside, outside := exampletest.Around(t, exampletest.Day)
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			db := exampletest.Open(t, servers.For(t, d.kind), d.parameters)
			for _, statement := range []string{d.table, print(t, "--dialect", d.name, "--partitions", "orders", "--from", "2026-01", "--months", "6"),
				fmt.Sprintf("INSERT INTO orders VALUES (%d), (%d), (%d), (%d)", inside[0], inside[1], outside[0], outside[1])} {
				_, err := db.Exec(statement)
				require.NoError(t, err)
			}
			query := strings.ReplaceAll("SELECT id FROM orders WHERE id >= tickflake_min_id('2026-03-14+00') AND id < tickflake_min_id('2026-03-15+00') ORDER BY id", "+00", d.zone)
			if d.kind == servers.PostgreSQL { // it reads the partition of the month alone, by its primary key
				var plan string
				require.NoError(t, db.QueryRow("EXPLAIN (FORMAT JSON) "+query).Scan(&plan))
				assert.Contains(t, plan, "orders_2026_03_pkey")
				assert.NotContains(t, plan, "orders_2026_04")
			}
			rows, err := db.Query(query)
			require.NoError(t, err)
			defer rows.Close()
			var got []snowflake.ID
			for rows.Next() {
				var id snowflake.ID
				require.NoError(t, rows.Scan(&id))
				got = append(got, id)
			}
			require.NoError(t, rows.Err())
			assert.Equal(t, inside, got)
		})
	}
}
