package generator_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// handLease grants what the test says.
type handLease struct {
	layout snowflake.Layout
	clock  generator.Clock
	first  generator.Grant
	holder generator.Holder
	onNeed func() // or nil
	err    error  // of Bind and Release, and why nothing is granted

	needs    atomic.Int64
	mu       sync.Mutex
	released []uint64
}

func (l *handLease) Layout() snowflake.Layout { return l.layout }
func (l *handLease) Clock() generator.Clock   { return l.clock }
func (l *handLease) Err() error               { return l.err }

func (l *handLease) Bind(h generator.Holder) (generator.Grant, error) {
	l.holder = h
	return l.first, l.err
}

func (l *handLease) Need() {
	l.needs.Add(1)
	if l.onNeed != nil {
		l.onNeed()
	}
}

func (l *handLease) Release(_ context.Context, end uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = append(l.released, end)
	return l.err
}

// noonTick is the tick at which the tests' clocks begin.
const noonTick = 202_478_400_000

// leased returns a generator of the narrow layout that holds node 1 from noon for
// limit ticks.
func leased(t *testing.T, limit int64, opts ...generator.Option) (*generator.Generator, *handLease, *handClock) {
	t.Helper()
	c := newHandClock()
	l := &handLease{layout: narrow(), clock: c, first: grant(1, 0, limit)}
	return newGenerator(t, append([]generator.Option{generator.WithLease(l)}, opts...)...), l, c
}

// grant is one of node from floor to limit, counted from noon.
func grant(node int64, floor, limit int64) generator.Grant {
	return generator.Grant{Node: node, Floor: uint64(noonTick + floor), Limit: uint64(noonTick + limit), Renew: uint64(noonTick + limit)}
}

func TestNoonTick(t *testing.T) {
	assert.EqualValues(t, int64(noonTick), noon.Sub(narrow().Epoch)/time.Millisecond)
}

func TestLeaseOptions(t *testing.T) {
	other := narrow()
	other.SequenceBits = 3
	l := func() generator.Option {
		return generator.WithLease(&handLease{layout: narrow(), clock: newHandClock(), first: grant(1, 0, 9)})
	}
	for name, c := range map[string]struct {
		option string
		opts   []generator.Option
	}{
		"nil":                 {"WithLease", []generator.Option{generator.WithLease(nil)}},
		"another clock":       {"WithClock", []generator.Option{l(), generator.WithClock(newHandClock())}},
		"nil pointer":         {"WithLease", []generator.Option{generator.WithLease((*handLease)(nil))}},
		"a node number":       {"WithNode", []generator.Option{l(), generator.WithNode(1)}},
		"parts of one":        {"WithNodeParts", []generator.Option{generator.WithNodeParts(1), l()}},
		"another layout":      {"WithLayout", []generator.Option{l(), generator.WithLayout(other)}},
		"no clock":            {"WithClock", []generator.Option{generator.WithLease(&handLease{layout: narrow()})}},
		"that is not granted": {"WithLease", []generator.Option{generator.WithLease(&handLease{layout: narrow(), clock: newHandClock(), err: errors.New("taken")})}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := generator.New(c.opts...)
			var config *generator.ConfigError
			require.ErrorAs(t, err, &config)
			assert.Equal(t, c.option, config.Option)
		})
	}
	newGenerator(t, l(), generator.WithLayout(narrow())) // the same layout
}

func TestFloorAheadOfTheClock(t *testing.T) {
	for _, s := range []strategies.Strategy{strategies.Reject(), strategies.BorrowUpTo(5 * time.Millisecond), strategies.WaitUpTo(5 * time.Millisecond)} {
		l := &handLease{layout: narrow(), clock: newHandClock(), first: grant(1, 5, 9)}
		g := newGenerator(t, generator.WithLease(l), generator.WithStrategy(s))
		assert.Equal(t, 5*time.Millisecond, g.Stats().Lead, "that of the ID to come")
		id, err := g.Next()
		if s == strategies.Reject() {
			var lead *generator.LeadError
			require.ErrorAs(t, err, &lead)
			assert.ErrorIs(t, err, generator.ErrBehind)
			assert.Equal(t, 5*time.Millisecond, lead.Lead)
			continue
		}
		require.NoError(t, err)
		at, sequence := decode(t, g, id)
		assert.Equal(t, 5*time.Millisecond, at)
		assert.Zero(t, sequence)
	}
}

func TestGrantEnds(t *testing.T) {
	g, l, c := leased(t, 2, generator.WithStrategy(strategies.Reject()))
	l.err = errors.New("store is away")
	assert.Equal(t, 2*time.Millisecond, g.Stats().Granted)
	for range 2 {
		for range 4 {
			mustNext(t, g)
		}
		c.step(time.Millisecond)
	}
	c.step(time.Second)
	for range 3 {
		_, err := g.Next()
		var end *generator.GrantError
		require.ErrorAs(t, err, &end)
		assert.Equal(t, generator.GrantError{Node: 1, Limit: noon.Add(2 * time.Millisecond), Past: time.Second, Err: l.err}, *end)
		require.ErrorIs(t, err, generator.ErrNotGranted)
		require.ErrorIs(t, err, l.err)
		assert.EqualError(t, err, "grant of node 1 ended at 2026-06-01T12:00:00.002Z, 1s ago, and there is no further one: store is away")
	}
	assert.EqualValues(t, 3, l.needs.Load())
	assert.Equal(t, -time.Second, g.Stats().Granted)

	l.holder.Grant(grant(1, 0, 2_000))
	at, _ := decode(t, g, mustNext(t, g))
	assert.Equal(t, 1002*time.Millisecond, at)
}

// A clock that jumps over the end of the grant must not reach beyond it.
func TestClockPastTheGrant(t *testing.T) {
	g, _, c := leased(t, 100, generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	mustNext(t, g)
	c.step(100 * time.Millisecond)
	_, err := g.Next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
	n, err := g.NextN(make([]snowflake.ID, 3))
	require.ErrorIs(t, err, generator.ErrNotGranted)
	assert.Zero(t, n)
	_, err = g.Stream().Next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
}

// What is granted beyond the time field is not there.
func TestGrantBeyondTime(t *testing.T) {
	layout := narrow()
	layout.TimeBits = 38 // 2^38 ms end in September 2028
	c := newHandClock()
	c.set(layout.End().Add(-2 * time.Millisecond))
	l := &handLease{layout: layout, clock: c, first: generator.Grant{Node: 1, Limit: math.MaxUint64, Renew: math.MaxUint64}}
	g := newGenerator(t, generator.WithLease(l), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	for range 8 {
		mustNext(t, g)
	}
	_, err := g.Next()
	var end *generator.EndOfTimeError
	require.ErrorAs(t, err, &end)
	l.holder.Grant(generator.Grant{Node: 2, Floor: 1 << 60, Limit: math.MaxUint64})
	_, err = g.Next()
	require.ErrorAs(t, err, &end)
}

// IDs that come to Renew have the lease hear of it, once.
func TestRenew(t *testing.T) {
	c := newHandClock()
	l := &handLease{layout: narrow(), clock: c, first: grant(1, 0, 10)}
	l.first.Renew -= 5
	g := newGenerator(t, generator.WithLease(l), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	for i := range 40 {
		mustNext(t, g)
		want := int64(0)
		if i >= 20 {
			want = 1
		}
		require.Equal(t, want, l.needs.Load(), "ID %d", i)
	}
	l.onNeed = func() { l.holder.Grant(grant(1, 0, 20)) }
	mustNext(t, g) // beyond the limit, which Need moves on
	assert.EqualValues(t, 2, l.needs.Load())
}

// A call waits for a grant as long as its strategy lets it wait for anything.
func TestWaitForAGrant(t *testing.T) {
	for name, c := range map[string]struct {
		strategy strategies.Strategy
		waits    time.Duration
	}{
		"reject":       {strategies.Reject(), 0},
		"borrow":       {strategies.BorrowUpTo(time.Hour), 0},
		"wait":         {strategies.WaitUpTo(250 * time.Millisecond), 250 * time.Millisecond},
		"one of yours": {strategies.Func(strategies.Wait().Decide), 0},
		"in a chain":   {strategies.Chain(strategies.Func(strategies.Wait().Decide)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, _, clock := leased(t, 1, generator.WithStrategy(c.strategy))
			clock.step(time.Minute)
			_, err := g.Next()
			var end *generator.GrantError
			require.ErrorAs(t, err, &end)
			assert.Equal(t, c.waits, end.Waited)
			assert.Equal(t, c.waits, g.Stats().Waited)

			g, l, clock := leased(t, 1, generator.WithStrategy(c.strategy))
			clock.step(time.Minute)
			l.onNeed = func() {
				if l.needs.Load() == 2 { // the first waits once
					l.holder.Grant(grant(1, 0, 1_000_000))
				}
			}
			if _, err = g.Next(); c.waits == 0 {
				require.ErrorIs(t, err, generator.ErrNotGranted)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestDeadlineWaitsForAGrant(t *testing.T) { inBubble(t, deadlineWaitsForAGrant) }

func deadlineWaitsForAGrant(t *testing.T) {
	l := &handLease{layout: narrow(), clock: monoclock.New(), first: generator.Grant{Node: 1, Limit: 1, Renew: 1}}
	g := newGenerator(t, generator.WithLease(l), generator.WithStrategy(strategies.Reject()))
	asked := make(chan struct{}, 1000)
	l.onNeed = func() { asked <- struct{}{} }

	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var group errgroup.Group
	group.Go(func() error {
		_, err := g.NextContext(ctx)
		return err
	})
	<-asked
	l.holder.Grant(generator.Grant{Node: 2, Floor: 1, Limit: math.MaxUint64, Renew: math.MaxUint64})
	require.NoError(t, group.Wait(), "another node number will do")
	assert.EqualValues(t, 2, g.Node())

	l.first.Node = 3
	g = newGenerator(t, generator.WithLease(l), generator.WithStrategy(strategies.Reject()))
	cause := errors.New("no more time")
	short, cancelShort := context.WithTimeoutCause(t.Context(), time.Millisecond, cause)
	defer cancelShort()
	_, err := g.NextContext(short)
	var end *generator.GrantError
	require.ErrorAs(t, err, &end)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorIs(t, err, cause)

	group.Go(func() error {
		_, err := g.NextContext(ctx)
		return err
	})
	for len(asked) > 0 {
		<-asked
	}
	<-asked
	require.NoError(t, g.Close())
	require.ErrorIs(t, group.Wait(), generator.ErrClosed)
}
