package generator_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Waiting calls go before a call that comes later and finds that the next tick has begun,
// whichever method it calls, and in the order in which they came.
func TestWaitingCallsGoFirst(t *testing.T) {
	for name, next := range map[string]func(*generator.Generator) (snowflake.ID, error){
		"Next":   (*generator.Generator).Next,
		"NextN":  func(g *generator.Generator) (snowflake.ID, error) { return nextN(g, 1) },
		"Stream": func(g *generator.Generator) (snowflake.ID, error) { return g.Stream().Next() },
	} {
		for _, waiting := range []int{1, 3, 4, 6} {
			t.Run(fmt.Sprint(name, " behind ", waiting), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					c := &wallClock{}
					g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()))
					_, err := g.NextN(make([]snowflake.ID, 4))
					require.NoError(t, err)
					order := make(chan int, waiting+1)
					var all sync.WaitGroup
					begin := func(i int, next func(*generator.Generator) (snowflake.ID, error)) {
						all.Go(func() {
							id, err := next(g)
							assert.NoError(t, err)
							at, sequence := decode(t, g, id)
							assert.Equal(t, time.Duration(1+i/4)*time.Millisecond, at, "call %d", i)
							assert.EqualValues(t, i%4, sequence, "call %d", i)
							order <- i
						})
						synctest.Wait()
					}
					for i := range waiting {
						begin(i, (*generator.Generator).Next)
						require.Empty(t, order)
					}
					c.step(time.Millisecond) // while the caller that has the turn sleeps
					begin(waiting, next)
					assert.Len(t, order, min(waiting+1, 4)-1, "all of the tick's but the sleeper go on")
					all.Wait()
				})
			})
		}
	}
}

// They go first as well when the next slot is not the first of its tick.
func TestWaitingCallGoesFirstWithinATick(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &wallClock{}
		g, w := granted(t, narrow(), c, grant(1, 0, 100))
		_, _, ok := w.Span().Take(noonTick+1, 0, 0, 1)
		require.True(t, ok)
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				at, sequence := decode(t, g, mustNext(t, g))
				assert.Equal(t, time.Millisecond, at)
				assert.EqualValues(t, 1+i, sequence, "call %d", i)
			})
			synctest.Wait()
			c.step(time.Millisecond) // while the first call sleeps
		}
		all.Wait()
	})
}

// nextN returns the first ID of a batch of n.
func nextN(g *generator.Generator, n int) (snowflake.ID, error) {
	ids := make([]snowflake.ID, n)
	_, err := g.NextN(ids)
	return ids[0], err
}

// Callers on one processor ask for more than the ceiling, under a lease with windows from
// the smallest on. There are three quarters as many callers as IDs in the strategy's wait,
// so none may give up, and IDs come at the ceiling.
func TestNoCallStarvesAtTheCeiling(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const (
		patience = 40 * time.Millisecond
		callers  = 3 * 4 * int(patience/time.Millisecond) / 4
		each     = 8
	)
	for _, strategy := range []strategies.Strategy{
		strategies.WaitUpTo(patience),
		strategies.Chain(strategies.BorrowUpTo(2*time.Millisecond), strategies.WaitUpTo(patience+2*time.Millisecond)),
		strategies.PerCause(strategies.WaitUpTo(patience), strategies.Reject()),
	} {
		for _, ticks := range []int64{6, 12, 100} {
			t.Run(fmt.Sprint(strategy, " window of ", ticks), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					g, w := granted(t, narrow(), monoclock.New(), grant(1, 0, ticks), generator.WithStrategy(strategy))
					ctx, cancel := context.WithCancel(t.Context())
					var keeper, all sync.WaitGroup
					keeper.Go(func() { extend(ctx, w, ticks) })
					before := time.Now()
					for range callers {
						all.Go(func() {
							for range each {
								began := time.Now()
								_, err := g.Next()
								assert.NoError(t, err)
								assert.LessOrEqual(t, time.Since(began), patience)
							}
						})
					}
					all.Wait()
					assert.LessOrEqual(t, time.Since(before), time.Duration(callers*each/4)*time.Millisecond)
					cancel()
					keeper.Wait()
				})
			})
		}
	}
}

// extend is a keeper: when a third of the window is used, it extends the grant.
func extend(ctx context.Context, w *window.Ticks, ticks int64) {
	for {
		end := time.Since(noon).Milliseconds() + ticks
		w.Grant(grant(1, 0, end), uint64(noonTick+end-2*ticks/3))
		select {
		case <-w.More():
		case <-ctx.Done():
			return
		}
	}
}

// A grant goes to the calls that wait for one in the order in which they came.
func TestGrantServesCallsInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g, w := granted(t, narrow(), monoclock.New(), grant(1, 0, 1))
		time.Sleep(5 * time.Millisecond)
		var all sync.WaitGroup
		for i := range int64(8) {
			all.Go(func() {
				at, sequence := decode(t, g, mustNext(t, g))
				assert.Equal(t, time.Duration(5+i/4)*time.Millisecond, at, "call %d", i)
				assert.Equal(t, i%4, sequence, "call %d", i)
			})
			synctest.Wait()
		}
		w.Grant(grant(1, 0, 100), noonTick+100)
		all.Wait()
	})
}

// A call that has long to wait is served by one that finds the clock set right.
func TestLongWaitIsServedByOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &wallClock{}
		g := newGenerator(t, generator.WithClock(c))
		mustNext(t, g)
		c.step(-50 * time.Millisecond)
		before := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { mustNext(t, g) })
		}
		synctest.Wait()
		c.step(50 * time.Millisecond)
		mustNext(t, g)
		all.Wait()
		assert.Zero(t, time.Since(before))
	})
}

// A call that gives up leaves the queue, and does not hold up those that come later.
func TestCallThatGivesUpLeavesTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := &wallClock{}
		g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()))
		_, err := g.NextN(make([]snowflake.ID, 4))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				_, err := g.NextContext(ctx)
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		synctest.Wait()
		assert.False(t, g.GateOpen(), "calls are in the queue")
		cancel()
		all.Wait()
		assert.True(t, g.GateOpen())
		for i := range 4 {
			_, sequence := decode(t, g, mustNext(t, g))
			assert.EqualValues(t, i, sequence, "no slot was lost")
		}
	})
}

// meanwhileClock is a clock on which something happens in each wait.
type meanwhileClock struct {
	*handClock
	n    int
	each func(n int)
}

func (c *meanwhileClock) After(d time.Duration) <-chan time.Time {
	over := c.handClock.After(d)
	c.n++
	c.each(c.n)
	return over
}

// TestEachWaitHasItsOwnPatience guards that a wait for slots does not use up the patience
// for a grant, nor a wait for a grant that for slots, nor a grant that came and was used
// up by others that for the next.
func TestEachWaitHasItsOwnPatience(t *testing.T) {
	const patience = 250 * time.Millisecond
	prepare := func(t *testing.T, each func(w *window.Ticks, n int)) (*generator.Generator, *meanwhileClock) {
		c := &meanwhileClock{handClock: newHandClock()}
		g, w := granted(t, narrow(), c, grant(1, 0, 10), generator.WithStrategy(strategies.WaitUpTo(patience)))
		c.each = func(n int) { each(w, n) }
		return g, c
	}
	t.Run("slots, then a grant", func(t *testing.T) {
		g, c := prepare(t, func(*window.Ticks, int) {})
		c.step(9 * time.Millisecond)
		for range 3 {
			mustNext(t, g)
		}
		c.step(-200 * time.Millisecond)
		n, err := g.NextN(make([]snowflake.ID, 2))
		assert.Equal(t, 1, n)
		var end *generator.GrantError
		require.ErrorAs(t, err, &end)
		assert.Equal(t, 200*time.Millisecond+patience, end.Waited)
	})
	t.Run("a grant, then slots", func(t *testing.T) {
		g, c := prepare(t, func(w *window.Ticks, n int) {
			if n == 2 {
				w.Grant(grant(2, 1_000, 2_000), noonTick+2_000)
			}
		})
		c.step(560 * time.Millisecond)
		at, _ := decode(t, g, mustNext(t, g))
		assert.Equal(t, time.Second, at)
		assert.Equal(t, []time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 240 * time.Millisecond}, c.waited())
	})
	t.Run("grants for others", func(t *testing.T) {
		const others = 10
		g, c := prepare(t, func(w *window.Ticks, n int) {
			tick := int64(10 + 100*n)
			w.Grant(grant(1, 0, tick+1), noonTick+uint64(tick))
			if n < others {
				_, _, ok := w.Span().Take(uint64(noonTick+tick), 0, 0, 4)
				assert.True(t, ok)
			}
		})
		c.step(10 * time.Millisecond)
		at, _ := decode(t, g, mustNext(t, g))
		assert.Equal(t, (10+100*others)*time.Millisecond, at)
	})
}
