package chaos_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
)

// afterStepBack checks a claim for a clock that has gone back by step since the last
// ID: the next free slot is step ahead.
func (w *world) afterStepBack(step time.Duration) {
	w.Helper()
	stall, err := w.next()
	switch {
	case !w.raw:
		assert.NoError(w, err, "a monoclock is unaffected")
		assert.Zero(w, stall)
	case step > w.bends():
		assert.ErrorIs(w, err, generator.ErrBehind)
		var lead *generator.LeadError
		if assert.ErrorAs(w, err, &lead) {
			assert.Equal(w, step, lead.Lead)
		}
		assert.Zero(w, stall, "rejected at once")
	case step > w.borrow():
		assert.NoError(w, err)
		assert.Equal(w, step-w.borrow(), stall, "waits until the rest can be borrowed")
	default:
		assert.NoError(w, err)
		assert.Zero(w, stall)
	}
	if w.raw {
		assert.GreaterOrEqual(w, w.gen.Stats().MaxLead, step)
	} else {
		assert.Zero(w, w.gen.Stats().MaxLead)
	}
}

// recovers lets the wall pass the last ID; from then on calls are served.
func (w *world) recovers(step time.Duration) {
	w.Helper()
	w.clock.Add(step)
	w.served(3)
	assert.LessOrEqual(w, w.gen.Stats().Lead, w.borrow())
}

var smallSteps = []time.Duration{time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond}
var largeSteps = []time.Duration{time.Second, time.Hour, 365 * 24 * time.Hour}

func stepBack(steps []time.Duration) func(w *world) {
	return func(w *world) {
		for _, step := range steps {
			w.clock.Add(time.Second) // a new tick, whatever was borrowed in the last
			w.served(1)
			w.clock.Step(-step)
			w.afterStepBack(step)
			w.recovers(step)
		}
	}
}

func TestF1_StepBackSmall_Exact(t *testing.T) { inEveryWorld(t, stepBack(smallSteps)) }
func TestF2_StepBackLarge_Exact(t *testing.T) { inEveryWorld(t, stepBack(largeSteps)) }

// A bad NTP server, then a good one.
func TestF4_ForwardThenBack_Exact(t *testing.T) {
	inEveryWorld(t, func(w *world) {
		w.served(3)
		w.clock.Step(time.Hour)
		w.served(1)
		if !w.raw {
			assert.Equal(w, time.Hour, w.gen.Stats().Drift)
		}
		w.clock.Step(-time.Hour)
		w.afterStepBack(time.Hour)
		w.recovers(time.Hour)
	})
}

// Many steps, also into the same range twice: no slot is issued twice, also after an error.
func TestF5_RepeatedSteps_Exact(t *testing.T) {
	inEveryWorld(t, func(w *world) {
		for i := range 200 {
			for range 5 {
				w.next()
			}
			w.clock.Step(-time.Duration(i%4) * time.Millisecond)
			w.clock.Add(time.Duration(i%3) * time.Millisecond)
		}
		w.recovers(time.Second)
		require.Greater(w, len(w.issued), 15)
	})
}

// The wall and the monotonic clock stand still: the tick is used up, then the ticks that
// may be borrowed, and then the strategy's wait.
func TestF7_Freeze_Exact(t *testing.T) {
	inEveryWorld(t, func(w *world) {
		w.clock.Freeze(time.Hour)
		ticks := min(1+int(w.borrow()/time.Millisecond), 2000)
		w.served(16 * ticks)
		switch {
		case w.borrow() > time.Hour: // would go on for long
		case w.wait() == generatortest.Forever:
			w.untilThaw()
		default:
			// A wait counts with the lead that is left: 5 s less 1 s borrowed.
			stall, err := w.next()
			assert.Error(w, err)
			assert.Equal(w, max(0, w.wait()-w.borrow()), stall)
		}
		w.clock.Freeze(0)
		w.recovers(w.borrow() + time.Second)
	})
}

// untilThaw makes a call that waits for a frozen clock, and ends when the clock moves.
func (w *world) untilThaw() {
	done := make(chan error, 1)
	go func() { _, err := w.gen.Next(); done <- err }()
	for range 20 { // each a wait for a tick that does not come
		synctest.Wait()
		require.Empty(w, done)
		w.clock.Add(time.Millisecond)
	}
	w.clock.Freeze(0)
	w.clock.Add(2 * time.Millisecond)
	synctest.Wait()
	require.NoError(w, <-done)
}

// Demand above the ceiling: every tick is filled, and every caller is served.
func TestF16_Exhaustion_Exact(t *testing.T) {
	inEveryWorld(t, func(w *world) {
		const callers, each = 8, 100
		const ticks = callers * each / 16
		var mu sync.Mutex
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for served := 0; served < each; {
					id, err := w.gen.Next()
					mu.Lock()
					if err == nil {
						served++
						assert.False(w, w.issued[id], "%d twice", id)
						w.issued[id] = true
					} else {
						w.checkError(err)
					}
					mu.Unlock()
					if err != nil { // out of patience: come back in the next tick
						<-w.clock.Mock.After(time.Millisecond)
					}
				}
			})
		}
		for range ticks - 1 {
			synctest.Wait()
			w.clock.Add(time.Millisecond)
		}
		all.Wait() // a deadlock here is a caller that is still not served
		assert.Len(w, w.issued, callers*each)
		if w.borrow() == 0 {
			assert.Zero(w, w.gen.Stats().BorrowedTicks)
		}
	})
}

// The last slot of the last tick, and nothing after it.
func TestF17_EndOfTime_Exact(t *testing.T) {
	inEveryWorld(t, func(w *world) {
		l := layout()
		l.TimeBits = 3
		l.Epoch = noon
		var read monoclock.Interface = w.clock
		if !w.raw {
			read = monoclock.New(monoclock.WithSource(w.clock))
		}
		w.clock.Add(7 * time.Millisecond) // the last tick
		gen, err := generator.New(generator.WithNode(0), generator.WithClock(read), generator.WithStrategy(w.strategy), generator.WithLayout(l))
		require.NoError(w, err)
		if !w.raw {
			// A monoclock made late begins at the wall's time, as one made early
			// would have reached it.
			require.Equal(w, noon.Add(7*time.Millisecond), read.Now())
		}
		last := snowflake.ID(0)
		for range 16 {
			id, err := gen.Next()
			require.NoError(w, err)
			require.Greater(w, id, last)
			last = id
		}
		for range 3 {
			id, err := gen.Next()
			assert.Zero(w, id)
			require.ErrorIs(w, err, lease.ErrEndOfTime)
			assert.ErrorContains(w, err, noon.Add(8*time.Millisecond).Format(time.RFC3339Nano))
			w.clock.Add(time.Hour)
		}
		_, err = generator.New(generator.WithNode(0), generator.WithClock(read), generator.WithLayout(l))
		assert.ErrorIs(w, err, snowflake.ErrLayout, "a new generator does not start either")
	})
}

// No battery, no network: the clock says 1970.
func TestF18_BeforeEpoch_Exact(t *testing.T) {
	inEveryWorld(t, func(w *world) {
		w.clock.Step(-56 * 365 * 24 * time.Hour)
		var read monoclock.Interface = w.clock
		if !w.raw {
			read = monoclock.New(monoclock.WithSource(w.clock))
		}
		_, err := generator.New(generator.WithNode(0), generator.WithClock(read), generator.WithStrategy(w.strategy))
		require.ErrorIs(w, err, snowflake.ErrLayout)
		assert.ErrorContains(w, err, "2025-01-01T00:00:00Z")
		assert.ErrorContains(w, err, "1970-06-15T12:00:00Z")
	})
}

// The machine sleeps: monotonic time stops, and the wall goes on. A monoclock lags by
// the suspend and shows it as drift; with resync it catches up within a second, unless
// the suspend was longer than its limit. The raw wall jumps ahead.
func TestF9_Suspend_Exact(t *testing.T) {
	for _, suspend := range []time.Duration{2 * time.Second, time.Hour, 25 * time.Hour} {
		clock := clocktest.NewVirtual(noon)
		mono := monoclock.New(monoclock.WithSource(clock))
		resync := monoclock.New(monoclock.WithSource(clock), monoclock.WithResync(time.Second, 24*time.Hour))
		idsOf := func(read monoclock.Interface) func() time.Time {
			gen, err := generator.New(generator.WithNode(0), generator.WithClock(read))
			require.NoError(t, err)
			return func() time.Time {
				id, err := gen.Next()
				require.NoError(t, err)
				d, err := gen.Layout().Decode(id)
				require.NoError(t, err)
				return d.Time
			}
		}
		raw, lagging, catching := idsOf(clock), idsOf(mono), idsOf(resync)

		clock.Suspend(suspend)
		assert.Equal(t, noon.Add(suspend), raw())
		assert.Equal(t, noon, lagging())
		assert.Equal(t, suspend, mono.Drift())
		clock.Advance(time.Second)
		assert.Equal(t, noon.Add(time.Second), lagging())
		if suspend > 24*time.Hour {
			assert.Equal(t, noon.Add(time.Second), catching(), "not believed")
			assert.Equal(t, suspend, resync.Drift())
		} else {
			assert.Equal(t, noon.Add(suspend+time.Second), catching())
			assert.Zero(t, resync.Drift())
		}
	}
}
