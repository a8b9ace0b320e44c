package sequence_test

import (
	"context"
	"errors"
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

// faulty returns a client of a store, and a function that sets the fault of its operations.
func faulty() (*storetest.Memory, func(storetest.Fault)) {
	client := storetest.NewMemory()
	var fault atomic.Uint32
	client.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Fault(fault.Load()) }
	return client, func(f storetest.Fault) { fault.Store(uint32(f)) }
}

// TestOutage takes a number each 100 ms while the store is away for 8 s, and then longer.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, set := faulty()
		s := open(t, store, "orders", sequence.Definition{MinStep: 1})
		steady := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				next(t, s)
			}
		}
		steady(3 * time.Minute)
		assert.InDelta(t, 10, s.Stats().Rate, 1)
		assert.InDelta(t, 100, s.Stats().Step, 10)
		assert.LessOrEqual(t, s.Stats().Reserved, int64(200))
		starved := s.Stats().Starved

		set(storetest.Unavailable)
		steady(9 * time.Second)
		assert.Equal(t, starved, s.Stats().Starved)
		set(storetest.None)
		steady(20 * time.Second)
		assert.Equal(t, starved, s.Stats().Starved)
		assert.NoError(t, s.Err())

		set(storetest.Unavailable)
		for s.Stats().Reserved > 0 {
			next(t, s)
		}
		began := time.Now()
		_, err := s.Next(context.Background())
		assert.ErrorIs(t, err, sequence.ErrTimeout)
		assert.ErrorIs(t, err, storetest.ErrFault)
		assert.ErrorIs(t, err, sequence.ErrStore)
		assert.Equal(t, 2*time.Second, time.Since(began))
		assert.ErrorIs(t, s.Err(), storetest.ErrFault)

		cause := errors.New("the user went away")
		ctx, cancel := context.WithTimeoutCause(context.Background(), 5*time.Second, cause)
		defer cancel()
		began = time.Now()
		_, err = s.Next(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, cause)
		assert.Equal(t, 5*time.Second, time.Since(began))

		ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		time.AfterFunc(2*time.Second, func() { set(storetest.None) })
		_, err = s.Next(ctx)
		assert.NoError(t, err)
		assert.NoError(t, s.Close())
	})
}

// TestUnknownOutcomes has writes whose outcome is unknown: no number comes twice, and none is
// missing, in both modes.
func TestUnknownOutcomes(t *testing.T) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		for _, fault := range []storetest.Fault{storetest.Unavailable, storetest.ReplyLost, storetest.Delayed} {
			for _, late := range []string{"at once", "after the next write", "never"} {
				synctest.Test(t, func(t *testing.T) {
					store := storetest.NewMemory()
					s := open(t, store, "orders", sequence.Definition{Start: 1, Mode: mode, MinStep: 1, MaxStep: 2})
					for want := range int64(20) {
						store.Fail(fault, 1)
						if late == "at once" {
							go store.Deliver(0)
						}
						assert.Equal(t, want+1, next(t, s), "%s, fault %d, late %s", mode, fault, late)
						synctest.Wait()
						if late == "after the next write" {
							for len(store.Late()) > 0 {
								store.Deliver(0)
							}
						}
					}
					store.Heal()
					require.NoError(t, s.Close())
					for len(store.Late()) > 0 {
						assert.False(t, store.Deliver(0))
					}
					s = open(t, store, "orders", sequence.Definition{Start: 1, Mode: mode, MinStep: 1, MaxStep: 2})
					assert.EqualValues(t, 21, next(t, s), "%s, fault %d, late %s", mode, fault, late)
					require.NoError(t, s.Close())
				})
			}
		}
	}
}

// TestCloseCannotGiveBack closes a sequence while the store is away.
func TestCloseCannotGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, set := faulty()
		s := open(t, store, "orders", sequence.Definition{MinStep: 10})
		next(t, s)
		synctest.Wait()
		set(storetest.Unavailable)
		err := s.Close()
		assert.ErrorIs(t, err, sequence.ErrNotGivenBack)
		assert.ErrorIs(t, err, storetest.ErrFault)
		assert.ErrorContains(t, err, "19 numbers are missing")
		assert.EqualValues(t, 19, s.Stats().Lost)
		assert.NoError(t, s.Close(), "again")
	})
}

// TestHangs has a store whose calls end with their contexts only.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		hang := false
		store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
			if hang {
				<-ctx.Done()
			}
			return storetest.None
		}
		s := open(t, store, "orders", sequence.Definition{MinStep: 1})
		next(t, s)
		synctest.Wait()
		hang = true
		call := func(name string, want time.Duration, do func(ctx context.Context) error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			began := time.Now()
			assert.ErrorIs(t, do(ctx), context.DeadlineExceeded, name)
			assert.Equal(t, want, time.Since(began), name)
		}
		call("next", 0, func(ctx context.Context) error {
			next(t, s)
			return context.DeadlineExceeded
		})
		call("next", time.Second, func(ctx context.Context) error { _, err := s.NextN(ctx, 3); return err })
		call("poll", time.Second, func(ctx context.Context) error { _, err := s.Poll(ctx); return err })
		call("restored", time.Second, s.Restored)
		call("open", time.Second, func(ctx context.Context) error { _, err := sequence.Open(ctx, store, "orders"); return err })
		call("create", time.Second, func(ctx context.Context) error { return sequence.Create(ctx, store, "orders", sequence.Definition{}) })
		call("inspect", time.Second, func(ctx context.Context) error { _, err := sequence.Inspect(ctx, store, "orders"); return err })
		call("list", time.Second, func(ctx context.Context) error { _, err := sequence.List(ctx, store); return err })
		call("set", time.Second, func(ctx context.Context) error {
			_, _, err := sequence.Set(ctx, store, "orders", sequence.Change{Next: 9})
			return err
		})
		call("delete", time.Second, func(ctx context.Context) error { _, err := sequence.Delete(ctx, store, "orders"); return err })
		waiting := make(chan error, 1)
		go func() { _, err := s.Next(context.Background()); waiting <- err }()
		synctest.Wait()
		call("close", time.Second, s.CloseContext)
		assert.ErrorIs(t, <-waiting, sequence.ErrClosed)
		assert.NoError(t, s.Close())
	})
}

// TestRefusals has a store that refuses: calls end at once.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := refusing{storetest.NewMemory(), new(error)}
		s := open(t, store, "orders", sequence.Definition{})
		*store.refuse = stores.Refused.New("the password is wrong")
		began := time.Now()
		_, err := s.Next(t.Context())
		assert.ErrorIs(t, err, sequence.ErrStore)
		assert.ErrorIs(t, err, stores.Refused)
		assert.ErrorContains(t, err, "store refuses")
		assert.Zero(t, time.Since(began))
		*store.refuse = stores.ErrOverloaded
		_, err = s.Next(t.Context())
		assert.ErrorIs(t, err, stores.Refused, "no flood of calls")
		time.Sleep(time.Second)
		_, err = s.Next(t.Context())
		assert.ErrorContains(t, err, "this process gets too little processor time: swap sequence")
		*store.refuse = nil
		time.Sleep(time.Second)
		assert.Zero(t, next(t, s))
		assert.NoError(t, s.Err())
		assert.NoError(t, s.Close())
	})
}

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

// TestWentBack restores a copy of the store: a process that has been granted more notices
// it, marks the cell, and all others stop, until an operator raises the next number.
func TestWentBack(t *testing.T) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		for _, emptied := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store := storetest.NewMemory()
				d := sequence.Definition{Start: 1, Mode: mode, MinStep: 10, MaxStep: 10}
				restore := store.Snapshot() // of the empty store
				a, b := open(t, store, "orders", d), open(t, store, "orders", d)
				next(t, a)
				if !emptied {
					restore = store.Snapshot()
				}
				for range 100 {
					next(t, a)
					next(t, b)
				}
				synctest.Wait()
				lost, err := sequence.Inspect(t.Context(), store, "orders")
				require.NoError(t, err)
				restore()
				c := open(t, store, "orders", d) // a newcomer without a proof
				repeated := next(t, c)
				assert.LessOrEqual(t, repeated, lost.Last)

				until := func(s *sequence.Sequence) (err error) {
					for range 100 {
						if _, err = s.Next(t.Context()); err != nil {
							return err
						}
					}
					return nil
				}
				err = until(a)
				require.ErrorIs(t, err, stores.ErrWentBack)
				assert.Equal(t, stores.Loss, stores.KindOf(err))
				assert.EqualValues(t, 1, a.Stats().WentBack)
				assert.Zero(t, a.Stats().Reserved)
				for _, s := range []*sequence.Sequence{b, c} {
					require.ErrorIs(t, until(s), stores.ErrWentBack)
					assert.EqualValues(t, 1, s.Stats().WentBack)
				}
				_, err = sequence.Open(t.Context(), store, "orders")
				require.ErrorIs(t, err, stores.ErrWentBack)
				_, err = sequence.Delete(t.Context(), store, "orders")
				require.ErrorIs(t, err, stores.ErrWentBack, "the mark must not be lost")
				info, err := sequence.Inspect(t.Context(), store, "orders")
				require.NoError(t, err)
				assert.True(t, info.WentBack)
				assert.GreaterOrEqual(t, info.Last+10, lost.Last)

				_, _, err = sequence.Set(t.Context(), store, "orders", sequence.Change{Next: info.Last})
				require.ErrorIs(t, err, sequence.ErrLowered)
				_, _, err = sequence.Set(t.Context(), store, "orders", sequence.Change{Max: 1 << 40})
				require.NoError(t, err)
				time.Sleep(time.Second)
				_, err = b.Next(t.Context())
				require.ErrorIs(t, err, stores.ErrWentBack, "a change of the maximum does not clear the mark")
				_, after, err := sequence.Set(t.Context(), store, "orders", sequence.Change{Next: 5000})
				require.NoError(t, err)
				assert.False(t, after.WentBack)
				time.Sleep(time.Second)
				for _, s := range []*sequence.Sequence{a, b} {
					assert.GreaterOrEqual(t, next(t, s), int64(5000))
				}
				if emptied {
					_, err := c.Next(t.Context())
					require.ErrorIs(t, err, sequence.ErrDeleted, "it has numbers of another sequence")
				} else {
					assert.GreaterOrEqual(t, next(t, c), int64(5000))
				}
				next(t, a)
				for _, s := range []*sequence.Sequence{a, b, c} {
					s.Close()
				}
			})
		}
	}
}

// TestRestored copies the memory of a process, by a second Sequence that plays the copy.
func TestRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		s := open(t, store, "orders", sequence.Definition{MinStep: 10})
		next(t, s)
		synctest.Wait()
		require.NoError(t, s.Restored(t.Context()))
		assert.EqualValues(t, 20, next(t, s), "above all that was granted before")
		assert.EqualValues(t, 19, s.Stats().Lost)
		require.NoError(t, s.Close())
		assert.ErrorIs(t, s.Restored(t.Context()), sequence.ErrClosed)
		info, err := sequence.Inspect(t.Context(), store, "orders")
		require.NoError(t, err)
		assert.EqualValues(t, 21, info.Next)
	})
}

// TestCloseUnknownOutcome closes while a write has an unknown outcome: the error says how many
// numbers may be missing by it.
func TestCloseUnknownOutcome(t *testing.T) {
	for mode, want := range map[sequence.Mode]string{
		sequence.Segmented: "1 numbers are missing, and 6 more if",
		sequence.Ordered:   "0 numbers are missing, and 2 more if",
	} {
		store := storetest.NewMemory()
		s := open(t, store, "orders", sequence.Definition{Mode: mode, MinStep: 7, MaxStep: 7}, sequence.WithPolling())
		if mode == sequence.Segmented {
			nextN(t, s, 6)
		}
		store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
			if op.Kind == storetest.OpSwap {
				return storetest.ReplyLost
			}
			return storetest.Unavailable
		}
		_, err := s.NextN(t.Context(), 2)
		require.Error(t, err)
		err = s.Close()
		assert.ErrorIs(t, err, sequence.ErrNotGivenBack)
		assert.ErrorContains(t, err, want)
	}
}

// TestHandlerUsesTheSequence has a handler of the log that asks the Sequence for its state.
func TestHandlerUsesTheSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, set := faulty()
		var s *sequence.Sequence
		lines := 0
		log := slog.New(asking{slog.DiscardHandler, func() {
			lines++
			s.Stats()
			assert.Error(t, s.Err())
		}})
		s = open(t, store, "orders", sequence.Definition{}, sequence.WithLogger(log))
		set(storetest.Unavailable)
		_, err := s.Next(t.Context())
		assert.ErrorIs(t, err, sequence.ErrTimeout)
		assert.Equal(t, 1, lines)
		set(storetest.None)
		require.NoError(t, s.Close())
	})
}

type asking struct {
	slog.Handler
	ask func()
}

func (a asking) Enabled(context.Context, slog.Level) bool { return true }

func (a asking) Handle(context.Context, slog.Record) error {
	a.ask()
	return nil
}

// TestMarkAfterAnUnknownOutcome: a process that finds proof when it reads its last write back
// stops at once.
func TestMarkAfterAnUnknownOutcome(t *testing.T) {
	memory := storetest.NewMemory()
	d := sequence.Definition{Start: 1, MinStep: 10, MaxStep: 10}
	restore := memory.Snapshot() // of the empty store
	client := memory.Client()
	s := open(t, client, "orders", d, sequence.WithPolling())
	next(t, s)
	client.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpSwap {
			client.Before = nil
			restore()
			return storetest.Unavailable
		}
		return storetest.None
	}
	_, err := s.Poll(t.Context())
	require.ErrorIs(t, err, stores.ErrWentBack, "and not the failure of the write")
	assert.Zero(t, s.Stats().Reserved)
}

// stale is a store that answers the next reads with an older state of the cell.
type stale struct {
	*storetest.Memory
	old   *stores.Cell
	reads *int // how many are stale
}

func (s stale) Read(ctx context.Context, key string) (stores.Cell, error) {
	c, err := s.Memory.Read(ctx, key)
	if *s.reads > 0 {
		*s.reads--
		return *s.old, err
	}
	return c, err
}

// TestStaleRead reads an older state of the cell once: the process goes on with its reserve, and no
// number is lost.
func TestStaleRead(t *testing.T) {
	memory := storetest.NewMemory()
	store := stale{memory, new(stores.Cell), new(int)}
	d := sequence.Definition{Start: 1, MinStep: 10, MaxStep: 10}
	s := open(t, store, "orders", d, sequence.WithPolling())
	old := memory.Peek("seq/orders")
	require.EqualValues(t, 1, next(t, s))
	_, _, err := sequence.Set(t.Context(), memory, "orders", sequence.Change{Max: 1000})
	require.NoError(t, err)
	*store.old, *store.reads = old, 1
	_, err = s.Poll(t.Context())
	require.NoError(t, err, "it conflicts, and reads twice")
	for want := range int64(19) {
		require.Equal(t, want+2, next(t, s))
	}
	require.NoError(t, s.Close())
	stats := s.Stats()
	assert.Equal(t, []uint64{20, 0, 0}, []uint64{stats.Issued, stats.Lost, stats.WentBack})
}

// TestReadsThatLag reads for a second what the process knows already, or an older state, after another
// process has written: the store is blamed, and not the other process. The sequence is tried at
// a distance, and no number is lost, nor said to be.
func TestReadsThatLag(t *testing.T) {
	for _, older := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			memory := slow(time.Millisecond)()
			store := stale{memory, new(stores.Cell), new(int)}
			var log strings.Builder
			d := sequence.Definition{Start: 1, MinStep: 10, MaxStep: 10}
			s := open(t, store, "orders", d, sequence.WithOutage(0), sequence.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			*store.old = memory.Peek("seq/orders")
			require.EqualValues(t, 1, next(t, s))
			if !older {
				*store.old = memory.Peek("seq/orders")
			}
			_, _, err := sequence.Set(t.Context(), memory, "orders", sequence.Change{Max: 1000})
			require.NoError(t, err)

			*store.reads = math.MaxInt
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err = s.NextN(ctx, 10)
			require.ErrorIs(t, err, sequence.ErrStore)
			assert.NotErrorIs(t, err, stores.ErrConflict)
			assert.ErrorContains(t, err, "reads that are out of date")
			assert.Equal(t, 1, strings.Count(log.String(), "no refill"))
			stats := s.Stats()
			assert.LessOrEqual(t, stats.Conflicts, uint64(50), "it pauses")
			assert.Zero(t, stats.Lost)

			*store.reads = 0
			require.EqualValues(t, 2, next(t, s))
			require.NoError(t, s.Close())
			stats = s.Stats()
			assert.Equal(t, []uint64{2, 0, 0}, []uint64{stats.Issued, stats.Lost, stats.WentBack}, older)
		})
	}
}

// TestSuspicionEndsInLoss has numbers taken back on a suspicion that nothing allays: they are lost once the
// process gives them up, and not before.
func TestSuspicionEndsInLoss(t *testing.T) {
	for name, end := range map[string]func(*sequence.Sequence) error{
		"restored": func(s *sequence.Sequence) error { return s.Restored(t.Context()) },
		"closed":   (*sequence.Sequence).Close,
	} {
		memory := storetest.NewMemory()
		store := stale{memory, new(stores.Cell), new(int)}
		s := open(t, store, "orders", sequence.Definition{MinStep: 10, MaxStep: 10}, sequence.WithPolling())
		*store.old = memory.Peek("seq/orders")
		next(t, s)
		_, _, err := sequence.Set(t.Context(), memory, "orders", sequence.Change{Max: 1000})
		require.NoError(t, err)
		*store.reads = math.MaxInt
		_, err = s.NextN(t.Context(), 10)
		require.ErrorIs(t, err, sequence.ErrStore)
		require.Zero(t, s.Stats().Lost, name)
		end(s) //nolint:errcheck // the reads are still out of date
		assert.EqualValues(t, 9, s.Stats().Lost, name)
	}
}
