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
	"github.com/tickflake/tickflake/snowflake"
)

// stepped stands before the clock of the database, and a call of it can be made to last.
const stepped = `
CREATE SCHEMA fake;
CREATE TABLE fake.clock (shift interval, pause float);
INSERT INTO fake.clock VALUES ('0', 0);
CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT pause > 0 FROM fake.clock) THEN PERFORM pg_sleep(pause) FROM fake.clock; END IF;
  RETURN (SELECT pg_catalog.clock_timestamp() + shift FROM fake.clock);
END $$;
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
// session ascend.
func TestDefault(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, "41/4/3")
	const sessions, rows = 50, 40
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

// TestDefaultCancelled cancels a call that has the lock: the next one, of the same transaction or another session, has
// it at once. A transaction that goes on does not hold it.
func TestDefaultCancelled(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, "sonyflake")
	a, b, c := d.connect(), d.connect(), d.connect()
	d.exec(c, "UPDATE fake.clock SET pause = 1000")
	failed := make(chan error, 1)
	go func() { failed <- a.QueryRow(context.Background(), "SELECT tickflake_next()").Scan(new(int64)) }()
	const sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
	require.Eventually(t, func() bool { return d.one(c, sleeps) > 0 }, time.Minute, time.Millisecond)
	d.exec(b, "SET lock_timeout = '10ms'")
	_, err := b.Exec(t.Context(), "SELECT tickflake_next()")
	require.ErrorContains(t, err, "lock timeout", "it has the lock")
	d.exec(c, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
	require.ErrorContains(t, <-failed, "canceling statement due to user request")
	d.exec(c, "UPDATE fake.clock SET pause = 0")
	d.exec(a, "BEGIN")
	before := d.one(a, "SELECT tickflake_next()")
	decoded, err := snowflake.Sonyflake().Decode(snowflake.ID(before))
	require.NoError(t, err)
	assert.EqualValues(t, 5, decoded.Node)
	assert.WithinDuration(t, time.Now(), decoded.Time, time.Minute)
	assert.Less(t, before, d.one(b, "SELECT tickflake_next()"))
	d.exec(c, "UPDATE fake.clock SET shift = '-1h'")
	now := d.one(b, "SELECT tickflake_next()")
	assert.Less(t, before, now)
	d.exec(a, "ROLLBACK")
	assert.Less(t, now, d.one(a, "SELECT tickflake_next()"))
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
