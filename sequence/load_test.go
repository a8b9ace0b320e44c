package sequence_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestCallersAreServedTogether: calls that wait are served by one write, also callers who ask again as
// soon as they have a number: not half of them by every other write. A slow store is no reason to fail.
func TestCallersAreServedTogether(t *testing.T) {
	for _, test := range []struct {
		callers, each int
		store         time.Duration // takes so long for an operation
	}{
		{1000, 1, 5 * time.Millisecond}, {2, 50, time.Millisecond}, {10, 50, time.Millisecond}, {100, 50, time.Millisecond},
		{2, 300, 650 * time.Millisecond}, // a third of the timeout
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, slow(test.store)(), sequence.Definition{Mode: ordered})
			var group sync.WaitGroup
			for range test.callers {
				group.Go(func() {
					for range test.each {
						assert.NoError(t, second(s.Next(context.Background())))
					}
				})
			}
			group.Wait()
			stats := s.Stats()
			assert.NotZero(t, stats.Refills)
			assert.LessOrEqual(t, stats.Refills, uint64(test.each*3/2+1), "writes for %d callers", test.callers)
			assert.EqualValues(t, test.callers*test.each, stats.Issued)
			assert.EqualValues(t, test.callers*test.each, stats.Last)
			require.NoError(t, s.Close())
		})
	}
}

// TestUnderLoad: while calls wait all the time, others get their turn, and a call for more numbers than
// are left fails at once, not by its timeout.
func TestUnderLoad(t *testing.T) {
	for _, mode := range bothModes {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, slow(5*time.Millisecond)(), sequence.Definition{Mode: mode, Max: 1_000_000, MaxStep: 1, MinStep: 1})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var group sync.WaitGroup
			for i := range 300 {
				group.Go(func() {
					for ctx.Err() == nil {
						_, err := s.Next(ctx)
						assert.True(t, err == nil || ctx.Err() != nil, "%v", err)
						time.Sleep(time.Duration(i+1) * time.Millisecond)
					}
				})
			}
			time.Sleep(time.Second)
			assert.NoError(t, s.Restored(ctx))
			assert.ErrorAs(t, second(s.NextN(context.Background(), 2_000_000)), new(*sequence.ExhaustedError), mode)
			group.Wait()
			require.NoError(t, s.Close())
		})
	}
}

// TestTheLastNumbers has calls at once for more numbers than are left, of which each alone could be served.
func TestTheLastNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(time.Millisecond)(), sequence.Definition{Mode: ordered, Max: 4})
		var served, exhausted atomic.Int64
		for _, n := range []int64{1, 2, 2, 2} {
			synctest.Wait() // the first is written alone, and the others then
			go func() {
				if _, err := s.NextN(t.Context(), n); err == nil {
					served.Add(1)
				} else if _, ok := errors.AsType[*sequence.ExhaustedError](err); ok {
					exhausted.Add(1)
				}
			}()
		}
		time.Sleep(100 * time.Millisecond)
		assert.Equal(t, []int64{2, 2}, []int64{served.Load(), exhausted.Load()})
		assert.EqualValues(t, 4, next(t, s))
		require.NoError(t, s.Close())
	})
}

// TestOrderedCall (S5) has a call begin after the write of another has landed, and after another process got a number:
// it is not served by that write, of which a number is left since its call has ended.
func TestOrderedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		a, b := open(t, store, sequence.Definition{Mode: ordered}), open(t, store.Client(), sequence.Definition{Mode: ordered})
		ctx, cancel := context.WithCancel(t.Context())
		late := make(chan int64, 1)
		store.After = func(_ context.Context, op storetest.Op) {
			if op.Kind == storetest.OpSwap && ctx.Err() == nil {
				cancel()
				assert.EqualValues(t, 2, next(t, b))
				go func() { late <- next(t, a) }()
				time.Sleep(time.Millisecond)
			}
		}
		assert.ErrorIs(t, second(a.Next(ctx)), context.Canceled)
		assert.EqualValues(t, 3, <-late)
		assert.EqualValues(t, 1, a.Stats().Lost)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	})
}

// TestTurns has three processes under load on one sequence: no number comes twice, each process gets its
// share, few of its calls wait for long, and what is ordinary is not logged.
func TestTurns(t *testing.T) {
	for _, d := range []sequence.Definition{{Mode: ordered}, {MinStep: 1, MaxStep: 1}} {
		synctest.Test(t, func(t *testing.T) {
			shared := storetest.NewMemory()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var got [3][]int64
			var long atomic.Int64
			var log strings.Builder
			logged := sequence.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
			var group sync.WaitGroup
			for i := range got {
				store := shared.Client()
				store.Before = func(context.Context, storetest.Op) storetest.Fault {
					time.Sleep(2*time.Millisecond + rand.N(time.Millisecond))
					return storetest.None
				}
				s := open(t, store, d, logged)
				group.Go(func() {
					for {
						began := time.Now()
						number, err := s.Next(ctx)
						if err != nil {
							break
						}
						got[i] = append(got[i], number)
						if time.Since(began) > 50*time.Millisecond {
							long.Add(1)
						}
					}
					require.NoError(t, s.Close())
				})
			}
			group.Wait()
			all := slices.Concat(got[:]...)
			slices.Sort(all)
			assert.Len(t, slices.Compact(slices.Clone(all)), len(all))
			for i := range got {
				assert.True(t, slices.IsSorted(got[i]))
				assert.Greater(t, len(got[i]), len(all)/6, d.Mode)
			}
			assert.Less(t, long.Load(), int64(90), "it is about 45, and without turns 140")
			assert.NotContains(t, log.String(), "no refill")
		})
	}
}

// TestFewCallsStarveWhileTheRateDoubles every second, from one call per second to 1,048,576, and with 5 ms
// per write: at most one call in a million waits for the store. Calls are due at their time,
// so those that fall due while one waits are counted as well.
func TestFewCallsStarveWhileTheRateDoubles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(5*time.Millisecond)(), sequence.Definition{})
		const seconds, tick = 21, 100 * time.Microsecond
		calls, starved := 0, 0
		began := time.Now()
		for second := range seconds {
			rate, from := 1<<second, began.Add(time.Duration(second)*time.Second)
			for done := 0; done < rate; {
				now := time.Now()
				for ; done < rate && from.Add(time.Duration(done)*time.Second/time.Duration(rate)).Before(now.Add(tick)); done++ {
					_, err := s.Next(t.Context())
					require.NoError(t, err)
					calls++
				}
				if waited := time.Since(now); waited > 0 { // time passes only while a call waits
					starved += max(1, int(waited*time.Duration(rate)/time.Second))
				}
				time.Sleep(tick)
			}
			time.Sleep(time.Until(from.Add(time.Second)))
		}
		require.Equal(t, 1<<seconds-1, calls)
		assert.LessOrEqual(t, starved, calls/1_000_000)
		assert.LessOrEqual(t, s.Stats().Starved, uint64(starved))
	})
}

// TestEachCallHasItsTimeout: calls without a deadline each wait for the timeout, whenever they began, and
// also behind calls that have a deadline.
func TestEachCallHasItsTimeout(t *testing.T) {
	for _, mode := range bothModes {
		synctest.Test(t, func(t *testing.T) {
			const timeout = 2 * time.Second
			store, fault := faulty()
			s := open(t, store, sequence.Definition{Mode: mode}, sequence.WithTimeout(timeout))
			fault(hangs)
			var group sync.WaitGroup
			for i := range 10 {
				group.Go(func() {
					time.Sleep(time.Duration(i) * 300 * time.Millisecond)
					ctx, want, wait := t.Context(), error(sequence.ErrTimeout), timeout
					if i%4 == 0 {
						longer, cancel := context.WithTimeout(ctx, 5*time.Second)
						defer cancel()
						ctx, want, wait = longer, context.DeadlineExceeded, 5*time.Second
					}
					began := time.Now()
					assert.ErrorIs(t, second(s.Next(ctx)), want)
					assert.Equal(t, wait, time.Since(began), "call %d", i)
				})
			}
			group.Wait()
			_ = s.Close() // it tells that the store hangs
		})
	}
}

// TestOutage takes a number each 100 ms while the store is away for 8 s, and then longer, and at last one per second.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, fault := faulty()
		s := open(t, store, sequence.Definition{MinStep: 1})
		pace := 100 * time.Millisecond
		steady := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pace) {
				next(t, s)
			}
		}
		steady(30 * time.Second)
		stats := s.Stats()
		assert.InDelta(t, 10, stats.Rate, 1)
		assert.InDelta(t, 100, stats.Step, 10)
		assert.LessOrEqual(t, stats.Reserved, int64(200))
		fault(storetest.Unavailable)
		steady(9 * time.Second)
		fault(storetest.None)
		steady(20 * time.Second)
		assert.Equal(t, stats.Starved, s.Stats().Starved)
		assert.NoError(t, s.Err())

		fault(storetest.Unavailable)
		for s.Stats().Reserved > 0 {
			next(t, s)
		}
		began := time.Now()
		err := second(s.Next(context.Background()))
		for _, want := range []error{sequence.ErrTimeout, storetest.ErrFault, sequence.ErrStore} {
			assert.ErrorIs(t, err, want)
		}
		assert.Equal(t, 2*time.Second, time.Since(began))
		assert.ErrorIs(t, s.Err(), storetest.ErrFault)
		cause := context.Canceled
		ctx, cancel := context.WithTimeoutCause(context.Background(), 5*time.Second, cause)
		defer cancel()
		began = time.Now()
		err = second(s.Next(ctx))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, cause)
		assert.Equal(t, 5*time.Second, time.Since(began))
		time.AfterFunc(time.Second, func() { fault(storetest.None) })
		next(t, s)
		pace = time.Second
		steady(10 * time.Minute)
		assert.InDelta(t, 1, s.Stats().Rate, 0.2, "the rate falls slowly")
		assert.NoError(t, s.Close())
	})
}

// TestAbandonedBatch: a batch whose call has ended stays reserved, and a crash loses it too.
func TestAbandonedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(time.Second)(), sequence.Definition{MinStep: 1, MaxStep: 1}, sequence.WithOutage(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		assert.ErrorIs(t, second(s.NextN(ctx, 50)), context.DeadlineExceeded)
		time.Sleep(time.Second)
		assert.EqualValues(t, []int64{50, 2 + 50}, []int64{s.Stats().Reserved, s.Stats().GapBound})
		assert.NoError(t, s.Close())
	})
}
