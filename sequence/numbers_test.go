package sequence_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/vmclock/vmclocktest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestMaximum goes up to a maximum that is raised then, and to the last number that there can be.
func TestMaximum(t *testing.T) {
	for _, mode := range bothModes {
		synctest.Test(t, func(t *testing.T) {
			store := storetest.NewMemory()
			s := open(t, store, sequence.Definition{Mode: mode, Max: 20, MinStep: 3})
			for want := range int64(10) {
				require.Equal(t, want+1, next(t, s))
			}
			exhausted := func(n, left int64) {
				err, _ := second(s.NextN(t.Context(), n)).(*sequence.ExhaustedError)
				require.Equal(t, &sequence.ExhaustedError{Name: "orders", Max: 20, Asked: n, Left: left}, err)
			}
			exhausted(11, 10)
			require.EqualValues(t, 11, nextN(t, s, 10))
			exhausted(1, 0)
			info := inspect(t, store)
			assert.Equal(t, []int64{20, 0, 0}, []int64{info.Last, info.Left, info.Next})
			before, after, err := sequence.Set(t.Context(), store, "orders", sequence.Change{Max: 22, MinStep: 5, MaxStep: 6})
			require.NoError(t, err)
			assert.Equal(t, info, before)
			info.Definition, info.Left, info.Next, info.Writes = s.Definition(), 2, 21, info.Writes+1
			info.Definition.Max, info.Definition.MinStep, info.Definition.MaxStep = 22, 5, 6
			assert.Equal(t, info, after)
			time.Sleep(2 * time.Second) // the error is kept for a second
			assert.EqualValues(t, 21, nextN(t, s, 2))
			assert.EqualValues(t, 22, s.Definition().Max)
			require.NoError(t, s.Close())
		})
	}
	for _, d := range []sequence.Definition{{Start: math.MaxInt64 - 5, Stride: sequence.Every(3, 1)}, {FromZero: true}} {
		store := storetest.NewMemory()
		s := open(t, store, d, sequence.WithOutage(0))
		if info := inspect(t, store); info.Left > 2 {
			require.NoError(t, set(t, store, sequence.Change{Next: info.Left - 2})) // the number of the last index but one
		}
		last := next(t, s) + d.Stride.By()
		assert.Equal(t, last, next(t, s))
		err, _ := second(s.Next(t.Context())).(*sequence.ExhaustedError)
		require.Equal(t, &sequence.ExhaustedError{Name: "orders", Max: last, Asked: 1, End: true}, err)
		assert.NotContains(t, err.Error(), "raise")
		assert.ErrorIs(t, second(s.NextN(t.Context(), math.MaxInt64)), stores.Permanent)
		assert.ErrorAs(t, second(s.NextN(t.Context(), 1<<62-1)), &err)
		require.NoError(t, s.Close())
	}
}

// TestAtRest has two thousand sequences on one store: each is small, and has no goroutine.
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
		all[i] = must(sequence.Open(t.Context(), store, name(i)))
		next(t, all[i])
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 }, 10*time.Second, time.Millisecond)
	assert.LessOrEqual(t, (heap()-before)/sequences, uint64(limit))
	runtime.KeepAlive(all)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestLost: a number counts as lost once this process can never issue it, and neither while it is reserved nor when it was
// given back. A read of an older state than is known, or of the known one after another process has written, loses none:
// the store is blamed, and not the other process, and the sequence is tried at a distance.
func TestLost(t *testing.T) {
	type world struct {
		*testing.T
		*sequence.Sequence
		store          *stale
		log            *strings.Builder
		created, known stores.Cell // the cell before and after the first number
	}
	write := func(w world, times int64) {
		for i := range times {
			require.NoError(w, set(w.T, w.store.Memory, sequence.Change{Max: 1000 + i}))
		}
	}
	reads := func(w world, old stores.Cell) {
		w.store.old = old
		write(w, 1)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		err := second(w.NextN(ctx, 10))
		require.ErrorIs(w, err, sequence.ErrStore)
		assert.NotErrorIs(w, err, stores.ErrConflict)
		assert.ErrorContains(w, err, "reads that are out of date")
		assert.Equal(w, 1, strings.Count(w.log.String(), "no refill"))
		assert.LessOrEqual(w, w.Stats().Conflicts, uint64(50), "it pauses")
		assert.Zero(w, w.Stats().Lost)
	}
	for name, row := range map[string]struct {
		lose   func(world)
		number int64 // the next, or 0
		err    error
		lost   uint64
	}{
		"this memory is a copy": {func(w world) {
			w.store.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable }
			require.Error(w, w.Restored(w.Context()))
			w.store.Before = nil
		}, 11, nil, 9},
		"the sequence is deleted": {func(w world) {
			require.NoError(w, remove(w.T, w.store.Memory))
			require.ErrorIs(w, second(w.NextN(w.Context(), 10)), sequence.ErrDeleted)
		}, 0, sequence.ErrDeleted, 9},
		"a read was out of date":       {func(w world) { reads(w, w.created); w.store.old = stores.Cell{} }, 2, nil, 0},
		"it showed what was known":     {func(w world) { reads(w, w.known); w.store.old = stores.Cell{} }, 2, nil, 0},
		"reads stay out of date":       {func(w world) { reads(w, w.created); _ = w.Close() }, 0, sequence.ErrClosed, 9},
		"they go on to show the known": {func(w world) { reads(w, w.known); _ = w.Close() }, 0, sequence.ErrClosed, 9},
		"it is unclear whether the store went back": {func(w world) {
			reads(w, w.created)
			write(w, cell.Kept)
			w.store.old = stores.Cell{}
		}, 11, nil, 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world{T: t, store: &stale{Memory: slow(time.Millisecond)()}, log: new(strings.Builder)}
				w.Sequence = open(t, w.store, sequence.Definition{MinStep: 10, MaxStep: 10}, sequence.WithOutage(0), sequence.WithLogger(slog.New(slog.NewTextHandler(w.log, nil))))
				w.created = w.store.Peek("seq/orders")
				require.EqualValues(t, 1, next(t, w.Sequence))
				require.Zero(t, w.Stats().Lost)
				w.known = w.store.Peek("seq/orders")
				row.lose(w)
				number, err := w.Next(t.Context())
				require.ErrorIs(t, err, row.err)
				require.Equal(t, row.number, number)
				require.Equal(t, row.lost, w.Stats().Lost)
				synctest.Wait() // for the log
				require.Equal(t, strings.Contains(name, "unclear"), strings.Count(w.log.String(), "numbers were given up") == 1, w.log)
				_ = w.Close()
				require.Equal(t, row.lost, w.Stats().Lost)
			})
		})
	}
}

// TestCopied guards that each call notices that its memory was copied, and that the copy leaves what is reserved to its
// original, also when it ends.
func TestCopied(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(string(mode), func(t *testing.T) {
			device, store := vmclocktest.New(t), storetest.NewMemory()
			s := open(t, store, sequence.Definition{Mode: mode, MinStep: 10, MaxStep: 10}, sequence.WithVMClock(device.Path), sequence.WithOutage(0))
			next(t, s)
			for n := range int64(4) {
				granted := inspect(t, store).Next
				device.Copy()
				assert.GreaterOrEqual(t, nextN(t, s, 1+n), granted)
			}
			amid := true
			store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if op.Kind == storetest.OpSwap && amid {
					amid = false
					device.Copy() // the original gets what is granted
				}
				return storetest.None
			}
			granted := inspect(t, store).Next
			device.Copy()
			assert.Greater(t, next(t, s), granted, "it is granted by a write that was sent before the copy")
			granted = inspect(t, store).Next
			device.Copy()
			require.NoError(t, s.Close())
			assert.Equal(t, granted, inspect(t, store).Next, "a copy gives nothing back")
			assert.Equal(t, device.Path+", disruption_marker", s.Stats().VMClock)
			assert.EqualValues(t, 7, s.Stats().Copies)
		})
	}
}
