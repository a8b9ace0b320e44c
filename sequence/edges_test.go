package sequence_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestRestoredUnderLoad has calls that wait all the time: Restored and Poll get their turn.
func TestRestoredUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(5*time.Millisecond)(), "orders", sequence.Definition{Mode: sequence.Ordered})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				for ctx.Err() == nil {
					s.Next(ctx)
					time.Sleep(time.Duration(i+1) * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		for _, do := range []func(context.Context) error{s.Restored, func(ctx context.Context) error { _, err := s.Poll(ctx); return err }} {
			within, end := context.WithTimeout(ctx, time.Second)
			assert.NoError(t, do(within))
			end()
		}
		cancel()
		wg.Wait()
		require.NoError(t, s.Close())
	})
}

// resending is a store whose driver sends a swap again after a lost reply: it may report a
// conflict for a write that has landed.
type resending struct {
	stores.Store
	lost    *atomic.Bool
	between func()
}

func (r resending) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if r.lost.CompareAndSwap(true, false) {
		r.Store.Swap(ctx, key, version, value)
		if r.between != nil {
			r.between()
		}
	}
	return r.Store.Swap(ctx, key, version, value)
}

// TestResentGiveBack has a driver send a give-back twice, and another process take its
// numbers in between: none of them is given back again, and the store has lost no write.
func TestResentGiveBack(t *testing.T) {
	for _, changed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			memory := storetest.NewMemory()
			d := sequence.Definition{Start: 1, Max: 19, MinStep: 19, MaxStep: 19}
			b := open(t, memory, "orders", d, sequence.WithOutage(0))
			raise := func() {
				_, _, err := sequence.Set(t.Context(), memory, "orders", sequence.Change{Max: 1000})
				assert.NoError(t, err)
			}
			store := resending{memory, new(atomic.Bool), func() {
				assert.EqualValues(t, 2, nextN(t, b, 18))
				if changed { // an operator's write begins at the next index
					raise()
				}
			}}
			a := open(t, store, "orders", d, sequence.WithOutage(0))
			assert.EqualValues(t, 1, next(t, a))
			store.lost.Store(true)
			assert.NoError(t, a.Close())
			assert.Zero(t, a.Stats().WentBack)
			raise()
			c := open(t, memory, "orders", d)
			for n := range int64(40) {
				require.Greater(t, next(t, c), 19+n)
				require.NoError(t, c.Err())
			}
		})
	}
}

// TestLastIndex uses the last index that there can be.
func TestLastIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		s := open(t, store, "orders", sequence.Definition{})
		info, err := sequence.Inspect(t.Context(), store, "orders")
		require.NoError(t, err)
		_, _, err = sequence.Set(t.Context(), store, "orders", sequence.Change{Next: info.Left - 1})
		require.NoError(t, err)
		assert.Equal(t, info.Left-1, next(t, s))
		var exhausted *sequence.ExhaustedError
		_, err = s.Next(t.Context())
		require.ErrorAs(t, err, &exhausted)
		require.NoError(t, s.Close())
		for _, n := range []int64{1<<62 - 1, 1 << 62} {
			_, err = s.NextN(t.Context(), n)
			assert.Error(t, err)
		}
	})
}

// backwards is a clock whose monotonic time goes back at each reading.
type backwards struct{ reads *atomic.Int64 }

func (backwards) Now() time.Time                         { return time.Now() }
func (backwards) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (c backwards) Elapsed() time.Duration               { return -time.Duration(c.reads.Add(1)) }

func TestClockGoesBack(t *testing.T) {
	for mode, outage := range map[sequence.Mode]time.Duration{sequence.Ordered: time.Second, sequence.Segmented: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, storetest.NewMemory(), "orders", sequence.Definition{Mode: mode}, sequence.WithClock(backwards{new(atomic.Int64)}), sequence.WithOutage(outage))
			for want := range int64(1000) {
				require.Equal(t, want, next(t, s))
			}
			require.Zero(t, s.Stats().Rate, mode)
			require.NoError(t, s.Close())
		})
	}
}

// TestTooManyUnderLoad has a call for more numbers than are left, while calls for one number
// wait all the time: it fails at once, and not by its timeout.
func TestTooManyUnderLoad(t *testing.T) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, slow(5*time.Millisecond)(), "orders", sequence.Definition{Mode: mode, Max: 1_000_000, MaxStep: 1, MinStep: 1})
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range 300 {
				wg.Go(func() {
					for ctx.Err() == nil {
						s.Next(ctx)
						time.Sleep(time.Duration(i+1) * time.Millisecond)
					}
				})
			}
			time.Sleep(time.Second)
			_, err := s.NextN(context.Background(), 2_000_000)
			var exhausted *sequence.ExhaustedError
			assert.ErrorAs(t, err, &exhausted, mode)
			cancel()
			wg.Wait()
			require.NoError(t, s.Close())
		})
	}
}

// TestSlowStore has a store that needs a third of the timeout for each operation: no call
// fails.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(650*time.Millisecond)(), "orders", sequence.Definition{Mode: sequence.Ordered})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 300 {
					_, err := s.Next(context.Background())
					assert.NoError(t, err)
				}
			})
		}
		wg.Wait()
		require.NoError(t, s.Close())
	})
}
