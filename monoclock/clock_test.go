package monoclock_test

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// on returns a machine at noon that has run for a while, and a Clock on it.
func on(options ...monoclock.Option) (*clocktest.Virtual, *monoclock.Clock) {
	machine := clocktest.NewVirtual(noon.Add(-42 * time.Hour))
	machine.Advance(42 * time.Hour)
	return machine, monoclock.New(append(options, monoclock.WithSource(machine))...)
}

func TestClockKeepsItsBase(t *testing.T) {
	for _, step := range []time.Duration{-time.Millisecond, -time.Second, -time.Hour, -365 * 24 * time.Hour, time.Hour} {
		machine, c := on()
		assert.Equal(t, noon, c.Now())
		machine.Advance(3 * time.Second)
		assert.Equal(t, noon.Add(3*time.Second), c.Now())

		machine.Step(step)
		assert.Equal(t, noon.Add(3*time.Second), c.Now(), "after a step of %s", step)
		assert.Equal(t, step, c.Drift())
		machine.Advance(1)
		assert.Equal(t, noon.Add(3*time.Second+1).UnixNano(), c.UnixNano())
	}
}

func TestDrift(t *testing.T) {
	machine, c := on()
	machine.Suspend(time.Hour) // monotonic time stands still
	assert.Equal(t, noon, c.Now())
	assert.Equal(t, time.Hour, c.Drift())
	machine.Slew(0.5, time.Second)
	machine.Advance(time.Second)
	assert.Equal(t, noon.Add(time.Second), c.Now())
	assert.Equal(t, time.Hour-500*time.Millisecond, c.Drift())
	machine.Step(math.MinInt64)
	machine.Step(math.MinInt64)
	assert.Equal(t, time.Duration(math.MinInt64), c.Drift(), "it saturates")
}

// A Clock looks at the wall clock once a second, and catches up with one that is ahead by more than
// the threshold and at most the limit.
func TestResync(t *testing.T) {
	const threshold, limit = time.Second, time.Hour
	inside := monoclock.WithResync(threshold, limit)
	for name, tt := range map[string]struct {
		option          monoclock.Option
		drift, caughtUp time.Duration
	}{
		"behind":               {inside, -time.Hour, 0},
		"none":                 {inside, 0, 0},
		"at the threshold":     {inside, threshold, 0},
		"above it":             {inside, threshold + 1, threshold + 1},
		"at the limit":         {inside, limit, limit},
		"above the limit":      {inside, limit + 1, 0},
		"a negative threshold": {monoclock.WithResync(-time.Second, limit), -time.Second / 2, 0},
		"limit = threshold":    {monoclock.WithResync(limit, limit), limit, 0},
		"a negative limit":     {monoclock.WithResync(-2, -1), limit, 0},
		"off":                  {nil, limit, 0},
	} {
		t.Run(name, func(t *testing.T) {
			machine, c := on(tt.option)
			machine.Step(time.Minute)
			assert.Equal(t, noon, c.Now(), "does not look yet")
			machine.Step(-time.Minute)
			machine.Advance(time.Second)
			assert.Equal(t, noon.Add(time.Second), c.Now(), "looks")
			machine.Step(tt.drift)
			machine.Advance(time.Second - 1)
			assert.Equal(t, noon.Add(2*time.Second-1), c.Now(), "does not look again yet")
			machine.Advance(1)
			assert.Equal(t, noon.Add(2*time.Second+tt.caughtUp), c.Now())
			assert.Equal(t, tt.drift-tt.caughtUp, c.Drift())
		})
	}
}

// A wall clock beyond 2200 is ignored, with any limit, and a Clock that is made under it, or under one
// before 1970, stays within its range.
func TestWildWallClocks(t *testing.T) {
	for year, bound := range map[int]int{1700: 1970, 2201: 2200, 2262: 2200} {
		machine, c := on(monoclock.WithResync(0, math.MaxInt64))
		machine.Step(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Sub(noon))
		machine.Advance(time.Second)
		assert.Equal(t, noon.Add(time.Second), c.Now())

		c = monoclock.New(monoclock.WithSource(machine))
		before := c.Now()
		assert.Equal(t, bound, before.Year())
		machine.Advance(50 * 365 * 24 * time.Hour)
		assert.True(t, c.Now().After(before))
	}
}

// Many readers meet every due look. Each reader's time never goes back, and a
// drift is added once however many of them saw it.
func TestResyncAmongReaders(t *testing.T) {
	machine, c := on(monoclock.WithResync(0, time.Hour))
	var readers errgroup.Group
	var done atomic.Bool
	for range 4 {
		readers.Go(func() error {
			for last := int64(0); !done.Load(); {
				now := c.UnixNano()
				if now < last {
					t.Errorf("went back by %s", time.Duration(last-now))
				}
				last = now
			}
			return nil
		})
	}
	for range 2000 {
		machine.Step(time.Millisecond)
		machine.Advance(time.Second)
		c.UnixNano()
	}
	done.Store(true)
	require.NoError(t, readers.Wait())
	assert.LessOrEqual(t, c.UnixNano(), machine.Wall().UnixNano(), "ran ahead of the wall clock")
}

// The machine's own clocks, with testing/synctest's time in their place, in which no time passes
// between two readings.
func TestSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := monoclock.New()
		assert.Nil(t, c.Source())
		time.Sleep(90 * time.Minute)
		assert.Equal(t, begin.Add(90*time.Minute).UnixNano(), c.UnixNano())
		assert.Equal(t, begin.Add(90*time.Minute).UTC(), c.Now())
		assert.Zero(t, c.Drift())
		start, base, ok := seam.Steady(c)
		require.True(t, ok)
		assert.Equal(t, c.UnixNano(), base+int64(time.Since(start)))
	})
	_, sourced := on()
	for name, c := range map[string]monoclock.Interface{
		"source": sourced,
		"resync": monoclock.New(monoclock.WithResync(0, time.Second)),
		"nil":    (*monoclock.Clock)(nil),
		"other":  struct{ monoclock.Interface }{monoclock.New()},
	} {
		_, _, ok := seam.Steady(c)
		assert.False(t, ok, name)
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	c := monoclock.New(monoclock.WithResync(time.Millisecond, time.Hour))
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.UnixNano(); c.Now(); c.Drift() }))
}
