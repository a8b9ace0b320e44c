package client

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/snowflake"
)

// TestPace guards how many IDs a client fetches ahead, and how old they get. Bounds are what calls
// and a perfect guess would cost, and a little more.
func TestPace(t *testing.T) {
	t.Parallel()
	every := func(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
	rarely := func(most time.Duration) func() time.Duration {
		random := rand.New(rand.NewPCG(1, 2))
		return func() time.Duration {
			if random.IntN(100) == 0 {
				return 2 * time.Second
			}
			return time.Duration(random.Int64N(int64(most)))
		}
	}
	for name, tt := range map[string]struct {
		useWithin, delay time.Duration // of the server
		level            float64       // at the beginning
		bursts, burst    int           // IDs are taken in bursts
		batch            bool
		pause            func() time.Duration // between bursts
		waits            uint64               // at most
		requests         uint64               // at most, or 0
		fetched          uint64               // at most, or 0
		oldest           time.Duration        // at most, and IDs of more than half of it if expires is set
		expires          bool
	}{
		"a million per second":       {delay: 2 * time.Millisecond, bursts: 500, burst: 1000, pause: every(time.Millisecond), waits: 500, fetched: 530_000, oldest: 100 * time.Millisecond},
		"one per second":             {bursts: 100, burst: 1, pause: every(time.Second), waits: 100, requests: 100, fetched: 100, oldest: time.Millisecond},
		"ten per second":             {bursts: 200, burst: 1, pause: every(100 * time.Millisecond), waits: 10, requests: 110, fetched: 210, oldest: time.Second},
		"batches of one":             {delay: 3 * time.Millisecond, bursts: 5000, burst: 1, batch: true, pause: every(time.Millisecond), waits: 20, oldest: time.Second},
		"IDs that are true for ever": {useWithin: math.MaxInt64, level: 11, bursts: 10, burst: 1, pause: every(time.Hour), waits: 1, oldest: 12 * time.Hour},

		"late answers":        {delay: 700 * time.Millisecond, bursts: 1000, burst: 1, pause: rarely(250 * time.Millisecond), waits: 1000, oldest: time.Second, expires: true},
		"IDs of a short time": {useWithin: 100 * time.Millisecond, delay: 20 * time.Millisecond, bursts: 1000, burst: 1, pause: rarely(250 * time.Millisecond), waits: 1000, oldest: 100 * time.Millisecond, expires: true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 1, func(t *testing.T, s []*fake) {
				if tt.useWithin != 0 {
					s[0].useWithin = tt.useWithin
				}
				s[0].delay = tt.delay
				c := open(t, s)
				time.Sleep(time.Millisecond) // the first request is not at time 0
				c.level = tt.level
				last, oldest := []snowflake.ID{0}, time.Duration(0)
				for range tt.bursts {
					for range tt.burst {
						id, err := snowflake.ID(0), error(nil)
						if one := make([]snowflake.ID, 1); tt.batch {
							_, err = c.NextN(t.Context(), one)
							id = one[0]
						} else {
							id, err = c.Next(t.Context())
						}
						if err != nil || id <= last[0] {
							t.Fatalf("%d after %d: %v", id, last, err)
						}
						last[0] = id
					}
					d, err := c.Layout().Decode(last[0])
					require.NoError(t, err)
					oldest = max(oldest, time.Since(d.Time))
					time.Sleep(tt.pause())
				}
				stats := c.Stats()
				t.Logf("%+v; the oldest ID was %s old", stats, oldest)
				assert.LessOrEqual(t, stats.Waits, tt.waits)
				assert.LessOrEqual(t, oldest, tt.oldest+layout().Tick)
				if tt.requests != 0 {
					assert.LessOrEqual(t, stats.Requests, tt.requests)
				}
				if tt.fetched != 0 {
					assert.LessOrEqual(t, stats.Fetched, tt.fetched)
				}
				assert.Equal(t, tt.expires, stats.Expired > 0)
				if tt.expires {
					assert.Greater(t, oldest, tt.oldest/2, "some IDs are used late, or this row shows nothing")
				}
				if name == "a million per second" {
					assert.InDelta(t, 0.86e6, stats.Rate, 5e4) // 1 - e^-2 after two spans
					time.Sleep(time.Second)                    // what was asked for has come
					at := s[0].asked("Take")
					time.Sleep(time.Hour)
					assert.Equal(t, at, s[0].asked("Take"), "there is no traffic at rest")
					for range 3 {
						next(t, c)
						time.Sleep(time.Minute)
					}
					s[0].set(func() { assert.Equal(t, int64(1), s[0].counts[len(s[0].counts)-1], "the old rate is forgotten") })
				}
			})
		})
	}
}

// TestNextN guards that a call gets more IDs than a request brings, by no more requests than it takes, and that no ID
// of a late answer is dropped.
func TestNextN(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		s[0].layout.Order = snowflake.TimeSequenceNode // whose runs have a stride above 1
		c := open(t, s)
		s[0].has(fault{delay: 3 * time.Millisecond, change: func(*tickflakev1.TakeResponse) { s[0].delay = 0 }}) // of the first one
		ids := make([]snowflake.ID, 175_000)
		nextN(t, c, nil)
		nextN(t, c, ids[:75_000])
		assert.Equal(t, 8, s[0].asked("Take"))
		nextN(t, c, ids[75_000:])
		assert.Zero(t, c.Stats().Disordered)
		assert.True(t, slices.IsSorted(ids))
		assert.Len(t, slices.Compact(ids), len(ids))
		c, requests := open(t, s), 0
		s[0].has(fault{refuse: func(int64) error {
			if requests++; requests > 2 {
				return status.Error(codes.PermissionDenied, "no more")
			}
			return nil
		}})
		clear(ids)
		n, err := c.NextN(t.Context(), ids)
		require.ErrorIs(t, err, ErrDenied)
		assert.EqualValues(t, 2*s[0].maxBatch, n, "what it took is the caller's")
		assert.NotContains(t, ids[:n], snowflake.ID(0))
		c = open(t, s)
		c.level, c.latency = 1<<40, time.Hour
		assert.Equal(t, s[0].maxBatch, c.low(), "a request brings no more")
	})
}

// TestRefillAfterFailure guards that a client which could not send a request, when it began a
// run, tries again before the run ends.
func TestRefillAfterFailure(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		s[0].change = func(r *tickflakev1.TakeResponse) { // two runs, and no more
			one := r.Runs[0]
			r.Runs = append(r.Runs, &tickflakev1.Run{First: one.First + 100, Count: 100, Stride: 1, UseWithin: one.UseWithin})
			one.Count = 100
			s[0].fault = away
		}
		c := open(t, s)
		c.level, c.latency = 1000, time.Hour
		next(t, c)
		synctest.Wait() // for the request that fails
		for range 100 { // to the second run
			next(t, c)
		}
		s[0].has(fault{})
		time.Sleep(firstDelay)
		for range 60 {
			next(t, c)
		}
		synctest.Wait()
		for range 60 {
			next(t, c)
		}
		assert.Equal(t, uint64(1), c.Stats().Waits)
	})
}

// offline returns a client that sends no request.
func offline() *Client {
	c := &Client{config: &config{}, marker: new(word.Uint64), base: time.Now(), closed: true, stock: stock{changed: make(chan struct{}), span: time.Second}}
	c.current.Store(ended)
	return c
}
