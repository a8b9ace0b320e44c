package generator_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// noonTick is the tick at which the tests' clocks begin.
const noonTick = 202_478_400_000

// granted returns a generator of a layout whose window the test fills by hand.
func granted(t *testing.T, l snowflake.Layout, c monoclock.Interface, r window.Range, opts ...generator.Option) (*generator.Generator, *window.Ticks) {
	t.Helper()
	w := window.NewTicks(uint8(l.SequenceBits), 1<<l.TimeBits)
	w.Grant(r, r.To)
	return newGenerator(t, append([]generator.Option{generator.WithWindow(w), generator.WithLayout(l), generator.WithClock(c)}, opts...)...), w
}

// leased returns a generator of the narrow layout that holds node 1 from noon for
// limit ticks.
func leased(t *testing.T, limit int64, opts ...generator.Option) (*generator.Generator, *window.Ticks, *handClock) {
	t.Helper()
	c := newHandClock()
	g, w := granted(t, narrow(), c, grant(1, 0, limit), opts...)
	return g, w, c
}

// grant is one of node from tick from to tick to, counted from noon.
func grant(node int64, from, to int64) window.Range {
	return window.Range{Node: node, From: uint64(noonTick + from), To: uint64(noonTick + to)}
}

func TestNoonTick(t *testing.T) {
	assert.EqualValues(t, int64(noonTick), noon.Sub(narrow().Epoch)/time.Millisecond)
}

func TestFloorAheadOfTheClock(t *testing.T) {
	for _, s := range []strategies.Strategy{strategies.Reject(), strategies.BorrowUpTo(5 * time.Millisecond), strategies.WaitUpTo(5 * time.Millisecond)} {
		g, _ := granted(t, narrow(), newHandClock(), grant(1, 5, 9), generator.WithStrategy(s))
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

// Ready tells what a call would meet, also beyond the time that the caller has, and takes nothing.
func TestReady(t *testing.T) {
	const lead = 5 * time.Millisecond
	for _, tt := range []struct {
		strategy strategies.Strategy
		wait     time.Duration
		limit    time.Duration // of the error; negative: it is ready
	}{
		{strategies.Reject(), time.Hour, 0},
		{strategies.WaitUpTo(lead), lead, -1},
		{strategies.WaitUpTo(lead), lead - 1, lead - 1},
		{strategies.WaitUpTo(lead - 1), time.Hour, lead - 1},
		{strategies.BorrowUpTo(lead), 0, -1},
		{strategies.BorrowUpTo(lead - 1), time.Hour, lead - 1},
		{strategies.Chain(strategies.BorrowUpTo(lead/5), strategies.Wait()), lead - lead/5, -1},
		{strategies.Chain(strategies.BorrowUpTo(lead/5), strategies.Wait()), 0, lead / 5},
		{borrower{}, 0, -1},
		{strategies.Func(func(strategies.Situation) strategies.Decision { return strategies.Decision{} }), time.Hour, 0},
		{strategies.Func(func(strategies.Situation) strategies.Decision {
			return strategies.Decision{Action: strategies.ActionWait} // for the lead
		}), lead - 1, lead - 1},
	} {
		c := newHandClock()
		g, w := granted(t, narrow(), c, grant(1, 5, 9), generator.WithStrategy(tt.strategy))
		err := g.Ready(tt.wait)
		if tt.limit < 0 {
			assert.NoError(t, err, "%v, %s", tt.strategy, tt.wait)
		} else {
			var ahead *generator.LeadError
			require.ErrorAs(t, err, &ahead)
			assert.Equal(t, generator.LeadError{Cause: strategies.Behind, Lead: lead, Limit: tt.limit}, *ahead)
		}
		c.step(lead)
		require.NoError(t, g.Ready(0))
		assert.Equal(t, generator.Stats{Granted: 4 * time.Millisecond}, g.Stats(), "nothing is counted")
		for range 4 {
			mustNext(t, g)
		}
		assert.NoError(t, g.Ready(0), "the next tick is about to begin")
		c.step(4 * time.Millisecond)
		assert.ErrorIs(t, g.Ready(time.Hour), generator.ErrNotGranted)
		assert.Empty(t, w.More(), "the keeper is not asked")
		assert.Empty(t, c.waited())
		c.set(narrow().End())
		assert.ErrorIs(t, g.Ready(0), lease.ErrEndOfTime)
		w.Seal()
		assert.ErrorIs(t, g.Ready(0), generator.ErrClosed)
	}
}

func TestGrantEnds(t *testing.T) {
	g, w, c := leased(t, 2, generator.WithStrategy(strategies.Reject()))
	away := errors.New("store is away")
	w.Fail(away)
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
		assert.Equal(t, generator.GrantError{Node: 1, Limit: noon.Add(2 * time.Millisecond), Past: time.Second, Err: away}, *end)
		require.ErrorIs(t, err, generator.ErrNotGranted)
		require.ErrorIs(t, err, away)
		assert.EqualError(t, err, "grant of node 1 ended at 2026-06-01T12:00:00.002Z, 1s ago, and there is no further one: store is away")
		assert.NotEmpty(t, w.More(), "the keeper is asked")
		<-w.More()
	}
	assert.Equal(t, -time.Second, g.Stats().Granted)

	w.Grant(grant(1, 0, 2_000), noonTick+2_000)
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

// A grant beyond the time field ends with it.
func TestGrantBeyondTime(t *testing.T) {
	layout := narrow()
	layout.TimeBits = 38 // 2^38 ms end in September 2028
	c := newHandClock()
	c.set(layout.End().Add(-2 * time.Millisecond))
	g, w := granted(t, layout, c, window.Range{Node: 1, To: math.MaxUint64}, generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	for range 8 {
		mustNext(t, g)
	}
	_, err := g.Next()
	require.ErrorIs(t, err, lease.ErrEndOfTime)
	w.Grant(window.Range{Node: 2, From: 1 << 60, To: math.MaxUint64}, math.MaxUint64)
	_, err = g.Next()
	require.ErrorIs(t, err, lease.ErrEndOfTime)
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
		})
	}
	t.Run("lost for good", func(t *testing.T) {
		g, w, clock := leased(t, 1, generator.WithStrategy(strategies.Wait()))
		clock.step(time.Minute)
		w.Fail(lease.ErrLost)
		_, err := g.Next()
		require.ErrorIs(t, err, lease.ErrLost)
	})
}

func TestDeadlineWaitsForAGrant(t *testing.T) { inBubble(t, deadlineWaitsForAGrant) }

func deadlineWaitsForAGrant(t *testing.T) {
	spent := window.Range{Node: 1, To: 1}
	all := uint64(math.MaxUint64)
	g, w := granted(t, narrow(), monoclock.New(), spent, generator.WithStrategy(strategies.Reject()))

	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var group errgroup.Group
	group.Go(func() error {
		_, err := g.NextContext(ctx)
		return err
	})
	<-w.More()
	w.Grant(window.Range{Node: 2, From: 1, To: all}, all)
	require.NoError(t, group.Wait(), "another node number will do")
	assert.EqualValues(t, 2, g.Node())

	g, w = granted(t, narrow(), monoclock.New(), spent, generator.WithStrategy(strategies.Reject()))
	cause := errors.New("no more time")
	short, cancelShort := context.WithTimeoutCause(t.Context(), time.Millisecond, cause)
	defer cancelShort()
	_, err := g.NextContext(short)
	var end *generator.GrantError
	require.ErrorAs(t, err, &end)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorIs(t, err, cause)

	<-w.More()
	group.Go(func() error {
		_, err := g.NextContext(ctx)
		return err
	})
	<-w.More()
	require.NoError(t, g.Close())
	require.ErrorIs(t, group.Wait(), generator.ErrClosed)
}

// A change of the node number keeps the order, whichever number is larger.
func TestChangeOfNodeKeepsOrder(t *testing.T) {
	for _, order := range []snowflake.Order{snowflake.TimeNodeSequence, snowflake.TimeSequenceNode} {
		layout := narrow()
		layout.Order = order
		g, w := granted(t, layout, newHandClock(), grant(1, 0, 1_000), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
		s, last := g.Stream(), snowflake.ID(-1)
		for i := range int64(50) {
			id := mustNext(t, g)
			require.Greater(t, id, last)
			d, err := layout.Decode(id)
			require.NoError(t, err)
			require.Equal(t, g.Node(), d.Node)
			if last, err = s.Next(); i%3 == 0 {
				require.NoError(t, err)
				require.Greater(t, last, id)
			} else {
				last = id
			}
			w.Grant(grant((i*7+2)%4, 0, 1_000+i), noonTick+1_000)
		}
		// A number that comes with a floor further ahead begins there.
		w.Grant(grant(3, 500, 2_000), noonTick+2_000)
		w.Grant(grant(0, 700, 2_000), noonTick+2_000)
		d, err := layout.Decode(mustNext(t, g))
		require.NoError(t, err)
		assert.Equal(t, 700*time.Millisecond, d.Time.Sub(noon))
		assert.Zero(t, d.Node)
	}
}

// The tick in which a node number changes counts as used up, not as a clock that is
// behind, so a caller that waits for the next tick goes on.
func TestChangeOfNodeCostsTheTick(t *testing.T) {
	g, w, _ := leased(t, 100, generator.WithStrategy(strategies.PerCause(strategies.Wait(), strategies.Reject())))
	mustNext(t, g)
	w.Grant(grant(0, 0, 100), noonTick+100)
	at, _ := decode(t, g, mustNext(t, g))
	assert.Equal(t, time.Millisecond, at)
}

// Callers of all kinds, while the node number changes under them: each slot once,
// in order.
func TestChangesAmongCallers(t *testing.T) {
	layout := wide()
	layout.NodeBits, layout.SequenceBits = 2, 14
	all := uint64(math.MaxUint64)
	g, w := granted(t, layout, monoclock.New(), window.Range{Node: 1, To: all}, generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))

	stop := make(chan struct{})
	var changes errgroup.Group
	changes.Go(func() error {
		for node := int64(0); ; node = (node + 3) % 4 {
			select {
			case <-stop:
				return nil
			default:
				w.Grant(window.Range{Node: node, To: all}, all)
			}
		}
	})
	var mu sync.Mutex
	var ids []snowflake.ID
	callers := 0
	history := record(t, 3, 3_000, func() func() (first, last snowflake.ID, err error) {
		callers++
		batch := make([]snowflake.ID, 1+callers%3)
		return func() (first, last snowflake.ID, err error) {
			n, err := g.NextN(batch)
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, batch[:n]...)
			return batch[0], batch[len(batch)-1], err
		}
	})
	close(stop)
	require.NoError(t, changes.Wait())
	checkOrder(t, history, func(a, b snowflake.ID) bool { return a < b })
	slices.Sort(ids)
	assert.Equal(t, len(ids), len(slices.Compact(ids)))
}

// TestRevoked guards that the error after a grant was revoked names where IDs ended.
func TestRevoked(t *testing.T) {
	g, w, _ := leased(t, 100, generator.WithStrategy(strategies.Reject()))
	mustNext(t, g)
	w.Revoke()
	_, err := g.Next()
	var end *generator.GrantError
	require.ErrorAs(t, err, &end)
	assert.Equal(t, noon.Add(time.Millisecond), end.Limit)
	assert.Equal(t, time.Millisecond, g.Stats().Granted)
}

func TestSealedWindow(t *testing.T) {
	g, w, _ := leased(t, 100)
	s := g.Stream()
	_, err := s.Next()
	require.NoError(t, err)
	w.Seal()
	_, err = g.Next()
	require.ErrorIs(t, err, generator.ErrClosed)
	_, err = s.Next()
	require.ErrorIs(t, err, generator.ErrClosed)
	require.NoError(t, g.Close())
}
