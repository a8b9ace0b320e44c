package generator_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// highest is the largest number that was raised.
type highest struct{ atomic.Int64 }

func (h *highest) raise(n snowflake.ID) {
	for old := h.Load(); old < int64(n) && !h.CompareAndSwap(old, int64(n)); old = h.Load() {
	}
}

// checkHistory lets goroutines call g in every way, calls times each, until at least two calls have
// overlapped. Then each ID was issued once, and is above each that a call had returned before its own
// call began; if one of the two is of a stream, its tick is not an earlier one.
func checkHistory(t *testing.T, g *generator.Generator, calls int) {
	t.Helper()
	const goroutines = 4
	// Goroutines that share one processor hardly ever overlap, so they get threads.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(goroutines, runtime.GOMAXPROCS(0))))
	var ids, ticks highest // that were returned: of calls that are no stream's, and of all
	var running atomic.Int32
	var overlaps atomic.Bool
	var all []snowflake.ID
	tick := g.Layout().NodeBits + g.Layout().SequenceBits
	for round := 0; !overlaps.Load(); round++ {
		require.Less(t, round, 100, "no two calls overlapped: this shows nothing")
		issued := make([][]snowflake.ID, goroutines)
		var group errgroup.Group
		for i := range goroutines {
			group.Go(func() error {
				s, last := g.Stream(), snowflake.ID(-1)
				for j := range calls {
					got, stream := make([]snowflake.ID, 1), (i+j)%4 == 0
					above, from := ids.Load(), ticks.Load()
					if running.Add(1) > 1 {
						overlaps.Store(true)
					}
					var err error
					switch {
					case stream:
						above = int64(last)
						got[0], err = s.Next()
						last = got[0]
					case j%7 == 0:
						got = make([]snowflake.ID, 10)
						_, err = g.NextN(got)
					default:
						got[0], err = g.Next()
					}
					running.Add(-1)
					end := got[len(got)-1]
					if ticks.raise(end >> tick); !stream {
						ids.raise(end)
					}
					switch {
					case err != nil:
						return err
					case int64(got[0]) <= above || int64(got[0]>>tick) < from:
						return fmt.Errorf("call %d returned %d, above %d and tick %d had been returned; of a stream: %t", j, got[0], above, from, stream)
					}
					issued[i] = append(issued[i], got...)
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())
		all = append(all, slices.Concat(issued...)...)
	}
	slices.Sort(all)
	require.Len(t, slices.Compact(slices.Clone(all)), len(all), "an ID twice")
}

// steppingClock is the machine's clock, stepped back by a millisecond or a few
// at every so-manieth reading.
func steppingClock() monoclock.Interface {
	var readings, offset atomic.Int64
	return clockFunc(func() time.Time {
		if n := readings.Add(1); n%500 == 0 {
			offset.Add(-(n / 500 % 5) * int64(time.Millisecond))
		} else if n%700 == 0 {
			offset.Add(2 * int64(time.Millisecond))
		}
		return time.Now().Round(0).Add(time.Duration(offset.Load()))
	})
}

func TestOrderOfHistory(t *testing.T) {
	stepping := generator.WithClock(steppingClock())
	own := strategies.Func(func(strategies.Situation) strategies.Decision {
		return strategies.Decision{Action: strategies.ActionBorrow}
	})
	for name, opts := range map[string][]generator.Option{
		"steady":    nil,
		"exhausted": {generator.WithLayout(snowflake.Sonyflake()), generator.WithStrategy(strategies.BorrowUpTo(time.Hour))},
		"stepping":  {stepping, generator.WithStrategy(strategies.BorrowUpTo(time.Hour))},
		"own":       {stepping, generator.WithStrategy(own)},
		"waiting":   {stepping, generator.WithStrategy(strategies.Wait())},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGenerator(t, opts...)
			if name == "waiting" {
				checkHistory(t, g, 2_000)
			} else {
				checkHistory(t, g, 20_000)
			}
			assert.True(t, name == "steady" || g.Stats().MaxLead > 0, "the clock was never behind")
		})
	}
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
	for _, text := range []string{"wait:40ms", "borrow:2ms,wait:42ms", "exhausted=wait:40ms/behind=reject"} {
		strategy, err := strategies.Parse(text)
		require.NoError(t, err)
		for _, ticks := range []int64{6, 12, 100} {
			t.Run(fmt.Sprint(text, " window of ", ticks), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					g, w := granted(t, narrow(), monoclock.New(), grant(narrow(), 1, 0, ticks), generator.WithStrategy(strategy))
					ctx, cancel := context.WithCancel(t.Context())
					var keeper, all sync.WaitGroup
					keeper.Go(func() { // when a third of the window is used, it extends the grant
						for ctx.Err() == nil {
							next := grant(narrow(), 1, 0, time.Since(noon).Milliseconds()+ticks)
							w.Grant(next, next.To-uint64(2*ticks/3))
							select {
							case <-w.More():
							case <-ctx.Done():
							}
						}
					})
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
