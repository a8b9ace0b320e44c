package databases_test

import (
	"database/sql"
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

// dialects are the databases, with how each explains a query and what the explanation of one by
// day says: that one partition is read, by its primary key.
var dialects = []struct {
	name       string
	kind       servers.Kind
	parameters string // of the driver
	table      string
	zone       string // after an instant in UTC
	explain    string
	want       []string
}{
	{
		"postgres", servers.PostgreSQL, "",
		"CREATE TABLE orders (id bigint PRIMARY KEY) PARTITION BY RANGE (id)", "+00",
		"EXPLAIN (COSTS OFF) ", []string{"orders_2026_03_pkey", "Index Cond"},
	},
	{
		"mysql", servers.MariaDB, "&multiStatements=true&parseTime=true",
		"CREATE TABLE orders (id BIGINT PRIMARY KEY)", "",
		"EXPLAIN FORMAT=JSON ", []string{`"partitions": ["p2026_03"]`, `"range"`, `"key": "PRIMARY"`},
	},
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
				assert.Zero(t, minID(t, db, l.Epoch.Add(-time.Hour)), spec)
				largest, err := l.Max(last)
				require.NoError(t, err)
				if last.Year() < 9999 {
					assert.GreaterOrEqual(t, minID(t, db, l.End()), int64(largest), spec)
				}
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

// A table by month keeps each row in the partition of its month, and a query by day reads one
// partition by the primary key.
func TestMonths(t *testing.T) {
	t.Parallel()
	inside, outside := exampletest.Around(t, exampletest.Day)
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			byDay := strings.ReplaceAll("SELECT id FROM orders WHERE id >= tickflake_min_id('2026-03-14+00') AND id < tickflake_min_id('2026-03-15+00') ORDER BY id", "+00", d.zone)
			db := exampletest.Open(t, servers.For(t, d.kind), d.parameters)
			_, err := db.Exec(d.table)
			require.NoError(t, err)
			_, err = db.Exec(print(t, "--dialect", d.name, "--partitions", "orders", "--from", "2026-01", "--months", "6"))
			require.NoError(t, err)
			var rows []string
			for _, id := range append(inside, outside...) {
				rows = append(rows, "("+id.String()+")")
			}
			_, err = db.Exec("INSERT INTO orders VALUES " + strings.Join(rows, ","))
			require.NoError(t, err)
			var got []snowflake.ID
			for _, row := range all(t, db, byDay) {
				id, err := snowflake.Parse(row)
				require.NoError(t, err)
				got = append(got, id)
			}
			assert.Equal(t, inside, got)
			plan := strings.Join(all(t, db, d.explain+byDay), "\n")
			for _, want := range d.want {
				assert.Contains(t, plan, want)
			}
			assert.NotContains(t, plan, "2026_02")
			if d.name == "postgres" {
				_, err = db.Exec("CREATE INDEX ON orders (tickflake_time(id))")
				assert.NoError(t, err, "an immutable function is indexed")
			}
		})
	}
}

// all returns the rows of a query of one column, as texts.
func all(t *testing.T, db *sql.DB, query string) (texts []string) {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		texts = append(texts, text)
	}
	require.NoError(t, rows.Err())
	return texts
}
