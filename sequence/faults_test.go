package sequence_test

import (
	"context"
	"log/slog"
	"math"
	"strings"
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

// TestCloseFails: the error says how many numbers are missing, or may be, and that the store hangs.
func TestCloseFails(t *testing.T) {
	for fault, lost := range map[storetest.Fault]bool{storetest.Unavailable: false, hangs: false, storetest.ReplyLost: true} {
		synctest.Test(t, func(t *testing.T) {
			store, set := faulty()
			s := open(t, store, sequence.Definition{MinStep: 10, MaxStep: 10}, sequence.WithOutage(0))
			next(t, s)
			set(fault)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			says := "9 numbers are missing: "
			if lost {
				short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				require.Error(t, second(s.NextN(short, 12))) // and 3 more are granted
				synctest.Wait()
				says = "9 numbers are missing, and 3 more if the last write"
				set(storetest.Unavailable)
			}
			err := s.CloseContext(ctx)
			require.ErrorIs(t, err, sequence.ErrNotGivenBack)
			require.ErrorContains(t, err, says)
			assert.EqualValues(t, []uint64{9, 0}, []uint64{s.Stats().Lost, uint64(s.Stats().Reserved)})
			assert.Equal(t, err, s.Close(), "again")
		})
	}
}

// TestHangs has a store whose calls end with their contexts only. A Close whose context ends gives the numbers back when
// the store answers.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, fault := faulty()
		var log strings.Builder
		s, closing := open(t, store, sequence.Definition{MinStep: 1}), open(t, store, sequence.Definition{MinStep: 1}, sequence.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		next(t, s)
		synctest.Wait()
		first := next(t, closing)
		synctest.Wait()
		fault(hangs)
		next(t, s) // it is reserved
		waiting := make(chan error, 1)
		for i, do := range []func(ctx context.Context) error{
			func(ctx context.Context) error { return second(s.NextN(ctx, 3)) },
			s.Restored,
			func(ctx context.Context) error { return second(sequence.Open(ctx, store, "orders")) },
			func(ctx context.Context) error { return sequence.Create(ctx, store, "orders", sequence.Definition{}) },
			func(ctx context.Context) error { return second(sequence.List(ctx, store)) },
			func(ctx context.Context) error { return second(sequence.Delete(ctx, store, "orders")) },
			func(ctx context.Context) error { return second(s.NextN(ctx, 3)) }, // after a call of the store has timed out
			func(ctx context.Context) error {
				go func() { waiting <- second(closing.NextN(context.Background(), 100)) }()
				synctest.Wait()
				return closing.CloseContext(ctx)
			},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			began := time.Now()
			err := do(ctx)
			assert.ErrorIs(t, err, context.DeadlineExceeded, i)
			assert.Equal(t, 1, strings.Count(err.Error(), context.DeadlineExceeded.Error()), "%d: %v", i, err)
			assert.Equal(t, time.Second, time.Since(began), i)
			cancel()
		}
		assert.ErrorIs(t, <-waiting, sequence.ErrClosed)
		assert.ErrorIs(t, second(closing.Next(t.Context())), sequence.ErrClosed, "numbers are reserved")
		assert.NoError(t, s.Close())
		fault(storetest.None)
		assert.NoError(t, closing.Close())
		assert.Equal(t, first+1, inspect(t, store).Next)
		assert.NotContains(t, log.String(), "no refill", "what ends because of Close is no failure")
	})
}

// refusing is a store whose swaps fail with an error, unless it is nil.
type refusing struct {
	stores.Store
	refuse *error
}

func (r refusing) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if *r.refuse != nil {
		return 0, *r.refuse
	}
	return r.Store.Swap(ctx, key, version, value)
}

// asking writes the lines of a log, and asks a Sequence for its state.
type asking func()

func (a asking) Write(line []byte) (int, error) { a(); return len(line), nil }

// TestRefusals has a store that refuses: calls end at once, and are no flood. The log has one line, and its
// handler may use the Sequence.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := refusing{storetest.NewMemory(), new(error)}
		var s *sequence.Sequence
		var lines atomic.Int64
		s = open(t, store, sequence.Definition{Max: 1 << 60}, sequence.WithLogger(slog.New(slog.NewTextHandler(asking(func() {
			if s == nil { // a line about VMClock
				return
			}
			n := lines.Add(1)
			s.Stats()
			assert.Equal(t, n != 3, s.Err() != nil)
		}), nil))))
		*store.refuse = stores.Permanent.New("the password is wrong")
		began := time.Now()
		err := second(s.Next(t.Context()))
		synctest.Wait() // a line is logged when the call has its answer
		assert.ErrorIs(t, err, sequence.ErrStore)
		assert.ErrorIs(t, err, stores.Permanent)
		assert.ErrorContains(t, err, "store refuses")
		assert.Zero(t, time.Since(began))
		*store.refuse = stores.ErrOverloaded
		assert.ErrorIs(t, second(s.Next(t.Context())), stores.Permanent, "no flood of calls")
		time.Sleep(time.Second)
		assert.ErrorContains(t, second(s.Next(t.Context())), "this process gets too little processor time: swap sequence")
		synctest.Wait()
		assert.EqualValues(t, 2, lines.Load())
		*store.refuse = nil
		time.Sleep(time.Second)
		assert.EqualValues(t, 1, next(t, s))
		synctest.Wait()
		assert.NoError(t, s.Err())
		assert.EqualValues(t, 3, lines.Load(), "it has recovered")
		*store.refuse = stores.Permanent.New("it is read-only")
		failures := s.Stats().Failures
		for range 20 { // they are reserved, and the last ones ask for more
			next(t, s)
			synctest.Wait()
		}
		assert.Equal(t, failures+1, s.Stats().Failures, "no flood of refills")
		assert.EqualValues(t, 4, lines.Load())
		*store.refuse = nil
		time.Sleep(time.Second)
		next(t, s)
		synctest.Wait()
		assert.ErrorAs(t, second(s.NextN(t.Context(), 1<<61)), new(*sequence.ExhaustedError))
		synctest.Wait()
		assert.EqualValues(t, 4, lines.Load(), "a call for too many is no failure")
		assert.NoError(t, s.Close())
	})
}

// TestWentBack restores a copy of the store: a process that has been granted more notices
// it, marks the cell, and all others stop, until an operator raises the next number. That is also above the
// numbers of a sequence that the store has forgotten: who has it, and reads only then, marks nothing again.
func TestWentBack(t *testing.T) {
	for _, mode := range bothModes {
		synctest.Test(t, func(t *testing.T) {
			store := storetest.NewMemory()
			d := sequence.Definition{Mode: mode, MinStep: 10, MaxStep: 10}
			empty := store.Snapshot()
			forgotten := open(t, store, d)
			nextN(t, forgotten, 1000) // more than any later sequence, so that no mark covers them, but the raised next number
			synctest.Wait()
			empty()
			a, b, late := open(t, store, d), open(t, store, d), open(t, store, d)
			next(t, late)
			synctest.Wait()
			restore := store.Snapshot()
			for range 100 {
				next(t, a)
				next(t, b)
			}
			synctest.Wait()
			restore()
			c := open(t, store, d) // a newcomer without a proof
			next(t, c)
			for _, s := range []*sequence.Sequence{a, b, c} {
				var err error
				for n := 0; err == nil && n < 100; n++ {
					err = second(s.Next(t.Context()))
				}
				require.ErrorIs(t, err, stores.ErrWentBack)
				assert.Equal(t, []uint64{1, 0}, []uint64{s.Stats().WentBack, uint64(s.Stats().Reserved)})
			}
			for _, err := range []error{second(sequence.Open(t.Context(), store, "orders")), remove(t, store)} {
				require.ErrorIs(t, err, stores.ErrWentBack, "the mark must not be lost")
			}
			require.True(t, inspect(t, store).WentBack)
			require.ErrorIs(t, set(t, store, sequence.Change{Next: 200}), sequence.ErrLowered)
			require.NoError(t, set(t, store, sequence.Change{Max: 1 << 40}))
			time.Sleep(time.Second)
			require.ErrorIs(t, second(b.Next(t.Context())), stores.ErrWentBack, "a change of the maximum does not clear the mark")
			require.NoError(t, set(t, store, sequence.Change{Next: 5000}))
			time.Sleep(time.Second)
			for _, s := range []*sequence.Sequence{a, b, c} {
				assert.GreaterOrEqual(t, next(t, s), int64(5000))
			}
			for next(t, late) < 5000 {
				synctest.Wait()
			}
			assert.Equal(t, mode == segmented, late.Stats().Lost > 0, "it did not read the mark, and others may have its numbers")
			assert.ErrorIs(t, second(forgotten.NextN(t.Context(), 100)), sequence.ErrDeleted)
			assert.False(t, inspect(t, store).WentBack)
			require.NoError(t, b.Close())
			require.NoError(t, c.Close())
			restore = store.Snapshot()
			nextN(t, a, 100)
			restore()
			require.ErrorIs(t, second(a.NextN(t.Context(), 100)), stores.ErrWentBack)
			assert.EqualValues(t, 2, a.Stats().WentBack)
			require.NoError(t, a.Close())
		})
	}
}

// stale is a store that answers reads with an older state of the cell, once there is one.
type stale struct {
	*storetest.Memory
	old stores.Cell
}

func (s *stale) Read(ctx context.Context, key string) (stores.Cell, error) {
	if s.old.Version != 0 {
		return s.old, nil
	}
	return s.Memory.Read(ctx, key)
}

// TestOvertaken has another process write before each write. Who has lost goes first: it waits for nobody's pause, and the log
// tells of it only when calls fail.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slow(time.Millisecond)()
		var log strings.Builder
		s := open(t, store, sequence.Definition{Mode: ordered}, sequence.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		limit := int64(1 << 40)
		var left atomic.Int64 // a refill may outlast its call
		left.Store(100)
		store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
			time.Sleep(time.Millisecond)
			if op.Kind == storetest.OpSwap && left.Add(-1) >= 0 {
				limit++
				_, _, err := sequence.Set(ctx, store.Client(), "orders", sequence.Change{Max: limit})
				require.NoError(t, err)
			}
			return storetest.None
		}
		began := time.Now()
		next(t, s)
		assert.Equal(t, 201*time.Millisecond, time.Since(began), "a swap and a read for each")
		assert.NotContains(t, log.String(), "no refill")
		left.Store(math.MaxInt64)
		for range 2 {
			assert.ErrorIs(t, second(s.Next(t.Context())), stores.ErrConflict)
		}
		assert.Equal(t, 1, strings.Count(log.String(), "no refill"))
		left.Store(0)
		assert.NoError(t, s.Close())
	})
}
