package generator_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
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

// An embedded clock does not answer in place of what embeds it.
func TestEmbeddedClockIsReadByItsOwnNow(t *testing.T) {
	g := newGenerator(t, generator.WithClock(tomorrow{monoclock.New()}))
	d, err := g.Layout().Decode(mustNext(t, g))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(24*time.Hour), d.Time, time.Minute)
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

// The wait for a monoclock on a fake source is the source's.
func TestWaitsOnASource(t *testing.T) {
	s := &source{handClock: newHandClock()}
	g := newGenerator(t, generator.WithClock(monoclock.New(monoclock.WithSource(s))), generator.WithLayout(narrow()))
	for range 5 {
		mustNext(t, g)
	}
	assert.Equal(t, []time.Duration{time.Millisecond}, s.waits)
	s.step(-time.Second)
	assert.EqualValues(t, 0, g.Stats().Drift, "the source's clocks move together here")
}

type source struct{ *handClock }

func (s *source) Wall() time.Time { return s.Now() }

func (s *source) Elapsed() time.Duration { return s.Now().Sub(noon) }

// benbjohnson's real clock has an After, which is a timer: late, and not what the
// wait is counted by.
func TestRealClockIsWaitedForInTheMachinesTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGenerator(t, generator.WithClock(clock.New()), generator.WithLayout(narrow()))
		for range 5 {
			mustNext(t, g)
		}
		assert.Equal(t, time.Millisecond, g.Stats().Waited)
	})
}

// leapClock shows its first time until its so-manieth reading.
type leapClock struct{ readings, leap atomic.Int64 }

func (c *leapClock) Now() time.Time {
	if c.readings.Add(1) > c.leap.Load() {
		return noon.Add(time.Millisecond)
	}
	return noon
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
