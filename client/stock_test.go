package client

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/snowflake"
)

// TestMostFetches guards the number of requests at a time.
func TestMostFetches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		var running, most atomic.Int64
		s.maxBatch = 10
		s.before = func(ctx context.Context, method string) error {
			if method == "Take" {
				now := running.Add(1)
				defer running.Add(-1)
				for old := most.Load(); old < now && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				return wait(ctx, 10*time.Millisecond)
			}
			return nil
		}
		c := open(t, []*fake{s})
		require.NoError(t, c.NextN(t.Context(), make([]snowflake.ID, 1000)))
		assert.Equal(t, int64(mostFetches), most.Load())
		sums(t, c)
	})
}

// TestSkip guards that a run which overlaps what was taken loses those IDs, and no others.
func TestSkip(t *testing.T) {
	t.Parallel()
	for _, stride := range []int64{1, 8} {
		for last := snowflake.ID(90); last < 150; last++ {
			c := &Client{config: &config{most: 1}, stock: stock{changed: make(chan struct{}), span: time.Second, last: last}}
			c.closed = true // plan sends no request
			c.current.Store(ended)
			r := snowflake.Run{First: 100, Count: 5, Stride: stride}
			c.accept(answer{ids: 5, freshness: time.Second, runs: []pending{{r, 10}}})
			var got, want []snowflake.ID
			for c.advance(0) {
				i, _ := c.current.Load().take(1)
				got = append(got, c.current.Load().at(i))
			}
			for i := range r.Count {
				if r.At(i) > last {
					want = append(want, r.At(i))
				}
			}
			assert.Equal(t, want, got, "stride %d, after %d", stride, last)
			assert.Equal(t, uint64(5-len(want)), c.stats.Disordered)
			assert.Zero(t, c.queued)
		}
	}
}

// TestPrefetchOfBatches guards that NextN fetches ahead, also in batches of one ID.
func TestPrefetchOfBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		s.delay = 3 * time.Millisecond
		c := open(t, []*fake{s})
		for range 5000 {
			require.NoError(t, c.NextN(t.Context(), make([]snowflake.ID, 1)))
			time.Sleep(time.Millisecond)
		}
		assert.Less(t, c.Stats().Waits, uint64(20))
		sums(t, c)
	})
}

// TestRefillAfterFailure guards that a client which could not send a request, when it began a
// run, tries again before the run ends.
func TestRefillAfterFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		s.maxBatch = 100
		var takes atomic.Int64
		s.before = func(ctx context.Context, method string) error {
			if method == "Take" && takes.Add(1) > 1 {
				_ = wait(ctx, time.Millisecond) // after the answer to the first one
				return status.Error(codes.Unavailable, "away")
			}
			return nil
		}
		c := open(t, []*fake{s}, WithPrefetch(1000, 1000))
		next := func(calls int) {
			for range calls {
				_, err := c.Next(t.Context())
				require.NoError(t, err)
			}
		}
		next(1)
		synctest.Wait()
		s.fail(nil)
		time.Sleep(350 * time.Millisecond)
		next(60)
		time.Sleep(time.Millisecond)
		next(139)
		assert.Equal(t, uint64(1), c.Stats().Waits)
		sums(t, c)
	})
}

// TestFreshForEver guards that a server may say that IDs are true for as long as they can be.
func TestFreshForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		s.useWithin = math.MaxInt64
		c := open(t, []*fake{s}, WithPrefetch(10, 10))
		for range 10 {
			time.Sleep(time.Hour)
			_, err := c.Next(t.Context())
			require.NoError(t, err)
		}
		assert.Equal(t, uint64(1), c.Stats().Waits)
		assert.Zero(t, c.Stats().Expired)
	})
}

// TestDelayIsForgotten guards that a server which has served is asked again soon after the next
// failure, however often it had failed before.
func TestDelayIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		c := open(t, []*fake{s})
		for range 5 {
			s.fail(status.Error(codes.Unavailable, "away"))
			began := time.Now()
			time.AfterFunc(2*firstDelay, func() { s.fail(nil) })
			_, err := c.Next(t.Context())
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Since(began), 7*firstDelay, "three delays")
			time.Sleep(2 * time.Second)
		}
	})
}

// TestFailuresAtOnce guards that requests which fail at the same time count as one failure,
// or none if the server named a delay to the first of them.
func TestFailuresAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		c := open(t, []*fake{n.start(t, 1)})
		for range mostFetches {
			c.failed(forIDs, c.servers[0], &failure{server: "server-1", cause: context.DeadlineExceeded})
		}
		c.mu.Lock()
		until := c.routes[forIDs].health[0].until
		c.mu.Unlock()
		assert.LessOrEqual(t, until-c.now(), int64(firstDelay))
		assert.Equal(t, uint64(mostFetches), c.Stats().Failures)

		c.succeeded(forIDs, c.servers[0])
		c.failed(forIDs, c.servers[0], &failure{server: "server-1", kind: ErrBusy, cause: ErrBusy, after: time.Second})
		c.failed(forIDs, c.servers[0], &failure{server: "server-1", cause: context.DeadlineExceeded})
	})
}
