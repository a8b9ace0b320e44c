package client

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/vmclock"
	"github.com/tickflake/tickflake/internal/vmclock/vmclocktest"
	"github.com/tickflake/tickflake/snowflake"
)

// TestRestored guards that no ID that was fetched or asked for before is issued.
func TestRestored(t *testing.T) {
	t.Run("told by the program", func(t *testing.T) {
		testRestored(t, vmclock.Off, func(c *Client) { require.NoError(t, c.Restored(t.Context())) })
	})
	t.Run("told by VMClock", func(t *testing.T) {
		device := vmclocktest.New(t)
		testRestored(t, device.Path, func(*Client) { device.Copy() })
	})
}

func testRestored(t *testing.T, device string, restore func(*Client)) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s, WithVMClock(device))
		c.level = 10
		id, _ := next(t, c)
		restore(c)
		after, _ := next(t, c)
		assert.Greater(t, after, id+9)

		s[0].has(fault{delay: 100 * time.Millisecond})
		for requests := c.Stats().Requests; c.Stats().Requests == requests; synctest.Wait() {
			next(t, c)
		}
		before := s[0].asked("Take")
		restore(c)
		s[0].set(func() { id = snowflake.ID(s[0].free&0xfff) + after&^0xfff }) // the IDs that are on their way lie below
		after, _ = next(t, c)
		assert.Greater(t, s[0].asked("Take"), before)
		assert.GreaterOrEqual(t, after, id)
		assert.GreaterOrEqual(t, c.Stats().Lost, uint64(10))

		ids := make([]snowflake.ID, 3)
		restore(c)
		nextN(t, c, ids)
		assert.Greater(t, ids[0], after+6, "not the rest of the run")
		next(t, c)
		amid := fault{change: func(*tickflakev1.TakeResponse) {
			s[0].fault = fault{}
			restore(c)
		}}
		s[0].has(amid) // a batch that has begun
		first := c.current.Load().at(0)
		ids = make([]snowflake.ID, 20)
		nextN(t, c, ids)
		if device != vmclock.Off { // else the program holds its calls
			assert.Greater(t, ids[0], first+9)
		}
		id, _ = next(t, c)
		restore(c)
		after, err := c.NextAfter(t.Context(), ids[0])
		require.NoError(t, err)
		assert.Greater(t, after, id+8, "not the rest of the run")
		var taken []int64
		s[0].has(fault{change: func(r *tickflakev1.TakeResponse) {
			if taken = append(taken, r.Runs[0].First); len(taken) == 1 {
				restore(c)
			}
		}, after: true})
		after, err = c.NextAfter(t.Context(), after+1<<30)
		require.NoError(t, err)
		assert.NotEqual(t, taken[0], int64(after), "the answer is the original's")
		answers := 0
		s[0].has(fault{number: func(*tickflakev1.NumberResponse) {
			if answers++; answers == 1 {
				restore(c)
			}
		}})
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		assert.Equal(t, device != vmclock.Off, answers == 2)
	})
}

// TestEnd ends calls that wait, for an answer or for the time to ask again: with their context, or with
// the client. Their errors say what they waited for. Close leaves no goroutine behind, or the bubble fails.
func TestEnd(t *testing.T) {
	t.Parallel()
	mine := errors.New("the user went away")
	for name, fault := range map[string]fault{"for an answer": {hang: true}, "for the time to ask": busy(time.Minute)} {
		for end, want := range map[string][]error{"canceled": {context.Canceled, mine}, "deadline": {context.DeadlineExceeded, mine}, "closed": {ErrClosed}} {
			t.Run(name+", "+end, func(t *testing.T) {
				virtual(t, 2, func(t *testing.T, s []*fake) {
					c := open(t, s, WithTimeout(time.Hour))
					next(t, c)
					s[0].has(fault)
					s[1].has(fault)
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if end == "deadline" {
						bounded, cancel := context.WithTimeoutCause(ctx, time.Second, mine)
						defer cancel()
						ctx = bounded
					}
					calls := []func() error{
						func() error { _, err := c.Next(ctx); return err },
						func() error { _, err := c.NextN(ctx, make([]snowflake.ID, 100_000)); return err },
						func() error { _, err := c.Number(ctx, "orders"); return err },
					}
					failed := make(chan error, len(calls))
					for _, call := range calls {
						go func() { failed <- call() }()
					}
					synctest.Wait()
					if fault.hang {
						assert.NotZero(t, c.asked)
					}
					began, failures, took := time.Now(), c.Stats().Failures, time.Duration(0)
					switch end {
					case "closed":
						require.NoError(t, c.Close())
						assert.Zero(t, c.asked, "Close returns when the requests have ended")
						require.NoError(t, c.Close())
						assert.ErrorIs(t, c.Restored(t.Context()), ErrClosed)
						assert.Zero(t, c.Stats().Ahead)
					case "canceled":
						cancel(mine)
					case "deadline":
						took = time.Second
					}
					for range calls {
						err := <-failed
						for _, want := range want {
							assert.ErrorIs(t, err, want)
						}
						assert.Equal(t, end != "closed" && !fault.hang, errors.Is(err, ErrUnavailable), "%v", err)
					}
					assert.Equal(t, took, time.Since(began))
					if end != "closed" {
						assert.Equal(t, failures, c.Stats().Failures, "a caller who gives up is no failure of a server")
					}
					for _, call := range calls {
						assert.ErrorIs(t, call(), want[0], "a later call")
					}
				})
			})
		}
	}
}

// TestNumbers guards what is peculiar to numbers: that they are given in a row and counted, and that
// an outage of their store does not concern IDs.
func TestNumbers(t *testing.T) {
	virtual(t, 2, func(t *testing.T, s []*fake) {
		c := open(t, s)
		number, err := c.Number(t.Context(), "orders.2027_a-1")
		require.NoError(t, err)
		first, stride, err := c.Numbers(t.Context(), "orders.2027_a-1", 10)
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 3, 2}, []int64{number, first, stride})
		assert.Equal(t, uint64(11), c.Stats().Numbers)
		for _, n := range []int64{0, -1, math.MinInt64} {
			_, _, err = c.Numbers(t.Context(), "orders", n)
			assert.ErrorIs(t, err, ErrRefused)
		}
		for _, name := range []string{"", ".", "Orders", "a b", "\xff", string(make([]byte, 65))} { // a server that cannot read it would seem to fail
			_, err = c.Number(t.Context(), name)
			assert.ErrorIs(t, err, ErrRefused, "%q", name)
		}
		assert.Equal(t, 2, s[0].asked("Number"))

		// A server may see the end of the caller's deadline first.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s[0].has(fault{err: status.Error(codes.DeadlineExceeded, "late"), delay: time.Second - 1})
		s[1].has(fault{hang: true})
		_, err = c.Number(ctx, "orders")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, c.Stats().Failures)
		s[1].has(fault{})

		s[0].has(fault{only: "Number", err: away.err})
		number, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		assert.Equal(t, int64(1), number, "of the other server, which counts by itself")
		next(t, c)
		assert.Zero(t, s[1].asked("Take"))
		s[1].has(away)
		_, err = c.Number(t.Context(), "orders")
		assert.ErrorContains(t, err, `numbers of sequence "orders"`)
	})
}

// TestNextAfter guards that the ID is above the one that was seen and above all that were returned, that IDs at hand are
// dropped for an answer only, and that a seen which servers reject harms no other call.
func TestNextAfter(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		c.level = 5000 // more than a tick has
		first, _ := next(t, c)
		highest := first
		after := func(seen snowflake.ID) snowflake.ID {
			id, err := c.NextAfter(t.Context(), seen)
			require.NoError(t, err)
			assert.Greater(t, id, max(seen, highest))
			highest = id
			return id
		}
		assert.Equal(t, first+1, after(first), "the next one")
		assert.Equal(t, first+2, after(math.MinInt64))
		rest := make([]snowflake.ID, c.current.Load().rest())
		nextN(t, c, rest)
		highest = rest[len(rest)-1]
		id := after(highest)
		assert.Equal(t, uint64(1), c.Stats().Requests, "the next run is at hand")
		assert.Zero(t, c.Stats().Disordered)
		synctest.Wait()
		asked := s[0].asked("Take")

		highest = id
		ahead, err := layout().Min(time.Now().Add(50 * time.Millisecond))
		require.NoError(t, err)
		answered := after(ahead)
		assert.Equal(t, asked+1, s[0].asked("Take"), "only a server can tell")
		id, _ = next(t, c)
		assert.Greater(t, id, answered)

		highest = id
		far := id + 1<<40
		s[0].has(fault{refuse: func(int64) error { return busy(time.Second).err }, after: true})
		time.AfterFunc(time.Second-1, func() { s[0].has(fault{}) })
		began, before := time.Now(), c.Stats()
		rejected := make(chan snowflake.ID)
		go func() { rejected <- after(far) }()
		synctest.Wait()
		assert.Positive(t, before.Ahead)
		assert.Equal(t, before.Disordered, c.Stats().Disordered, "what is at hand is for others")
		_, took := next(t, c)
		assert.Zero(t, took, "the server serves others")
		<-rejected
		assert.Equal(t, time.Second, time.Since(began), "when the server allows it")
		s[0].has(busy(time.Minute))
		_, err = c.NextAfter(t.Context(), far+1<<40)
		assert.ErrorIs(t, err, ErrBusy)
		assert.ErrorContains(t, err, "server-1")
		s[0].has(fault{refuse: func(int64) error { return busy(time.Second).err }, after: true})
		time.AfterFunc(time.Second-1, func() { s[0].has(fault{}) })
		began = time.Now()
		_, err = c.NextAfter(t.Context(), highest+1<<30)
		require.NoError(t, err, "a smaller one has a timeout of its own")
		assert.Equal(t, time.Second, time.Since(began), "and does not wait with it")

		s[0].has(fault{change: func(r *tickflakev1.TakeResponse) { r.Runs[0].First = int64(highest + 3<<29) }}) // above the last ID, and not above what was seen
		_, err = c.NextAfter(t.Context(), highest+1<<31)
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, "its IDs are ")

		s[0].has(fault{delay: time.Second / 2})
		time.Sleep(time.Minute) // the server is asked again
		time.AfterFunc(time.Second/4, func() { assert.NoError(t, c.Restored(t.Context())) })
		began = time.Now()
		_, err = c.NextAfter(t.Context(), far+2<<40)
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(began), "the ID that was asked for before is not issued")
		s[0].server.Stop()
		_, err = c.NextAfter(t.Context(), far+3<<40)
		assert.ErrorIs(t, err, ErrUnavailable)
	})
}

// TestNextAfterElsewhere guards that the next server is asked when one rejects what was seen, that others stay with the first,
// and that the ID of a server whose clock is behind is above those of another one that were returned before.
func TestNextAfterElsewhere(t *testing.T) {
	virtual(t, 2, func(t *testing.T, s []*fake) {
		s[0].skew = time.Second
		c := open(t, s)
		last, _ := next(t, c)
		s[0].has(fault{refuse: func(int64) error { return busy(time.Hour).err }, after: true})
		id, err := c.NextAfter(t.Context(), 1)
		require.NoError(t, err)
		assert.Greater(t, id, last)
		assert.EqualValues(t, 2, node(t, id))
		time.Sleep(2 * time.Second) // what was fetched is too old
		id, _ = next(t, c)
		assert.EqualValues(t, 1, node(t, id))
	})
}
