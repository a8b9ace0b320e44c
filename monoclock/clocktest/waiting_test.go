package clocktest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// blocker is what a test of BlockUntil needs of either clock.
type blocker interface {
	BlockUntil(context.Context, int) error
}

func TestBlockUntil(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		until := c.faulty.(blocker).BlockUntil
		require.NoError(t, until(t.Context(), 0))
		require.NoError(t, until(t.Context(), -1))

		var two, three atomic.Bool
		go func() { two.Store(until(t.Context(), 2) == nil) }()
		go func() { three.Store(until(t.Context(), 3) == nil) }()
		synctest.Wait()
		c.After(sec)
		synctest.Wait()
		assert.False(t, two.Load())
		c.After(2 * sec)
		synctest.Wait()
		assert.True(t, two.Load())
		assert.False(t, three.Load())

		c.pass(sec) // one wakes: three are not reached by those who waited once
		c.After(sec)
		synctest.Wait()
		assert.False(t, three.Load())
		c.After(sec)
		synctest.Wait()
		assert.True(t, three.Load())
		require.NoError(t, until(t.Context(), 3), "they wait already")
	})
}

func TestBlockUntilContextEnds(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		until := c.faulty.(blocker).BlockUntil
		c.After(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), sec) // in the bubble's time
		defer cancel()
		err := until(ctx, 2)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "clocktest: 1 wait, not 2: context deadline exceeded")
		assert.NoError(t, until(ctx, 1), "they wait already, whatever the context")
		c.After(sec) // finds no one left to tell
	})
}

func TestMockTimersGoByTrueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clocktest.NewMock(noon)
		timer, ticker := m.Timer(2*sec), m.Ticker(sec)
		called := make(chan time.Time, 1)
		m.AfterFunc(3*sec, func() { called <- m.Now() })
		assert.Equal(t, []time.Duration{2 * sec, 3 * sec}, m.Waiting(), "tickers do not count")

		m.Step(-time.Hour)
		m.Freeze(time.Hour)
		m.Suspend(time.Minute)
		m.Add(sec)
		require.Len(t, ticker.C, 1)
		assert.Equal(t, noon.Add(sec), <-ticker.C)
		assert.Empty(t, timer.C)
		m.Set(noon.Add(2 * sec))
		assert.Equal(t, noon.Add(2*sec), <-timer.C)
		assert.Equal(t, []time.Duration{sec}, m.Waiting())
		m.Add(sec)
		assert.Equal(t, noon.Add(-59*time.Minute), <-called, "the faulty wall")
		assert.Empty(t, m.Waiting())

		assert.Equal(t, -59*time.Minute, m.Since(noon))
		assert.Equal(t, 59*time.Minute, m.Until(noon))
	})
}

func TestMockTimeDoesNotGoBack(t *testing.T) {
	m := clocktest.NewMock(noon)
	over := m.After(2 * sec)
	m.Add(sec)
	m.Add(-sec)
	m.Set(noon)
	assert.Equal(t, sec, m.Passed())
	assert.Equal(t, []time.Duration{sec}, m.Waiting())
	m.Add(sec)
	assert.Len(t, over, 1)
}

func TestMockRestartStopsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clocktest.NewMock(noon)
		after, timer, tick := m.After(sec), m.Timer(sec), m.Tick(sec)
		m.AfterFunc(sec, func() { t.Error("called after a restart") })
		m.Restart()
		assert.Empty(t, m.Waiting())
		m.Add(time.Hour)
		synctest.Wait()
		assert.Empty(t, after)
		assert.Empty(t, timer.C)
		assert.Empty(t, tick)
		assert.Equal(t, time.Hour, m.Elapsed())

		timer.Reset(sec)
		m.Add(sec)
		assert.Len(t, timer.C, 1)
	})
}

// A deadline is one on the wall, as it reads when the context is made.
func TestMockDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clocktest.NewMock(noon)
		m.Step(-time.Hour)
		ctx, cancel := m.WithDeadline(t.Context(), m.Now().Add(sec))
		defer cancel()
		m.Step(time.Hour)
		m.Add(sec - 1)
		synctest.Wait()
		assert.NoError(t, ctx.Err())
		m.Add(1)
		synctest.Wait()
		assert.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	})
}

// While the mock sleeps inside a call, no lock is held: else this test hangs, for
// a goroutine that waits for a lock keeps the bubble's time from passing.
func TestMockHoldsNoLockWhileItSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clocktest.NewMock(noon)
		m.After(sec)
		for _, sleeps := range []func(){func() { m.Timer(0) }, func() { m.Add(sec) }} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				sleeps()
			}()
			synctest.Wait() // it sleeps
			require.Empty(t, done)
			m.Now()
			m.Step(sec)
			m.After(time.Hour)
			m.Restart()
			<-done
		}
	})
}
