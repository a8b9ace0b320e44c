package monoclock_test

import (
	"context"
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
	machine.Step(time.Hour)
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
		start, base, moved := seam.Steady(c)
		require.NotNil(t, moved)
		assert.Equal(t, c.UnixNano(), base+int64(time.Since(start))+moved.By())
	})
	_, sourced := on()
	for name, c := range map[string]monoclock.Interface{
		"source": sourced,
		"nil":    (*monoclock.Clock)(nil),
		"other":  struct{ monoclock.Interface }{monoclock.New()},
	} {
		_, _, moved := seam.Steady(c)
		assert.Nil(t, moved, name)
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	c := monoclock.New(monoclock.WithResync(time.Millisecond, time.Hour))
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.UnixNano(); c.Now(); c.Drift() }))
}

// A suspend is added by the first reader after a second of monotonic time, once, whatever the wall clock says.
func TestSuspends(t *testing.T) {
	for name, test := range map[string]struct {
		option monoclock.Option
		before func(*clocktest.Virtual)
	}{
		"alone":                           {nil, func(*clocktest.Virtual) {}},
		"the wall steps back":             {nil, func(m *clocktest.Virtual) { m.Step(-3 * time.Hour) }},
		"the wall steps ahead":            {nil, func(m *clocktest.Virtual) { m.Step(3 * time.Hour) }},
		"with resync, which adds no more": {monoclock.WithResync(0, 24*time.Hour), func(*clocktest.Virtual) {}},
	} {
		t.Run(name, func(t *testing.T) {
			machine, c := on(test.option)
			machine.Suspend(time.Minute)
			test.before(machine)
			assert.Equal(t, noon, c.Now(), "does not look yet")
			machine.Advance(time.Second)
			assert.Equal(t, noon.Add(time.Second+time.Minute), c.Now())
			machine.Suspend(time.Hour)
			machine.Advance(time.Second)
			assert.Equal(t, noon.Add(2*time.Second+time.Minute+time.Hour), c.Now())
			machine.Advance(time.Hour)
			c.Now()
			counted, ignored := c.Slept()
			assert.Equal(t, [2]time.Duration{time.Hour + time.Minute, 0}, [2]time.Duration{counted, ignored})
		})
	}
	machine, c := on()
	machine.Suspend(time.Minute)
	assert.Zero(t, c.Drift(), "a suspend that is counted is no drift, also before a reader has looked")

	machine.Suspend(367 * 24 * time.Hour)
	machine.Advance(time.Second)
	assert.Equal(t, noon.Add(time.Second+time.Minute), c.Now(), "a year at once is another machine's")
	machine.Suspend(time.Hour)
	machine.Advance(time.Second)
	assert.Equal(t, noon.Add(2*time.Second+time.Minute+time.Hour), c.Now())
	counted, ignored := c.Slept()
	assert.Equal(t, [2]time.Duration{time.Hour + time.Minute, 367 * 24 * time.Hour}, [2]time.Duration{counted, ignored})

	machine = clocktest.NewVirtual(noon)
	c = monoclock.New(monoclock.WithSource(struct{ monoclock.Source }{machine})) // without BootTime
	machine.Suspend(time.Minute)
	machine.Advance(time.Second)
	assert.Equal(t, noon.Add(time.Second), c.Now())
	assert.Equal(t, time.Minute, c.Drift())
}

// Time passes, or the machine sleeps, between any two readings of a look and of New: the Clock is never ahead of the wall,
// and a suspend counts at most once.
func TestSuspendBetweenReadings(t *testing.T) {
	for _, option := range []monoclock.Option{nil, monoclock.WithResync(0, 24*time.Hour)} {
		for at := range 16 {
			for _, pause := range []func(*clocktest.Virtual){
				func(m *clocktest.Virtual) { m.Suspend(time.Minute) },
				func(m *clocktest.Virtual) { m.Advance(time.Minute) },
			} {
				machine := clocktest.NewVirtual(noon)
				left := at
				machine.OnRead(func() {
					if left--; left == 0 {
						pause(machine)
					}
				})
				c := monoclock.New(option, monoclock.WithSource(machine))
				for i := range 6 {
					if i%2 == 0 {
						machine.Suspend(time.Hour)
					}
					machine.Advance(time.Second)
					now := c.Now()
					assert.False(t, now.After(machine.Wall()), "reading %d: %s, and the wall clock shows %s", at, now, machine.Wall())
				}
			}
		}
	}
}

// The wall clock may be off by 16 s until NTP has set it. AwaitWall waits for that, and for nothing where the kernel says nothing.
func TestAwaitWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		bound, known := 16*time.Second, true
		await := func(ctx context.Context) error {
			return monoclock.AwaitWallBy(ctx, 3*time.Second, func() (time.Duration, bool) {
				if time.Since(begin) >= 20*time.Second {
					bound = 2 * time.Second
				}
				return bound, known
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := await(ctx)
		require.ErrorIs(t, err, monoclock.ErrWall)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "off by up to 16s")
		assert.ErrorContains(t, err, "limit 3s")
		require.NoError(t, await(t.Context()))
		assert.Equal(t, 20*time.Second, time.Since(begin))
		bound, known = 16*time.Second, false
		begin = time.Now()
		require.NoError(t, await(t.Context()))
	})
}
