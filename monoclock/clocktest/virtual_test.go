package clocktest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/monoclock/clocktest"
)

func TestAdvanceWakesInOrder(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	v.Slew(2, time.Hour)
	three, one, also, late := v.After(3*sec), v.After(sec), v.After(sec), v.After(time.Minute)
	assert.Equal(t, []time.Duration{sec, sec, 3 * sec, time.Minute}, v.Waiting())

	assert.Zero(t, v.Advance(sec-1))
	assert.Zero(t, v.Advance(-sec), "time does not go back")
	assert.Equal(t, sec-1, v.Passed())
	assert.Equal(t, []time.Duration{1, 1, 2*sec + 1, 59*sec + 1}, v.Waiting())

	assert.Equal(t, 3, v.Advance(9*sec+1))
	assert.Equal(t, 10*sec, v.Passed())
	assert.Equal(t, noon.Add(2*sec), <-one, "the wall stands at the deadline")
	assert.Equal(t, noon.Add(2*sec), <-also)
	assert.Equal(t, noon.Add(6*sec), <-three)
	assert.Equal(t, []time.Duration{50 * sec}, v.Waiting())
	assert.Empty(t, late)
	for _, nothing := range []time.Duration{0, -1, -forever} {
		assert.Len(t, v.After(nothing), 1, "no wait for nothing")
		v.Sleep(nothing)
	}
}

func TestAutoAdvance(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	due, same, late := v.After(sec), v.After(2*sec), v.After(time.Hour)
	v.AutoAdvance(true)
	over := v.After(2 * sec)
	require.Len(t, over, 1)
	assert.Equal(t, noon.Add(2*sec), <-over)
	assert.Equal(t, noon.Add(sec), <-due, "woken on the way")
	assert.Equal(t, noon.Add(2*sec), <-same)
	assert.Empty(t, late)
	v.Sleep(sec)
	assert.Equal(t, 3*sec, v.Passed())

	v.AutoAdvance(false)
	assert.Empty(t, v.After(sec))
	assert.Equal(t, 3*sec, v.Passed())
}

func TestBlockUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clocktest.NewVirtual(noon)
		require.NoError(t, v.BlockUntil(t.Context(), 0))
		require.NoError(t, v.BlockUntil(t.Context(), -1))

		var two, three atomic.Bool
		go func() { two.Store(v.BlockUntil(t.Context(), 2) == nil) }()
		go func() { three.Store(v.BlockUntil(t.Context(), 3) == nil) }()
		wait := func(d time.Duration) {
			v.After(d)
			synctest.Wait()
		}
		synctest.Wait()
		wait(sec)
		assert.False(t, two.Load())
		wait(2 * sec)
		assert.True(t, two.Load())
		v.Advance(sec) // one wakes: three are not reached by those who waited once
		wait(sec)
		assert.False(t, three.Load())
		wait(sec)
		assert.True(t, three.Load())

		ctx, cancel := context.WithTimeout(t.Context(), sec) // in the bubble's time
		defer cancel()
		err := v.BlockUntil(ctx, 4)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "clocktest: 3 wait, not 4: context deadline exceeded")
		assert.NoError(t, v.BlockUntil(ctx, 3), "they wait already, whatever the context")
		v.After(sec) // finds no one left to tell
	})
}

// OnRead's function is called before each reading, and may change the clock.
func TestOnRead(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		calls := 0
		c.OnRead(func() {
			calls++
			c.Step(-sec) // would deadlock under a lock
		})
		assert.Equal(t, noon.Add(-sec), c.Now(), "the reading shows the change")
		assert.Equal(t, noon.Add(-2*sec), c.Wall())
		assert.Zero(t, c.Elapsed())
		c.Passed()
		c.pass(sec)
		assert.Equal(t, 3, calls, "no readings")
		c.OnRead(nil)
		c.Now()
		assert.Equal(t, 3, calls)
	})
}

// A Mock's timers, and the times that they send, go by true time; Now, Since and Until show the wall.
func TestMock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clocktest.NewMock(noon)
		timer := m.Timer(sec)
		m.Step(-time.Hour)
		m.Suspend(time.Minute)
		m.Add(sec - 1)
		assert.Empty(t, timer.C)
		m.Add(1)
		assert.Equal(t, noon.Add(sec), <-timer.C)
		assert.Equal(t, noon.Add(sec-59*time.Minute), m.Now())
		assert.Equal(t, sec-59*time.Minute, m.Since(noon))
		assert.Equal(t, 59*time.Minute-sec, m.Until(noon))
		m.Set(noon.Add(-time.Hour))
		assert.Equal(t, sec, m.Passed(), "true time does not go back")
	})
}

// Readers, waiters, a mover and faults at once: every sleeper wakes, in its own
// time, and no monotonic reading goes back.
func TestConcurrency(t *testing.T) {
	const sleepers, sleeps = 8, 200
	v := clocktest.NewVirtual(noon)
	var slept, others sync.WaitGroup
	for i := range sleepers {
		slept.Go(func() {
			for j := range sleeps {
				d, began := time.Duration(1+(i*j)%7), v.Passed()
				v.Sleep(d)
				assert.GreaterOrEqual(t, v.Passed(), began+d)
			}
		})
	}
	var done atomic.Bool
	others.Go(func() {
		for last := time.Duration(0); !done.Load(); v.Waiting() {
			v.Now()
			now := v.Elapsed()
			if !assert.GreaterOrEqual(t, now, last) {
				return
			}
			last = now
		}
	})
	others.Go(func() {
		for i := 0; !done.Load(); i++ {
			v.Step(time.Duration(i%3 - 1))
			v.Slew(float64(i%3), 10)
			v.Freeze(time.Duration(i % 5))
			v.Coarse(time.Duration(i % 4))
			v.Suspend(1)
			v.LeapSecond()
			v.OnRead(func() {})
		}
	})
	for woken := 0; woken < sleepers*sleeps; {
		require.NoError(t, v.BlockUntil(t.Context(), 1))
		woken += v.Advance(3)
	}
	slept.Wait()
	done.Store(true)
	others.Wait()
	assert.Empty(t, v.Waiting())
}

func TestReadingsDoNotAllocate(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		c.Coarse(ms)
		c.OnRead(func() {})
		assert.Zero(t, testing.AllocsPerRun(100, func() { c.Now(); c.Wall(); c.Elapsed(); c.Passed() }))
	})
}
