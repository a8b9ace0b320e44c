package sequence_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func open(t testing.TB, store stores.Store, name string, d sequence.Definition, options ...sequence.Option) *sequence.Sequence {
	t.Helper()
	s, err := sequence.Open(t.Context(), store, name, append([]sequence.Option{sequence.WithDefinition(d)}, options...)...)
	require.NoError(t, err)
	return s
}

func next(t testing.TB, s *sequence.Sequence) int64 {
	t.Helper()
	n, err := s.Next(t.Context())
	require.NoError(t, err)
	return n
}

func nextN(t testing.TB, s *sequence.Sequence, n int64) int64 {
	t.Helper()
	first, err := s.NextN(t.Context(), n)
	require.NoError(t, err)
	return first
}

// TestProcesses has three processes on one sequence.
func TestProcesses(t *testing.T) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := slow(5 * time.Millisecond)
				d := sequence.Definition{Mode: mode, Start: 100, Stride: sequence.Every(3, 2)}
				var mu sync.Mutex
				issued := map[int64]bool{}
				var all []*sequence.Sequence
				var wg sync.WaitGroup
				for range 3 {
					s := open(t, store(), "orders", d)
					all = append(all, s)
					for range 4 {
						wg.Go(func() {
							last := int64(0)
							for i := range int64(100) {
								n := 1 + i%7
								first, err := s.NextN(t.Context(), n)
								if !assert.NoError(t, err) {
									return
								}
								assert.Greater(t, first, last)
								mu.Lock()
								for j := range n {
									last = first + j*3
									assert.False(t, issued[last], "%d comes twice", last)
									assert.EqualValues(t, 2, (last-100)%3)
									issued[last] = true
								}
								mu.Unlock()
								time.Sleep(time.Duration(n) * time.Millisecond)
							}
						})
					}
				}
				wg.Wait()
				var lost uint64
				for _, s := range all {
					require.NoError(t, s.Close())
					lost += s.Stats().Lost
				}
				info, err := sequence.Inspect(t.Context(), store(), "orders")
				require.NoError(t, err)
				granted := (info.Next - 102) / 3
				assert.EqualValues(t, granted, uint64(len(issued))+lost, "each number was issued or is counted as lost")
				if mode == sequence.Ordered {
					assert.Zero(t, lost)
				}
			})
		})
	}
}

// slow returns a function that makes clients of one store whose operations take d.
func slow(d time.Duration) func() *storetest.Memory {
	store := storetest.NewMemory()
	return func() *storetest.Memory {
		client := store.Client()
		client.Before = func(context.Context, storetest.Op) storetest.Fault {
			time.Sleep(d)
			return storetest.None
		}
		return client
	}
}

// TestOrderedIsCombined has a thousand calls wait for one write.
func TestOrderedIsCombined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(5*time.Millisecond)(), "orders", sequence.Definition{Mode: sequence.Ordered})
		began := time.Now()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { next(t, s) })
		}
		wg.Wait()
		assert.LessOrEqual(t, time.Since(began), 10*time.Millisecond)
		stats := s.Stats()
		assert.LessOrEqual(t, stats.Refills, uint64(2))
		assert.EqualValues(t, 1000, stats.Issued)
		assert.EqualValues(t, 999, stats.Last)
	})
}

// TestOrderedTakesLaterWrites has a call begin while a write is in flight: it gets no number of it.
func TestOrderedTakesLaterWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slow(5 * time.Millisecond)
		s := open(t, store(), "orders", sequence.Definition{Mode: sequence.Ordered})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := s.Next(ctx)
			assert.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		time.Sleep(2 * time.Millisecond)
		wg.Go(func() { assert.EqualValues(t, 1, next(t, s)) })
		synctest.Wait()
		cancel() // its number is lost, and not for the second call
		wg.Wait()
		assert.EqualValues(t, 1, s.Stats().Lost)
	})
}

// TestNoReserve reserves a segment only when a call needs it.
func TestNoReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory(), "orders", sequence.Definition{MinStep: 3, MaxStep: 3}, sequence.WithOutage(0))
		for i := range 7 {
			next(t, s)
			synctest.Wait()
			require.EqualValues(t, 1+i/3, s.Stats().Refills)
		}
		require.NoError(t, s.Close())
		assert.Zero(t, s.Stats().Lost)
	})
}

func TestMaximum(t *testing.T) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := storetest.NewMemory()
				s := open(t, store, "tickets", sequence.Definition{Mode: mode, Start: 1, Max: 20, MinStep: 3})
				for want := range int64(10) {
					require.Equal(t, want+1, next(t, s))
				}
				_, err := s.NextN(t.Context(), 11)
				var exhausted *sequence.ExhaustedError
				require.ErrorAs(t, err, &exhausted)
				assert.Equal(t, sequence.ExhaustedError{Name: "tickets", Max: 20, Asked: 11, Left: 10}, *exhausted)
				assert.Equal(t, stores.Refused, stores.KindOf(err))
				require.EqualValues(t, 11, nextN(t, s, 10))
				_, err = s.Next(t.Context())
				require.ErrorAs(t, err, &exhausted)
				assert.EqualValues(t, 0, exhausted.Left)
				info, err := sequence.Inspect(t.Context(), store, "tickets")
				require.NoError(t, err)
				assert.Equal(t, []int64{20, 0, 0}, []int64{info.Last, info.Left, info.Next})

				_, _, err = sequence.Set(t.Context(), store, "tickets", sequence.Change{Max: 22})
				require.NoError(t, err)
				time.Sleep(2 * time.Second) // the error is kept for a second
				assert.EqualValues(t, 21, nextN(t, s, 2))
				assert.EqualValues(t, 22, s.Definition().Max)
			})
		})
	}
}

// TestLargestNumbers goes up to the greatest number there is.
func TestLargestNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		s := open(t, store, "last", sequence.Definition{Start: math.MaxInt64 - 5, Stride: sequence.Every(3, 1)})
		assert.EqualValues(t, int64(math.MaxInt64-4), next(t, s))
		assert.EqualValues(t, int64(math.MaxInt64-1), next(t, s))
		var exhausted *sequence.ExhaustedError
		_, err := s.Next(t.Context())
		assert.ErrorAs(t, err, &exhausted)
		assert.True(t, exhausted.End)
		assert.ErrorContains(t, err, "end of its range, 9223372036854775806")
		assert.NotContains(t, err.Error(), "raise")
		_, err = s.NextN(t.Context(), math.MaxInt64)
		var option *stores.OptionError
		assert.ErrorAs(t, err, &option)
		_, err = s.NextN(t.Context(), 1<<62-1)
		assert.ErrorAs(t, err, &exhausted)
	})
}

// TestAtRest has ten thousand sequences on one store: each is small, and has no goroutine.
func TestAtRest(t *testing.T) {
	store := storetest.NewMemory()
	const sequences, limit = 2000, 5 << 9
	goroutines := runtime.NumGoroutine()
	all := make([]*sequence.Sequence, sequences)
	name := func(i int) string { return fmt.Sprintf("orders-of-shop-%d", i) }
	for i := range all {
		require.NoError(t, sequence.Create(t.Context(), store, name(i), sequence.Definition{}))
		for range cell.Kept { // the names of these writes are kept
			_, _, err := sequence.Set(t.Context(), store, name(i), sequence.Change{MaxStep: 1000})
			require.NoError(t, err)
		}
	}
	before := heap()
	for i := range all {
		s, err := sequence.Open(t.Context(), store, name(i))
		require.NoError(t, err)
		next(t, s)
		all[i] = s
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 }, 10*time.Second, time.Millisecond)
	each := (heap() - before) / sequences
	t.Logf("%d bytes each", each)
	assert.LessOrEqual(t, each, uint64(limit))
	runtime.KeepAlive(all)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
