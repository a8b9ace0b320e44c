//go:build unix

package engines

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/snowflake"
)

// layoutSQL returns what "tickflake layout sql" prints.
func layoutSQL(t testing.TB, args ...string) string {
	t.Helper()
	program, err := program.Build("./cmd/tickflake", false)
	require.NoError(t, err)
	out, err := exec.Command(program, append([]string{"layout", "sql"}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// The functions agree with the library for the first and the last ID of each layout, for those of a day, and beside them.
// An ID that the layout cannot have is NULL. The partitions take rows by month, and a query by day has the rows of the day.
func TestLayoutSQL(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short builds no program")
	}
	day := time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
	const months = `CREATE TABLE orders (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE orders_2026_03 PARTITION OF orders FOR VALUES FROM (tickflake_min_id('2026-03-01+00')) TO (tickflake_min_id('2026-04-01+00'));
CREATE TABLE orders_2026_04 PARTITION OF orders FOR VALUES FROM (tickflake_min_id('2026-04-01+00')) TO (tickflake_min_id('2026-05-01+00'));`
	for _, d := range []struct{ dialect, driver, table, zone string }{ // the zone stands after an instant in UTC
		{"postgres", "pgx", months, "+00"},
		{"mysql", "mysql", "CREATE TABLE orders (id BIGINT PRIMARY KEY)", ""},
	} {
		t.Run(d.dialect, func(t *testing.T) {
			t.Parallel()
			kind, dsn := servers.PostgreSQL, (*servers.Server).DSN
			if d.dialect == "mysql" {
				kind = servers.MariaDB
			} else {
				dsn = func(s *servers.Server) string { return s.URL }
			}
			db, err := sql.Open(d.driver, dsn(servers.For(t, kind))+map[string]string{"mysql": "&multiStatements=true"}[d.dialect])
			require.NoError(t, err)
			defer db.Close()
			one := func(query string, id snowflake.ID, into ...any) {
				t.Helper()
				require.NoError(t, db.QueryRow(strings.ReplaceAll(query, "?", id.String())).Scan(into...), query)
			}
			for _, spec := range []string{"twitter", "sonyflake", "javascript", "baidu", "time=41,shard=13,sequence=9,tick=7ms,epoch=1999-12-31T23:59:59.999999Z", "tickflake"} {
				l, err := snowflake.ParseLayout(spec)
				require.NoError(t, err)
				Exec(t, db, layoutSQL(t, spec, "--dialect", d.dialect))
				last := l.End().Add(-1)
				for _, at := range []time.Time{l.Epoch, l.Epoch.Add(l.Tick), day, day.Add(-time.Microsecond), last} {
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
						one("SELECT tickflake_time(?), tickflake_node(?), tickflake_sequence(?)", id, &began, &node, &sequence)
						assert.Equal(t, []any{want.Time, want.Node, want.Sequence}, []any{began.UTC(), node, sequence}, "%s %d", spec, id)
						for part, number := range want.Parts {
							var got int64
							one("SELECT tickflake_"+part+"(?)", id, &got)
							assert.Equal(t, number, got, "%s %d %s", spec, id, part)
						}
					}
					var least snowflake.ID
					one("SELECT tickflake_min_id('"+at.UTC().Format("2006-01-02 15:04:05.000000")+"')", 0, &least)
					assert.Equal(t, low, least, "%s %s", spec, at)
				}
				largest, err := l.Max(last)
				require.NoError(t, err)
				for _, foreign := range []snowflake.ID{-1, largest + 1} { // above 63 bits there is only a negative number
					var time, node any
					one("SELECT tickflake_time(?), tickflake_node(?)", foreign, &time, &node)
					assert.Equal(t, []any{nil, nil}, []any{time, node}, "%s %d", spec, foreign)
				}
			}

			first, last, err := snowflake.Default().Between(day, day.AddDate(0, 0, 1))
			require.NoError(t, err)
			Exec(t, db, d.table, fmt.Sprintf("INSERT INTO orders VALUES (%d), (%d), (%d), (%d)", first-1, first, last, last+1))
			query := strings.ReplaceAll("SELECT id FROM orders WHERE id >= tickflake_min_id('2026-03-14+00') AND id < tickflake_min_id('2026-03-15+00') ORDER BY id", "+00", d.zone)
			var got [3]snowflake.ID
			one("SELECT count(*), min(id), max(id) FROM ("+query+") AS found", 0, &got[0], &got[1], &got[2])
			assert.Equal(t, [3]snowflake.ID{2, first, last}, got)
			if kind == servers.PostgreSQL { // it reads the partition of the month alone, by its primary key
				var plan string
				one("EXPLAIN (FORMAT JSON) "+query, 0, &plan)
				assert.Contains(t, plan, "orders_2026_03_pkey")
				assert.NotContains(t, plan, "orders_2026_04")
			}
		})
	}
}

// stepped stands before the clock of the database.
const stepped = `
CREATE SCHEMA fake;
CREATE TABLE fake.clock (shift interval);
INSERT INTO fake.clock VALUES ('0');
CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() + shift FROM fake.clock $$;
SET search_path = public, fake, pg_catalog;
`

// database is a PostgreSQL whose tables have tickflake_next() as their default.
type database struct {
	*testing.T
	server *servers.Server
	ctx    context.Context
	end    func() // of ctx
}

func (d *database) Context() context.Context { return d.ctx }

func newDatabase(t *testing.T, layout string) *database {
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	d := &database{t, servers.For(t, servers.PostgreSQL), ctx, end}
	d.exec(d.connect(), stepped+layoutSQL(t, layout, "--node", "5")+"CREATE TABLE public.rows (id bigint NOT NULL DEFAULT tickflake_next(), session int, n int);")
	return d
}

// connect returns a session of its own, as soon as there is a server.
func (d *database) connect() *pgx.Conn {
	for {
		c, err := pgx.Connect(d.Context(), d.server.URL)
		if err == nil {
			d.Cleanup(func() { _ = c.Close(context.Background()) })
			return c
		}
		require.NoError(d, d.Context().Err())
	}
}

func (d *database) exec(c *pgx.Conn, text string, args ...any) {
	_, err := c.Exec(d.Context(), text, args...)
	require.NoError(d, err)
}

// one returns the number that a query has.
func (d *database) one(c *pgx.Conn, query string) (n int64) {
	require.NoError(d, c.QueryRow(d.Context(), query).Scan(&n), query)
	return n
}

// TestTickflakeNext has 50 sessions that insert rows at once, roll back and are cancelled, while the clock is stepped and
// the server is killed. Ticks are full most of the time. No committed row has the ID of another, and those of a
// session ascend. A call that is cancelled, and a transaction that stays open, keep nobody from the next ID.
func TestTickflakeNext(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short builds no program")
	}
	d := newDatabase(t, "41/4/3")
	const sessions, rows = 50, 40
	long := d.connect()
	d.exec(long, "BEGIN")
	d.one(long, "SELECT tickflake_next()")
	var group sync.WaitGroup
	defer func() { // if it fails: they use connections that the test closes at its end
		d.end()
		group.Wait()
	}()
	var inserted atomic.Int64
	for session := range sessions {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(session), 0))
			c := d.connect()
			for n := range rows {
				ctx, cancel := context.WithCancel(d.Context())
				what := rng.IntN(8)
				if what == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(int(4*time.Millisecond))))
				}
				_ = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { // it may fail in any way
					_, err := tx.Exec(ctx, "INSERT INTO rows (session, n) SELECT $1, $2 FROM generate_series(1, $3)", session, n, 1+rng.IntN(60))
					if what == 1 {
						err = errors.New("rolled back")
					}
					if err == nil {
						inserted.Add(1)
					}
					return err
				})
				cancel()
				if c.IsClosed() { // by the kill, or since a call was cancelled
					c = d.connect()
				}
			}
		})
	}
	c := d.connect()
	for i, shift := range []string{"-1s", "-1h", "10ms", "-10ms", "0s"} {
		require.Eventually(t, func() bool { return inserted.Load() >= int64(i+1)*sessions*rows/10 }, Patience, time.Millisecond)
		d.exec(c, "UPDATE fake.clock SET shift = $1::interval", shift)
		if i == 2 {
			require.NoError(t, d.server.Kill())
			require.NoError(t, d.server.Start())
			c = d.connect()
		}
	}
	group.Wait()
	count := d.one(c, "SELECT count(*) FROM rows")
	t.Logf("%d rows of %d sessions", count, d.one(c, "SELECT count(DISTINCT session) FROM rows"))
	assert.Greater(t, count, int64(sessions*rows/2))
	assert.Equal(t, count, d.one(c, "SELECT count(DISTINCT id) FROM rows"))
	assert.Zero(t, d.one(c, "SELECT count(*) FROM (SELECT n, min(id) AS first, lag(max(id)) OVER (PARTITION BY session ORDER BY n) AS before FROM rows GROUP BY session, n) AS by WHERE first <= before"))
	assert.Equal(t, count, d.one(c, "SELECT count(*) FROM rows WHERE tickflake_node(id) = 5"))
}
