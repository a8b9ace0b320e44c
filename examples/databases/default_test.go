package databases_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
)

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
}

func newDatabase(t *testing.T, layout string) *database {
	d := &database{t, servers.For(t, servers.PostgreSQL)}
	d.exec(d.connect(), stepped+print(t, layout, "--node", "5")+"CREATE TABLE public.rows (id bigint NOT NULL DEFAULT tickflake_next(), session int, n int);")
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

// TestDefault has 50 sessions that insert rows at once, roll back and are cancelled, while the clock is stepped and
// the server is killed. Ticks are full most of the time. No committed row has the ID of another, and those of a
// session ascend. A call that is cancelled, and a transaction that stays open, keep nobody from the next ID.
func TestDefault(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, "41/4/3")
	const sessions, rows = 50, 40
	long := d.connect()
	d.exec(long, "BEGIN")
	d.one(long, "SELECT tickflake_next()")
	var group sync.WaitGroup
	var inserted atomic.Int64
	for session := range sessions {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(session), 0))
			c := d.connect()
			for n := range rows {
				ctx, cancel := context.WithCancel(t.Context())
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
		require.Eventually(t, func() bool { return inserted.Load() >= int64(i+1)*sessions*rows/10 }, time.Minute, time.Millisecond)
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

// BenchmarkDefault compares inserts of one row over a connection, whose default is tickflake_next() or nextval() of a
// sequence, by turns, also where a commit does not wait for the disk; and calls the function alone within the server.
func BenchmarkDefault(b *testing.B) {
	db := exampletest.Open(b, servers.For(b, servers.PostgreSQL), "")
	db.SetMaxOpenConns(1)
	exec := func(text string) float64 {
		began := time.Now()
		_, err := db.Exec(text)
		require.NoError(b, err)
		return float64(time.Since(began).Nanoseconds())
	}
	exec(print(b, "tickflake", "--node", "5") + `
CREATE SEQUENCE plain;
CREATE TABLE counted (id BIGINT PRIMARY KEY DEFAULT nextval('plain'), customer TEXT);
CREATE TABLE parcels (id BIGINT PRIMARY KEY DEFAULT tickflake_next(), customer TEXT);`)
	for b.Loop() {
		for _, commit := range []string{"on", "off"} {
			exec("SET synchronous_commit = " + commit)
			ratios := make([]float64, 501)
			for i := range ratios {
				ratios[i] = 1 / exec("INSERT INTO counted (customer) VALUES ('ada')") * exec("INSERT INTO parcels (customer) VALUES ('ada')")
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[250], "insert/nextval,commit="+commit) // the median
		}
		b.ReportMetric(exec("SELECT count(tickflake_next()) FROM generate_series(1, 20000)")/20000, "ns/tickflake_next")
	}
}
