package generator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// inBubble runs test in a synctest bubble, where the machine's time passes while
// every goroutine waits. A bubble begins in the year 2000, before any epoch.
func inBubble(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		test(t)
	})
}

func TestWaitsInTheMachinesTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, step := range []time.Duration{time.Millisecond, 5 * time.Millisecond, time.Second, time.Hour} {
			c := &wallClock{}
			g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.WaitUpTo(step)))
			last := mustNext(t, g)
			c.step(-step)
			before := time.Now()
			assert.Equal(t, last+1, mustNext(t, g))
			assert.Equal(t, step, time.Since(before))
			assert.Equal(t, step, g.Stats().Waited)
			assert.EqualValues(t, 1, g.Stats().Waits)
		}
	})
}

// Demand above the ceiling: every goroutine is served, and as many IDs come per
// tick as the layout holds.
func TestCeilingServesEveryone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGenerator(t, generator.WithClock(monoclock.New()), generator.WithLayout(narrow()))
		const goroutines, each = 16, 25
		before := time.Now()
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range each {
					_, err := g.Next()
					assert.NoError(t, err)
				}
			})
		}
		wg.Wait()
		assert.Equal(t, (goroutines*each/4-1)*time.Millisecond, time.Since(before))
	})
}

func TestContextEndsAWait(t *testing.T) {
	for name, step := range map[string]time.Duration{"long": time.Hour, "short": 1200 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := &wallClock{}
				g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Wait()))
				mustNext(t, g)
				c.step(-step)
				before := time.Now()
				ctx, cancel := context.WithTimeoutCause(context.Background(), step/2, errors.New("no more time"))
				defer cancel()
				_, err := g.NextContext(ctx)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, "no more time")
				assert.LessOrEqual(t, time.Since(before), step/2+2*time.Millisecond)
				assert.ErrorContains(t, err, fmt.Sprintf("after %s of waiting", time.Since(before)))
			})
		})
	}
}

func TestContextEndsAWaitOnAFakeClock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &neverClock{newHandClock()}
		g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Wait()))
		mustNext(t, g)
		c.step(-time.Hour)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		n, err := g.NextNContext(ctx, make([]snowflake.ID, 3))
		assert.Zero(t, n)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// neverClock is a clock whose waits never end.
type neverClock struct{ *handClock }

func (*neverClock) After(time.Duration) <-chan time.Time { return make(chan time.Time) }

func TestCloseEndsWaits(t *testing.T) {
	for name, step := range map[string]time.Duration{"long": time.Hour, "short": 1200 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := &wallClock{}
				g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Wait()))
				mustNext(t, g)
				c.step(-step)
				before := time.Now()
				var waiting sync.WaitGroup
				for range 5 {
					waiting.Go(func() {
						_, err := g.Next()
						assert.ErrorIs(t, err, generator.ErrClosed)
					})
				}
				synctest.Wait()
				require.NoError(t, g.Close())
				waiting.Wait()
				assert.LessOrEqual(t, time.Since(before), 2*time.Millisecond)
			})
		})
	}
}

// The wait for a monoclock on a fake source is the source's.
func TestWaitsOnASource(t *testing.T) {
	s := &source{handClock: newHandClock()}
	g := newGenerator(t, generator.WithClock(monoclock.New(monoclock.WithSource(s))), generator.WithLayout(narrow()))
	for range 5 {
		mustNext(t, g)
	}
	assert.Equal(t, []time.Duration{time.Millisecond}, s.waited())
	s.step(-time.Second)
	assert.EqualValues(t, 0, g.Stats().Drift, "the source's clocks move together here")
}

type source struct{ *handClock }

func (s *source) Wall() time.Time        { return s.Now() }
func (s *source) Elapsed() time.Duration { return s.Now().Sub(noon) }

func TestAfterAWaitTheTurnIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &wallClock{}
		g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.WaitUpTo(time.Millisecond)))
		mustNext(t, g)
		for range 3 { // rejected, timed out, served: each after a wait for the turn
			c.step(-time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Microsecond)
			_, err := g.NextContext(ctx)
			cancel()
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			time.Sleep(time.Millisecond)
			mustNext(t, g)
		}
	})
}

// A batch waits once per tick, and its waits add up.
func TestNextNWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGenerator(t, generator.WithLayout(narrow()), generator.WithStrategy(strategies.WaitUpTo(3*time.Millisecond)))
		n, err := g.NextN(make([]snowflake.ID, 100))
		assert.Equal(t, 16, n)
		var lead *generator.LeadError
		require.ErrorAs(t, err, &lead)
		assert.Equal(t, 3*time.Millisecond, lead.Waited)
		assert.Equal(t, 3*time.Millisecond, g.Stats().Waited)
		assert.EqualValues(t, 3, g.Stats().Waits)
		time.Sleep(time.Millisecond)
		_, err = g.NextN(make([]snowflake.ID, 8))
		assert.NoError(t, err)
	})
}

func TestBatchAndStreamHeedTheirContext(t *testing.T) {
	for _, step := range []time.Duration{500 * time.Millisecond, time.Hour} {
		inBubble(t, func(t *testing.T) {
			c := &wallClock{}
			g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.WaitUpTo(2*time.Hour)))
			mustNext(t, g)
			c.step(-step)
			for _, call := range []func(context.Context) error{
				func(ctx context.Context) error { _, err := g.Stream().NextContext(ctx); return err },
				func(ctx context.Context) error { _, err := g.NextNContext(ctx, make([]snowflake.ID, 2)); return err },
			} {
				before := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				assert.ErrorIs(t, call(ctx), context.DeadlineExceeded)
				assert.LessOrEqual(t, time.Since(before), 12*time.Millisecond)
				cancel()
			}
		})
	}
}

// A batch that never has to wait still ends with its context.
func TestNextNStopsBetweenTicks(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := 0
	g := newGenerator(t, generator.WithClock(newHandClock()), generator.WithLayout(narrow()),
		generator.WithStrategy(strategies.Func(func(strategies.Situation) strategies.Decision {
			if asked++; asked == 3 {
				cancel()
			}
			return strategies.Decision{Action: strategies.ActionBorrow}
		})))
	n, err := g.NextNContext(ctx, make([]snowflake.ID, 100))
	assert.Equal(t, 16, n)
	assert.ErrorIs(t, err, context.Canceled)
}

// The clock is stepped back while a caller sleeps for the next tick. It then has
// long to wait, but must not keep others from sleeping for theirs.
func TestLongWaitGivesUpTheTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &wallClock{}
		g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()), generator.WithStrategy(strategies.Wait()))
		for range 4 {
			mustNext(t, g)
		}
		var first sync.WaitGroup
		first.Go(func() { mustNext(t, g) })
		time.Sleep(500 * time.Microsecond) // it has the turn, and sleeps for the tick
		c.step(-50 * time.Millisecond)
		time.Sleep(2 * time.Millisecond) // and now for the step
		c.step(50 * time.Millisecond)
		before := time.Now()
		for range 12 {
			mustNext(t, g)
		}
		assert.LessOrEqual(t, time.Since(before), 4*time.Millisecond)
		first.Wait()
	})
}

// stopClock is the machine's clock until it is stopped.
type stopClock struct {
	mu      sync.Mutex
	stopped time.Time
}

func (c *stopClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped
	}
	return time.Now().Round(0)
}

func (c *stopClock) stop() {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = now
}

// The clock stops while a batch, which has waited before, queues behind callers
// who have not. It must not have to wait for their time to be up.
func TestQueueKeepsToTheBoundOfEach(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &stopClock{}
		const bound = 400 * time.Millisecond
		g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()), generator.WithStrategy(strategies.WaitUpTo(bound)))
		var all sync.WaitGroup
		all.Go(func() {
			before := time.Now()
			_, err := g.NextN(make([]snowflake.ID, 1_000_000))
			assert.ErrorIs(t, err, generator.ErrExhausted)
			assert.LessOrEqual(t, time.Since(before), bound+20*time.Millisecond)
		})
		time.Sleep(300 * time.Millisecond)
		for range 8 {
			all.Go(func() {
				for {
					before := time.Now()
					_, err := g.Next()
					assert.LessOrEqual(t, time.Since(before), bound+20*time.Millisecond)
					if err != nil {
						return
					}
				}
			})
		}
		time.Sleep(30 * time.Millisecond)
		c.stop()
		all.Wait()
	})
}

// A wait that is a hair too long for the thread is not a busy loop of timers.
func TestWaitsOfAnyLengthSleep(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		asked := 0
		c := &stopClock{}
		g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()),
			generator.WithStrategy(strategies.Func(func(strategies.Situation) strategies.Decision {
				asked++
				return strategies.Decision{Action: strategies.ActionWait, Wait: 1500*time.Microsecond + 1}
			})))
		c.stop()
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		_, err := g.NextNContext(ctx, make([]snowflake.ID, 5))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Less(t, asked, 2000)
	})
}

// A wait for a clock that is far behind ends soon after it is set right.
func TestLongWaitNoticesAStepForward(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &wallClock{}
		g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Wait()))
		mustNext(t, g)
		c.step(-time.Hour)
		time.AfterFunc(time.Second, func() { c.step(time.Hour) })
		before := time.Now()
		mustNext(t, g)
		assert.LessOrEqual(t, time.Since(before), 1100*time.Millisecond)
	})
}

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

func TestCancelledWaitOnAFakeClockCountsItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &neverClock{newHandClock()}
		g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Wait()))
		mustNext(t, g)
		c.step(-time.Hour)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := g.NextContext(ctx)
		assert.ErrorContains(t, err, "after 1s of waiting")
		assert.Equal(t, time.Second, g.Stats().Waited)
	})
}

// nilClock is a clock whose way to wait is broken.
type nilClock struct{ *handClock }

func (*nilClock) After(time.Duration) <-chan time.Time { return nil }

func TestAfterOfNilWaitsForTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &nilClock{newHandClock()}
		g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Wait()))
		mustNext(t, g)
		c.step(-time.Hour)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := g.NextContext(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualValues(t, 1, g.Stats().Waits)
	})
}
