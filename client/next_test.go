package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

// age is how old the time in an ID is now.
func age(t testing.TB, id snowflake.ID) time.Duration {
	d, err := layout().Decode(id)
	require.NoError(t, err)
	return time.Since(d.Time)
}

// sums checks that every ID that was fetched is counted once.
func sums(t testing.TB, c *Client) {
	s := c.Stats()
	assert.Equal(t, s.Fetched, s.Issued+s.Expired+s.Disordered+s.Lost+uint64(s.Ahead), "%+v", s)
}

// TestFreshness takes IDs at random times from a server whose answers are late by more than
// half of the time for which its IDs are true, and less.
func TestFreshness(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		useWithin time.Duration
		delay     time.Duration
		freshness time.Duration
	}{
		{"late answers", time.Second, 700 * time.Millisecond, time.Second},
		{"a bound of the caller", time.Second, 20 * time.Millisecond, 100 * time.Millisecond},
		{"a bound above that of the server", 200 * time.Millisecond, 20 * time.Millisecond, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &network{}
				s := n.start(t, 1)
				s.useWithin, s.delay = tt.useWithin, tt.delay
				c := open(t, []*fake{s}, WithFreshness(tt.freshness), WithPrefetch(5, 10_000))
				random := rand.New(rand.NewPCG(1, 2))
				var oldest time.Duration
				for range 1000 {
					id, err := c.Next(t.Context())
					require.NoError(t, err)
					oldest = max(oldest, age(t, id))
					time.Sleep(time.Duration(random.Int64N(int64(tt.useWithin / 4))))
					if random.IntN(100) == 0 {
						time.Sleep(2 * time.Second)
					}
				}
				bound := min(tt.useWithin, tt.freshness)
				assert.LessOrEqual(t, oldest, bound+layout().Tick)
				assert.Greater(t, oldest, bound/2, "some IDs are used late, or this test shows nothing")
				assert.NotZero(t, c.Stats().Expired)
				sums(t, c)
			})
		})
	}
}

// TestMillionPerSecond takes a million IDs per second from a server that answers after 2 ms:
// 999 of 1,000 calls touch no network, and few IDs are wasted.
func TestMillionPerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		s.delay = 2 * time.Millisecond
		c := open(t, []*fake{s})
		const calls = 500_000
		last, oldest := snowflake.ID(0), time.Duration(0)
		for i := range calls {
			id, err := c.Next(t.Context())
			if err != nil || id <= last {
				t.Fatalf("%d after %d: %v", id, last, err)
			}
			last = id
			if i%1000 == 0 {
				oldest = max(oldest, age(t, id))
				time.Sleep(time.Millisecond)
			}
		}
		stats := c.Stats()
		assert.Less(t, stats.Waits, uint64(calls/1000))
		assert.Less(t, oldest, 100*time.Millisecond)
		assert.Less(t, stats.Ahead, int64(30_000))
		assert.Zero(t, stats.Expired)
		assert.InDelta(t, 0.86e6, stats.Rate, 5e4) // 1 - e^-2 after two spans
		sums(t, c)
		t.Logf("%d of %d calls waited; the oldest ID was %s old; %d requests", stats.Waits, calls, oldest, stats.Requests)

		time.Sleep(time.Second) // what was asked for has come
		at := s.requests("Take")
		time.Sleep(time.Hour)
		assert.Equal(t, at, s.requests("Take"), "there is no traffic at rest")
		for range 3 {
			_, err := c.Next(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		s.set(func() { assert.LessOrEqual(t, s.asked[len(s.asked)-1], int64(1), "the old rate is forgotten") })
		sums(t, c)
	})
}

// TestSlowCaller takes IDs at a rate at which fetching ahead would waste them.
func TestSlowCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		c := open(t, []*fake{s})
		for range 100 {
			_, err := c.Next(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		stats := c.Stats()
		assert.Equal(t, uint64(100), stats.Fetched)
		assert.Equal(t, uint64(100), stats.Requests)
		for range 200 { // at ten per second, few calls wait
			_, err := c.Next(t.Context())
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		assert.Less(t, c.Stats().Waits-stats.Waits, uint64(10))
		assert.Less(t, c.Stats().Fetched-stats.Fetched, uint64(210))
		assert.Less(t, c.Stats().Requests-stats.Requests, uint64(110))
		sums(t, c)
	})
}

func TestPrefetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		c := open(t, []*fake{s}, WithPrefetch(100, 120))
		for range 10 { // bursts
			for range 100 {
				_, err := c.Next(t.Context())
				require.NoError(t, err)
			}
			time.Sleep(900 * time.Millisecond)
		}
		s.set(func() {
			for _, asked := range s.asked {
				assert.GreaterOrEqual(t, asked, int64(100))
				assert.LessOrEqual(t, asked, int64(120))
			}
		})
		assert.Less(t, c.Stats().Waits, uint64(20))
	})
}

func TestNextN(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		c := open(t, []*fake{s})
		require.NoError(t, c.NextN(t.Context(), make([]snowflake.ID, 75_000)))
		assert.Equal(t, 8, s.requests("Take"), "all that a call waits for is asked for at once")
		last := snowflake.ID(0)
		for _, n := range []int{0, 1, 10, 4096, 25_000, 3, 100_000} {
			ids := make([]snowflake.ID, n)
			require.NoError(t, c.NextN(t.Context(), ids))
			for _, id := range ids {
				require.Greater(t, id, last)
				last = id
			}
		}
		id, err := c.Next(t.Context()) // it counts as Background
		require.NoError(t, err)
		assert.Greater(t, id, last)
		sums(t, c)

		s.set(func() { s.before = hang })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		assert.ErrorIs(t, c.NextN(ctx, make([]snowflake.ID, 1_000_000)), context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
		sums(t, c)
	})
}

// TestRestored guards that no ID that was fetched or asked for before is issued.
func TestRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		c := open(t, []*fake{s}, WithPrefetch(10, 10))
		id, err := c.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Restored(t.Context()))
		next, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Greater(t, next, id+9)

		s.set(func() { s.delay = 100 * time.Millisecond })
		for range 9 { // another request is sent
			_, err := c.Next(t.Context())
			require.NoError(t, err)
		}
		synctest.Wait()
		before := s.requests("Take")
		require.NoError(t, c.Restored(t.Context()))
		s.set(func() { id = snowflake.ID(s.free&0xfff) + next&^0xfff }) // the IDs that are on their way lie below
		next, err = c.Next(t.Context())
		require.NoError(t, err)
		assert.Greater(t, s.requests("Take"), before)
		assert.GreaterOrEqual(t, next, id)
		assert.GreaterOrEqual(t, c.Stats().Lost, uint64(10))
		sums(t, c)
	})
}

// TestEnd ends calls that wait, for an answer or for the time to ask again: with their context,
// or with the client. Close leaves no goroutine behind, or the bubble fails.
func TestEnd(t *testing.T) {
	t.Parallel()
	mine := errors.New("the user went away")
	for name, waits := range map[string]func(*fake){
		"for an answer": func(s *fake) {
			s.set(func() { s.before = func(ctx context.Context, _ string) error { return hang(ctx, "Take") } })
		},
		"for the time to ask": func(s *fake) { s.fail(busy(time.Minute)) },
	} {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, closes %t", name, closes), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					n := &network{}
					servers := []*fake{n.start(t, 1), n.start(t, 2)}
					c := open(t, servers, WithTimeout(time.Hour))
					_, err := c.Next(t.Context())
					require.NoError(t, err)
					for _, s := range servers {
						waits(s)
					}
					ctx, cancel := context.WithCancelCause(t.Context())
					calls := []func() error{
						func() error { _, err := c.Next(ctx); return err },
						func() error { return c.NextN(ctx, make([]snowflake.ID, 100_000)) },
						func() error { _, err := c.Number(ctx, "orders"); return err },
					}
					failed := make(chan error, len(calls))
					for _, call := range calls {
						go func() { failed <- call() }()
					}
					synctest.Wait()
					began, want := time.Now(), []error{context.Canceled, mine}
					if closes {
						want = []error{ErrClosed}
						require.NoError(t, c.Close())
						assert.Empty(t, c.flying, "Close returns when the requests have ended")
						require.NoError(t, c.Close())
						assert.ErrorIs(t, c.Restored(t.Context()), ErrClosed)
						assert.Zero(t, c.Stats().Ahead)
					} else {
						cancel(mine)
					}
					for range calls {
						err := <-failed
						for _, want := range want {
							assert.ErrorIs(t, err, want)
						}
					}
					assert.Zero(t, time.Since(began))
					for _, call := range calls {
						assert.ErrorIs(t, call(), want[0], "a later call")
					}
					cancel(nil)
					sums(t, c)
				})
			})
		}
	}
}
