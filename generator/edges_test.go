package generator_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

func TestNodeInItsPlace(t *testing.T) {
	for _, order := range []snowflake.Order{snowflake.TimeNodeSequence, snowflake.TimeSequenceNode} {
		l := snowflake.Default()
		l.Order = order
		g := newGenerator(t, generator.WithClock(newHandClock()), generator.WithLayout(l), generator.WithNode(777))
		mustNext(t, g)
		want, err := l.Compose(noon, 777, 1)
		require.NoError(t, err)
		assert.Equal(t, want, mustNext(t, g))
	}
}

// A clock that goes back before the first call is behind, not exhausted: nothing
// was issued, and what was before the start is not this generator's.
func TestStepBackBeforeTheFirstCall(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, time.Hour} {
		c := newHandClock()
		g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Reject()))
		c.step(-step)
		_, err := g.Next()
		assert.ErrorIs(t, err, generator.ErrBehind)
		assert.NotErrorIs(t, err, generator.ErrExhausted)
		assert.Equal(t, step, g.Stats().Lead, "that of the ID to come")
	}
}

// The very first tick of a layout can be borrowed, and counts as any other.
func TestBorrowOfTheFirstTick(t *testing.T) {
	l := snowflake.Default()
	l.Epoch = noon
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithStrategy(strategies.BorrowUpTo(time.Second)))
	c.step(-time.Millisecond)
	assert.Zero(t, mustNext(t, g))
	assert.EqualValues(t, 1, mustNext(t, g))
	assert.EqualValues(t, 1, g.Stats().BorrowedTicks)
	assert.Equal(t, time.Millisecond, g.Stats().MaxLead)
}

// A generator that starts in the very first tick of its layout.
func TestStartAtTheEpoch(t *testing.T) {
	l := snowflake.Default()
	l.Epoch = noon
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithStrategy(strategies.Reject()))
	assert.Zero(t, g.Stats().Lead)
	c.step(-time.Hour)
	_, err := g.Next()
	assert.ErrorIs(t, err, generator.ErrBehind)
	c.step(time.Hour)
	assert.Zero(t, mustNext(t, g), "the ID 0 is an ID")
	c.step(-time.Nanosecond)
	_, err = g.Next()
	assert.ErrorIs(t, err, generator.ErrBehind)
}

func TestClockFarBeforeTheEpoch(t *testing.T) {
	l := snowflake.Layout{Epoch: noon.AddDate(-50, 0, 0), Tick: time.Millisecond, TimeBits: 45, SequenceBits: 10}
	for _, started := range []time.Time{noon, l.Epoch.AddDate(200, 0, 0)} {
		c := newHandClock()
		c.set(started)
		g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithStrategy(strategies.Reject()))
		mustNext(t, g)
		for _, at := range []time.Time{l.Epoch.Add(-1), l.Epoch.AddDate(-100, 0, 0), l.Epoch.AddDate(-260, 0, 0), {}} {
			c.set(at)
			_, err := g.Next()
			var lead *generator.LeadError
			require.ErrorAs(t, err, &lead)
			assert.Equal(t, strategies.Behind, lead.Cause)
			assert.GreaterOrEqual(t, lead.Lead, started.Sub(l.Epoch))
			assert.Positive(t, g.Stats().Lead)
		}
	}
}

// Nanoseconds since 1970 end in 2262, whatever the layout lasts.
func TestEndOfNanoseconds(t *testing.T) {
	l := snowflake.Layout{Epoch: noon, Tick: time.Millisecond, TimeBits: 49, NodeBits: 9, SequenceBits: 5}
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l))
	mustNext(t, g)
	for _, year := range []int{2263, 2400, 9999} {
		c.set(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		_, err := g.Next()
		require.ErrorIs(t, err, lease.ErrEndOfTime)
		assert.ErrorContains(t, err, "no generator issues IDs after 2262-04-11")
		_, err = generator.New(generator.WithNode(0), generator.WithClock(c), generator.WithLayout(l))
		assert.ErrorIs(t, err, lease.ErrEndOfTime)
		assert.ErrorAs(t, err, new(*stores.OptionError))
	}
	late := l
	late.Epoch = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	c.set(late.Epoch.Add(time.Hour))
	g = newGenerator(t, generator.WithClock(c), generator.WithLayout(late), generator.WithStrategy(strategies.BorrowUpTo(24*time.Hour)))
	c.set(time.Time{})
	_, err := g.Next()
	assert.ErrorIs(t, err, generator.ErrBehind)
}

// A strategy that borrows in its own way gets what it asked for: one reservation,
// within one tick, within the time field.
func TestOwnBorrowEndsWithTheTick(t *testing.T) {
	l := snowflake.Layout{Epoch: noon, Tick: time.Millisecond, TimeBits: 2, NodeBits: 1, SequenceBits: 1}
	c := newHandClock()
	c.step(2 * time.Millisecond)
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithStrategy(borrower{}))
	n, err := g.NextN(make([]snowflake.ID, 10))
	assert.Equal(t, 4, n)
	assert.ErrorIs(t, err, lease.ErrEndOfTime)
	assert.EqualValues(t, 1, g.Stats().BorrowedTicks)
}

// leapClock shows its first time until its so-manieth reading.
type leapClock struct{ readings, leap atomic.Int64 }

func (c *leapClock) Now() time.Time {
	if c.readings.Add(1) > c.leap.Load() {
		return noon.Add(time.Millisecond)
	}
	return noon
}

// The clock moves on between any two readings of a call: what was exhausted at
// one is not at the next, and a strategy is asked only about what is ahead.
func TestClockMovesOnBetweenReadings(t *testing.T) {
	for leap := range int64(8) {
		c := &leapClock{}
		c.leap.Store(math.MaxInt64)
		g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()),
			generator.WithStrategy(strategies.Func(func(s strategies.Situation) strategies.Decision {
				assert.Positive(t, s.Lead)
				return strategies.Decision{}
			})))
		for range 4 {
			mustNext(t, g)
		}
		c.leap.Store(c.readings.Load() + leap)
		_, err := g.Next()
		if leap < 2 {
			assert.NoError(t, err, "seen by the second reading at the latest")
		}
	}
}

// flickerClock shows two times in turn.
type flickerClock struct{ readings atomic.Int64 }

func (c *flickerClock) Now() time.Time {
	return noon.Add(time.Duration(c.readings.Add(1)%2) * time.Hour)
}

func TestFlickeringClockEndsEveryCall(t *testing.T) {
	g := newGenerator(t, generator.WithClock(&flickerClock{}), generator.WithStrategy(strategies.Reject()))
	served := 0
	for range 100 {
		if _, err := g.Next(); err == nil {
			served++
		}
	}
	assert.Positive(t, served)
}

// A caller that is held up between its reading of the clock and its slot, which
// another has taken meanwhile, neither borrows nor is rejected.
func TestNoLeadOnAnEndlessSequence(t *testing.T) {
	for name, strategy := range map[string]strategies.Strategy{
		"borrow": strategies.BorrowUpTo(time.Hour), "reject": strategies.Reject(),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGenerator(t, generator.WithLayout(wide()), generator.WithStrategy(strategy))
			var group errgroup.Group
			for range 16 {
				group.Go(func() error {
					for range 100_000 {
						if _, err := g.Next(); err != nil {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, group.Wait())
			assert.Zero(t, g.Stats().BorrowedTicks)
			assert.Zero(t, g.Stats().MaxLead)
		})
	}
}

// An embedded clock does not answer in place of what embeds it.
func TestEmbeddedClockIsReadByItsOwnNow(t *testing.T) {
	g := newGenerator(t, generator.WithClock(tomorrow{monoclock.New()}))
	d, err := g.Layout().Decode(mustNext(t, g))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(24*time.Hour), d.Time, time.Minute)
}

type tomorrow struct{ *monoclock.Clock }

func (c tomorrow) Now() time.Time { return c.Clock.Now().Add(24 * time.Hour) }

// racingClock runs hooks while it is being read: what others do after the
// reader's time was taken, and before the reader knows it.
type racingClock struct {
	now   time.Time
	hooks []func()
}

func (c *racingClock) Now() time.Time {
	now := c.now
	if len(c.hooks) > 0 {
		hook := c.hooks[0]
		c.hooks = c.hooks[1:]
		hook()
	}
	return now
}

// Two times in a row, another caller enters a new tick between this caller's
// reading of the clock and its look at the slot. The clock is not behind.
func TestOvertakenTwiceIsNotBehind(t *testing.T) {
	c := &racingClock{now: noon}
	g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Reject()))
	overtake := func() {
		c.now = c.now.Add(time.Millisecond)
		hooks := c.hooks
		c.hooks = nil
		mustNext(t, g)
		c.hooks = hooks
	}
	c.hooks = []func(){overtake, overtake}
	at, _ := decode(t, g, mustNext(t, g))
	assert.Equal(t, 2*time.Millisecond, at)
}
