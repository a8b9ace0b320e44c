package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/snowflake"
)

// TestFailover restarts one of two servers after the other under load: a rolling restart, and
// worse. No call fails, and the IDs of each caller ascend. Where the clock of one server is ahead,
// calls wait for the other one.
func TestFailover(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(*fake)
		skew time.Duration
	}{
		"drained": {end: func(f *fake) { f.server.GracefulStop() }},
		"cut":     {end: func(f *fake) { f.stop() }},
		"says that it is about to stop": {end: func(f *fake) {
			f.fail(status.Error(codes.Unavailable, "the server is about to stop: ask another one"))
			time.Sleep(100 * time.Millisecond)
			f.stop()
			f.fail(nil)
		}},
		"a clock is ahead": {end: func(f *fake) { f.stop() }, skew: 600 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &network{}
				servers := []*fake{n.start(t, 1), n.start(t, 2)}
				servers[0].skew = tt.skew
				c := open(t, servers)
				prefer(c, 0)
				ctx, stop := context.WithCancel(t.Context())
				var callers sync.WaitGroup
				var mu sync.Mutex
				seen, longest := map[snowflake.ID]bool{}, time.Duration(0)
				for range 8 {
					callers.Go(func() {
						last := snowflake.ID(0)
						for ctx.Err() == nil {
							began := time.Now()
							id, err := c.Next(t.Context())
							mu.Lock()
							longest = max(longest, time.Since(began))
							if err != nil || id <= last || seen[id] {
								t.Errorf("%d after %d: %v", id, last, err)
								mu.Unlock()
								return
							}
							seen[id] = true
							mu.Unlock()
							last = id
							time.Sleep(time.Millisecond)
						}
					})
				}
				for range 4 {
					for _, s := range servers {
						tt.end(s)
						time.Sleep(200*time.Millisecond + tt.skew)
						s.listen()
						time.Sleep(3 * time.Second) // the client has seen it again
					}
				}
				stop()
				callers.Wait()
				assert.Greater(t, len(seen), 100_000)
				assert.Greater(t, servers[0].requests("Take"), 10)
				assert.Greater(t, servers[1].requests("Take"), 10)
				assert.GreaterOrEqual(t, longest, tt.skew-300*time.Millisecond, "calls wait for the clock that is behind, with the IDs of 250ms")
				assert.LessOrEqual(t, longest, tt.skew+100*time.Millisecond)
				sums(t, c)
			})
		})
	}
}

// TestSkewBeyondTimeout guards that a server whose clock is far behind is named.
func TestSkewBeyondTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		ahead, behind := n.start(t, 1), n.start(t, 2)
		ahead.skew = time.Hour
		c := open(t, []*fake{ahead, behind})
		prefer(c, 0)
		_, err := c.Next(t.Context())
		require.NoError(t, err)
		ahead.stop()
		began := time.Now()
		_, err = c.Next(t.Context())
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, "server-2:9380: its IDs are 59m58")
		assert.ErrorContains(t, err, "server-1:9380")
		assert.InDelta(t, DefaultTimeout, time.Since(began), float64(time.Millisecond))
	})
}

// TestHedging guards that a server that does not answer costs a call no more than the delay,
// and that the next call does not ask it first.
func TestHedging(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		servers := []*fake{n.start(t, 1), n.start(t, 2), n.start(t, 3)}
		c := open(t, servers, WithHedging(30*time.Millisecond))
		prefer(c, 0)
		servers[0].set(func() { servers[0].before = hang })
		servers[1].set(func() { servers[1].before = hang })
		began := time.Now()
		_, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 60*time.Millisecond, time.Since(began))
		assert.Equal(t, uint64(2), c.Stats().Hedges)
		assert.Zero(t, c.Stats().Failures)
		assert.True(t, c.Stats().Servers[2].Preferred)
		began = time.Now()
		_, err = c.Next(t.Context())
		require.NoError(t, err)
		assert.Zero(t, time.Since(began))
		sums(t, c)

		c = open(t, servers, WithHedging(0))
		prefer(c, 0)
		began = time.Now()
		_, err = c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2*DefaultTimeout, time.Since(began))
		assert.Zero(t, c.Stats().Hedges)
	})
}

// TestBusy guards that the delay of a server is obeyed, within the context and the timeout,
// and that another server is asked meanwhile.
func TestBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s, other := n.start(t, 1), n.start(t, 2)
		c := open(t, []*fake{s})
		s.fail(busy(400 * time.Millisecond))
		time.AfterFunc(350*time.Millisecond, func() { s.fail(nil) })
		began := time.Now()
		_, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 400*time.Millisecond, time.Since(began))
		assert.Equal(t, 2, s.requests("Take"))

		s.fail(busy(10 * time.Second))
		began = time.Now()
		for range 10 { // the first call waits for the timeout, and the others do not
			_, err = c.Next(t.Context())
			assert.ErrorIs(t, err, ErrBusy)
			assert.ErrorIs(t, err, ErrUnavailable)
			assert.ErrorContains(t, err, "too fast")
		}
		assert.Equal(t, DefaultTimeout, time.Since(began))
		assert.Equal(t, 3, s.requests("Take"))
		_, err = c.Number(t.Context(), "orders")
		assert.ErrorIs(t, err, ErrBusy)
		s.fail(nil)
		time.Sleep(8 * time.Second)
		_, err = c.Next(t.Context())
		assert.NoError(t, err)

		s.fail(busy(time.Hour))
		c = open(t, []*fake{other, s})
		prefer(c, 1)
		began = time.Now()
		_, err = c.Next(t.Context())
		require.NoError(t, err)
		assert.Zero(t, time.Since(began))
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
	})
}

// TestOutage guards what calls do while no server answers: they wait for up to the timeout,
// then fail at once or after one attempt, and work as soon as a server is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		servers := []*fake{n.start(t, 1), n.start(t, 2)}
		c := open(t, servers)
		servers[0].stop()
		servers[1].stop()
		began := time.Now()
		_, err := c.Next(t.Context())
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, "server-1:9380")
		assert.ErrorContains(t, err, "server-2:9380")
		assert.InDelta(t, DefaultTimeout, time.Since(began), float64(time.Second))
		began = time.Now()
		for range 1000 {
			_, err := c.Next(t.Context())
			assert.ErrorIs(t, err, ErrUnavailable)
		}
		assert.Less(t, time.Since(began), time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Number(ctx, "orders") // its outage begins now
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, ErrUnavailable)

		time.Sleep(time.Minute)
		servers[1].listen()
		time.Sleep(5 * time.Second) // the connection is made again
		_, err = c.Next(t.Context())
		require.NoError(t, err, "a rare caller does not meet an old failure")
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)

		// A short outage fails no call.
		servers[1].stop()
		time.AfterFunc(2*time.Second, servers[1].listen)
		time.Sleep(time.Second)
		_, err = c.Next(t.Context())
		require.NoError(t, err)
		sums(t, c)
	})
}

// TestDeadConnection guards that a connection which the network has forgotten is found and
// replaced, where there is no other server.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		c := open(t, []*fake{s})
		for range 20 {
			_, err := c.Next(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		n.hush()
		began := time.Now()
		for {
			if _, err := c.Next(t.Context()); err == nil {
				break
			}
			require.Less(t, time.Since(began), 30*time.Second)
			time.Sleep(100 * time.Millisecond) // an error may come at once
		}
		t.Logf("the client found it after %s", time.Since(began))
	})
}

// TestRefusals guards that an error that other servers would repeat is returned at once, and
// that a later call asks again.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]error{
		codes.OutOfRange: ErrOutOfRange, codes.NotFound: ErrNotFound, codes.Unauthenticated: ErrDenied,
		codes.PermissionDenied: ErrDenied, codes.InvalidArgument: ErrRefused, codes.FailedPrecondition: ErrRefused,
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &network{}
				s, other := n.start(t, 1), n.start(t, 2)
				c := open(t, []*fake{s, other})
				prefer(c, 0)
				s.fail(status.Error(code, "because of that"))
				_, err := c.Next(t.Context())
				assert.ErrorIs(t, err, want)
				assert.ErrorContains(t, err, "because of that")
				assert.Equal(t, code, status.Code(errors.Unwrap(&wrapped{err})), "the status is kept")
				_, err = c.Number(t.Context(), "orders")
				assert.ErrorIs(t, err, want)
				assert.Zero(t, other.requests("Take")+other.requests("Number"))
				s.fail(nil)
				_, err = c.Next(t.Context())
				require.NoError(t, err)
			})
		})
	}
}

// wrapped shows what status.Code finds in an error of this package.
type wrapped struct{ err error }

func (w *wrapped) Error() string { return w.err.Error() }

func (w *wrapped) Unwrap() error { return w.err }

// TestLayouts guards that a server of another layout is refused when the client is opened, and
// when it takes the address of a server later.
func TestLayouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s, same, other := n.start(t, 1), n.start(t, 2), n.start(t, 3)
		other.layout = snowflake.Sonyflake()
		_, err := tryOpen(t.Context(), []*fake{s, same, other})
		assert.ErrorIs(t, err, ErrLayout)
		assert.ErrorContains(t, err, other.layout.String())
		assert.ErrorContains(t, err, other.address)
		assert.ErrorContains(t, err, s.layout.String())

		c := open(t, []*fake{s, same})
		prefer(c, 0)
		assert.Equal(t, s.layout.String(), c.Layout().String())
		_, err = c.Next(t.Context())
		require.NoError(t, err)
		s.stop()
		s.set(func() { s.layout = other.layout })
		s.listen()
		for range 1000 {
			id, err := c.Next(t.Context())
			require.NoError(t, err)
			d, err := layout().Decode(id)
			require.NoError(t, err)
			require.Equal(t, int64(2), d.Node)
			prefer(c, 0)
			time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		}
		time.Sleep(time.Minute)
		prefer(c, 0)
		_, err = c.Next(t.Context())
		require.NoError(t, err)
		assert.ErrorIs(t, c.Stats().Servers[0].Err, ErrLayout)
	})
}
