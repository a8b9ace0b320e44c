package client

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

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
					time.Sleep(time.Second) // what was asked for has come
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

// TestWordIsAlone guards that a word that is written with every ID does not disturb the
// fields that are read with every ID.
func TestWordIsAlone(t *testing.T) {
	t.Parallel()
	var r run
	assert.GreaterOrEqual(t, unsafe.Offsetof(r.free)-unsafe.Offsetof(r.soft), uintptr(cacheLine))
	assert.GreaterOrEqual(t, unsafe.Sizeof(r)-unsafe.Offsetof(r.free), uintptr(cacheLine))
	var c Client
	assert.GreaterOrEqual(t, unsafe.Offsetof(c.config)-unsafe.Offsetof(c.current), uintptr(cacheLine))
}

// TestNextAllocatesNothing is not parallel: it counts the allocations of the process.
func TestNextAllocatesNothing(t *testing.T) {
	c := &Client{base: time.Now(), marker: new(word.Uint64)}
	c.current.Store(&run{first: 1, stride: 1, count: 1 << 40, expires: math.MaxInt64, soft: math.MaxUint64})
	ctx, ids := t.Context(), make([]snowflake.ID, 10)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		_, err1 := c.Next(ctx)
		_, err2 := c.NextN(ctx, ids)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
	}))
	assert.Equal(t, snowflake.ID(11*1001), ids[9])
}

// TestRetire guards that a call which still holds a run gets no ID of it once the run has ended: its rest is in
// another run by then, but for the IDs that are not above the last one.
func TestRetire(t *testing.T) {
	c := offline()
	old := &run{first: 1, stride: 2, count: 9, expires: math.MaxInt64}
	c.current.Store(old)
	old.take(2)
	c.enqueue(pending{snowflake.Run{First: 21, Count: 1, Stride: 1}, math.MaxInt64})
	c.retire()
	c.last = 9
	require.True(t, c.advance(0))
	i, end := old.take(1)
	assert.Equal(t, i, end)
	assert.GreaterOrEqual(t, old.free.Add(1)-1, old.count, "what Next looks at")
	assert.EqualValues(t, -1, old.next())
	now := c.current.Load()
	assert.Equal(t, []snowflake.ID{11, 13}, []snowflake.ID{now.at(0), now.at(1)})
	assert.EqualValues(t, []int64{4, 2, 3}, []int64{now.rest(), int64(c.stats.Issued), int64(c.stats.Disordered)})
}

// TestTakenOnce takes a million IDs of one run from several goroutines at once. Where two calls
// can take one index, most runs of NextN show it, and some of Next.
func TestTakenOnce(t *testing.T) {
	for name, batch := range map[string]int{"Next": 1, "NextN": 3} {
		t.Run(name, func(t *testing.T) {
			const callers, count = 4, 1_000_000
			c := offline() // a call after the last ID fails
			c.current.Store(&run{first: 1, stride: 1, count: count, expires: math.MaxInt64, soft: math.MaxUint64})
			taken := make([]atomic.Uint32, 1+count) // by ID
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					ids, err := make([]snowflake.ID, batch), error(nil)
					for {
						if batch == 1 {
							ids[0], err = c.Next(t.Context())
						} else {
							_, err = c.NextN(t.Context(), ids)
						}
						if err != nil {
							return
						}
						for _, id := range ids {
							taken[id].Add(1)
						}
					}
				})
			}
			group.Wait()
			counts := map[uint32]int{}
			for id := 1; id <= count; id++ {
				counts[taken[id].Load()]++
			}
			assert.GreaterOrEqual(t, counts[1], count-callers*batch, "the rest may be lost with the last batches")
			assert.Equal(t, count, counts[0]+counts[1], "an ID came twice")
		})
	}
}
