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

// TestUnknownOutcomes has writes whose outcome is unknown: no number comes twice, and none is
// missing, in both modes.
func TestUnknownOutcomes(t *testing.T) {
	for _, mode := range bothModes {
		for _, fault := range []storetest.Fault{storetest.Unavailable, storetest.ReplyLost, storetest.Delayed} {
			for _, late := range []string{"at once", "after the next write", "never"} {
				synctest.Test(t, func(t *testing.T) {
					store := storetest.NewMemory()
					d := sequence.Definition{Start: 1, Mode: mode, MinStep: 1, MaxStep: 2}
					s := open(t, store, d)
					for want := range int64(20) {
						store.Fail(fault, 1)
						if late == "at once" {
							go store.Deliver(0)
						}
						assert.Equal(t, want+1, next(t, s), "%s, fault %d, late %s", mode, fault, late)
						synctest.Wait()
						for late == "after the next write" && len(store.Late()) > 0 {
							store.Deliver(0)
						}
					}
					store.Heal()
					require.NoError(t, s.Close())
					for len(store.Late()) > 0 {
						assert.False(t, store.Deliver(0))
					}
					s = open(t, store, d)
					assert.EqualValues(t, 21, next(t, s), "%s, fault %d, late %s", mode, fault, late)
					require.NoError(t, s.Close())
				})
			}
		}
	}
}

// TestCloseFails: the error says how many numbers are missing, or may be, and that the store hangs.
func TestCloseFails(t *testing.T) {
	for name, test := range map[string]struct {
		d       sequence.Definition
		lost    bool // the reply to a write was lost before
		fault   storetest.Fault
		says    string
		again   bool // a later Close tries again
		is      error
		lostNow uint64 // of Stats
	}{
		"away":                         {d: sequence.Definition{MinStep: 10}, fault: storetest.Unavailable, says: "19 numbers are missing: ", is: storetest.ErrFault, lostNow: 19},
		"a write of unknown outcome":   {d: sequence.Definition{MinStep: 7, MaxStep: 7}, lost: true, fault: storetest.Unavailable, says: "1 numbers are missing, and 6 more if", lostNow: 1},
		"in ordered mode":              {d: sequence.Definition{Mode: ordered}, lost: true, fault: storetest.Unavailable, says: "0 numbers are missing, and 2 more if"},
		"another call of it hangs":     {fault: hangs, says: `sequence "orders": the rest of the segment was not given back: the store does not answer: context deadline exceeded`, is: context.DeadlineExceeded, again: true},
		"the store hangs for its part": {d: sequence.Definition{MinStep: 10}, fault: hangs, says: "19 numbers are missing: ", is: context.DeadlineExceeded, lostNow: 19},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, fault := faulty()
			var options []sequence.Option
			if test.lost {
				options = append(options, sequence.WithPolling()) // no segment is reserved ahead
			}
			s := open(t, store, test.d, options...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			switch {
			case test.lost:
				if test.d.Mode == segmented {
					nextN(t, s, 6)
				}
				before := store.Before
				store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
					if op.Kind == storetest.OpSwap {
						return storetest.ReplyLost
					}
					return before(ctx, op)
				}
				fault(test.fault)
				require.Error(t, second(s.NextN(ctx, 2)), name)
			case test.again:
				fault(test.fault)
				ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				require.Error(t, second(s.Next(ctx)))
				ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
			default:
				next(t, s)
				synctest.Wait()
				fault(test.fault)
			}
			err := s.CloseContext(ctx)
			require.ErrorIs(t, err, sequence.ErrNotGivenBack, name)
			require.ErrorContains(t, err, test.says, name)
			if test.is != nil {
				assert.ErrorIs(t, err, test.is, name)
			}
			assert.Equal(t, test.lostNow, s.Stats().Lost, name)
			if test.again {
				fault(storetest.None)
			}
			assert.NoError(t, s.Close(), "again")
		})
	}
}

// TestHangs has a store whose calls end with their contexts only.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, fault := faulty()
		s := open(t, store, sequence.Definition{MinStep: 1})
		next(t, s)
		synctest.Wait()
		fault(hangs)
		next(t, s) // it is reserved
		waiting := make(chan error, 1)
		for _, call := range []struct {
			name string
			do   func(ctx context.Context) error
		}{
			{"next", func(ctx context.Context) error { return second(s.NextN(ctx, 3)) }},
			{"poll", func(ctx context.Context) error { return second(s.Poll(ctx)) }},
			{"restored", s.Restored},
			{"open", func(ctx context.Context) error { return second(sequence.Open(ctx, store, "orders")) }},
			{"create", func(ctx context.Context) error { return sequence.Create(ctx, store, "orders", sequence.Definition{}) }},
			{"inspect", func(ctx context.Context) error { return second(sequence.Inspect(ctx, store, "orders")) }},
			{"list", func(ctx context.Context) error { return second(sequence.List(ctx, store)) }},
			{"set", func(ctx context.Context) error {
				_, _, err := sequence.Set(ctx, store, "orders", sequence.Change{Next: 9})
				return err
			}},
			{"delete", func(ctx context.Context) error { return second(sequence.Delete(ctx, store, "orders")) }},
			{"export", func(ctx context.Context) error { return second(sequence.Export(ctx, store, "orders", "new")) }},
			{"close", func(ctx context.Context) error {
				go func() { waiting <- second(s.Next(context.Background())) }()
				synctest.Wait()
				return s.CloseContext(ctx)
			}},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			began := time.Now()
			assert.ErrorIs(t, call.do(ctx), context.DeadlineExceeded, call.name)
			assert.Equal(t, time.Second, time.Since(began), call.name)
			cancel()
		}
		assert.ErrorIs(t, <-waiting, sequence.ErrClosed)
		assert.NoError(t, s.Close())
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

// asking is a handler of a log that asks a Sequence for its state.
type asking struct {
	slog.Handler
	ask func()
}

func (a asking) Enabled(context.Context, slog.Level) bool  { return true }
func (a asking) Handle(context.Context, slog.Record) error { a.ask(); return nil }
func (a asking) WithAttrs([]slog.Attr) slog.Handler        { return a }
func (a asking) WithGroup(string) slog.Handler             { return a }

// TestRefusals has a store that refuses: calls end at once, and are no flood. The log has one line, and its
// handler may use the Sequence.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := refusing{storetest.NewMemory(), new(error)}
		var s *sequence.Sequence
		var lines atomic.Int64
		s = open(t, store, sequence.Definition{}, sequence.WithLogger(slog.New(asking{slog.DiscardHandler, func() {
			n := lines.Add(1)
			s.Stats()
			assert.Equal(t, n < 3, s.Err() != nil)
		}})))
		*store.refuse = stores.Refused.New("the password is wrong")
		began := time.Now()
		err := second(s.Next(t.Context()))
		synctest.Wait() // a line is logged when the call has its answer
		assert.ErrorIs(t, err, sequence.ErrStore)
		assert.ErrorIs(t, err, stores.Refused)
		assert.ErrorContains(t, err, "store refuses")
		assert.Zero(t, time.Since(began))
		*store.refuse = stores.ErrOverloaded
		assert.ErrorIs(t, second(s.Next(t.Context())), stores.Refused, "no flood of calls")
		time.Sleep(time.Second)
		assert.ErrorContains(t, second(s.Next(t.Context())), "this process gets too little processor time: swap sequence")
		synctest.Wait()
		assert.EqualValues(t, 2, lines.Load())
		*store.refuse = nil
		time.Sleep(time.Second)
		assert.Zero(t, next(t, s))
		synctest.Wait()
		assert.NoError(t, s.Err())
		assert.EqualValues(t, 3, lines.Load(), "it has recovered")
		assert.NoError(t, s.Close())
	})
}

// TestWentBack restores a copy of the store: a process that has been granted more notices
// it, marks the cell, and all others stop, until an operator raises the next number.
func TestWentBack(t *testing.T) {
	for _, mode := range bothModes {
		for _, emptied := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store := storetest.NewMemory()
				d := sequence.Definition{Start: 1, Mode: mode, MinStep: 10, MaxStep: 10}
				restore := store.Snapshot() // of the empty store
				a, b := open(t, store, d), open(t, store, d)
				next(t, a)
				if !emptied {
					restore = store.Snapshot()
				}
				for range 100 {
					next(t, a)
					next(t, b)
				}
				synctest.Wait()
				lost := inspect(t, store)
				restore()
				c := open(t, store, d) // a newcomer without a proof
				assert.LessOrEqual(t, next(t, c), lost.Last)
				for _, s := range []*sequence.Sequence{a, b, c} {
					var err error
					for range 100 {
						if err = second(s.Next(t.Context())); err != nil {
							break
						}
					}
					require.ErrorIs(t, err, stores.ErrWentBack)
					assert.Equal(t, stores.Loss, stores.KindOf(err))
					assert.EqualValues(t, 1, s.Stats().WentBack)
					assert.Zero(t, s.Stats().Reserved)
				}
				require.ErrorIs(t, second(sequence.Open(t.Context(), store, "orders")), stores.ErrWentBack)
				require.ErrorIs(t, second(sequence.Export(t.Context(), store, "orders", "new")), stores.ErrWentBack)
				require.ErrorIs(t, remove(t, store), stores.ErrWentBack, "the mark must not be lost")
				info := inspect(t, store)
				assert.True(t, info.WentBack)
				assert.GreaterOrEqual(t, info.Last+10, lost.Last)

				require.ErrorIs(t, set(t, store, sequence.Change{Next: info.Last}), sequence.ErrLowered)
				require.NoError(t, set(t, store, sequence.Change{Max: 1 << 40}))
				time.Sleep(time.Second)
				require.ErrorIs(t, second(b.Next(t.Context())), stores.ErrWentBack, "a change of the maximum does not clear the mark")
				require.NoError(t, set(t, store, sequence.Change{Next: 5000}))
				assert.False(t, inspect(t, store).WentBack)
				time.Sleep(time.Second)
				for _, s := range []*sequence.Sequence{a, b, c} {
					if s == c && emptied {
						require.ErrorIs(t, second(s.Next(t.Context())), sequence.ErrDeleted, "it has numbers of another sequence")
					} else {
						assert.GreaterOrEqual(t, next(t, s), int64(5000))
					}
					_ = s.Close()
				}
			})
		}
	}
}

// TestWentBackDuringAWrite: a process that finds proof when it reads its last write back stops at once.
func TestWentBackDuringAWrite(t *testing.T) {
	memory := storetest.NewMemory()
	restore := memory.Snapshot() // of the empty store
	client := memory.Client()
	s := open(t, client, sequence.Definition{Start: 1, MinStep: 10, MaxStep: 10}, sequence.WithPolling())
	next(t, s)
	client.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpSwap {
			client.Before = nil
			restore()
			return storetest.Unavailable
		}
		return storetest.None
	}
	require.ErrorIs(t, second(s.Poll(t.Context())), stores.ErrWentBack, "and not the failure of the write")
	assert.Zero(t, s.Stats().Reserved)
}

// TestRestored gives up what is reserved.
func TestRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		s := open(t, store, sequence.Definition{MinStep: 10})
		next(t, s)
		synctest.Wait()
		require.NoError(t, s.Restored(t.Context()))
		assert.EqualValues(t, 20, next(t, s), "above all that was granted before")
		assert.EqualValues(t, 19, s.Stats().Lost)
		require.NoError(t, s.Close())
		assert.ErrorIs(t, s.Restored(t.Context()), sequence.ErrClosed)
		assert.EqualValues(t, 21, inspect(t, store).Next)
	})
}

// stale is a store that answers the next reads with an older state of the cell.
type stale struct {
	*storetest.Memory
	old   stores.Cell
	reads int // how many are stale
}

func (s *stale) Read(ctx context.Context, key string) (stores.Cell, error) {
	c, err := s.Memory.Read(ctx, key)
	if s.reads > 0 {
		s.reads--
		return s.old, err
	}
	return c, err
}

// TestStaleReads reads what the process knows already, or an older state, after another process has
// written. The store is blamed, and not the other process; the sequence is tried at a distance; and no
// number is lost, nor said to be, until the process gives up what it has on a suspicion.
func TestStaleReads(t *testing.T) {
	type s = *sequence.Sequence
	for name, test := range map[string]struct {
		older bool
		reads int
		end   func(*testing.T, s)
		lost  uint64
	}{
		"one":             {older: true, reads: 1},
		"the state known": {reads: math.MaxInt},
		"an older state":  {older: true, reads: math.MaxInt},
		"restored":        {older: true, reads: math.MaxInt, end: func(t *testing.T, s s) { _ = s.Restored(t.Context()) }, lost: 9},
		"closed":          {older: true, reads: math.MaxInt, end: func(_ *testing.T, s s) { _ = s.Close() }, lost: 9},
	} {
		synctest.Test(t, func(t *testing.T) {
			memory := slow(time.Millisecond)()
			store := &stale{Memory: memory}
			var log strings.Builder
			s := open(t, store, sequence.Definition{Start: 1, MinStep: 10, MaxStep: 10}, sequence.WithOutage(0), sequence.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			old := memory.Peek("seq/orders")
			require.EqualValues(t, 1, next(t, s))
			if !test.older {
				old = memory.Peek("seq/orders")
			}
			require.NoError(t, set(t, memory, sequence.Change{Max: 1000}))
			store.old, store.reads = old, test.reads
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			first, err := s.NextN(ctx, 10)
			stats := s.Stats()
			if test.reads == 1 {
				require.NoError(t, err, "it conflicts, and reads twice")
				assert.EqualValues(t, 2, first)
			} else {
				require.ErrorIs(t, err, sequence.ErrStore, name)
				assert.NotErrorIs(t, err, stores.ErrConflict, name)
				assert.ErrorContains(t, err, "reads that are out of date", name)
				assert.Equal(t, 1, strings.Count(log.String(), "no refill"), name)
				assert.LessOrEqual(t, stats.Conflicts, uint64(50), "it pauses")
			}
			assert.Zero(t, stats.Lost, name)
			if test.end != nil {
				test.end(t, s)
				assert.Equal(t, test.lost, s.Stats().Lost, name)
			} else {
				store.reads = 0
				for want := int64(stats.Issued) + 1; want < 30; want++ {
					require.Equal(t, want, next(t, s), name)
				}
				assert.Equal(t, []uint64{0, 0}, []uint64{s.Stats().Lost, s.Stats().WentBack}, name)
			}
			_ = s.Close()
		})
	}
}

// TestResent has a driver send a write twice, while others write in between. A give-back whose numbers
// another process takes: none of them is given back again, and the store has lost no write. A creation
// that is deleted: the second one makes another sequence, and who uses the first is told so.
func TestResent(t *testing.T) {
	for _, changed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			memory := storetest.NewMemory()
			d := sequence.Definition{Start: 1, Max: 19, MinStep: 19, MaxStep: 19}
			b := open(t, memory, d, sequence.WithOutage(0))
			store := resending{memory, new(atomic.Bool), func() {
				assert.EqualValues(t, 2, nextN(t, b, 18))
				if changed { // an operator's write begins at the next index
					assert.NoError(t, set(t, memory, sequence.Change{Max: 1000}))
				}
			}}
			a := open(t, store, d, sequence.WithOutage(0))
			assert.EqualValues(t, 1, next(t, a))
			store.lost.Store(true)
			assert.NoError(t, a.Close())
			assert.Zero(t, a.Stats().WentBack)
			require.NoError(t, set(t, memory, sequence.Change{Max: 1000}))
			c := open(t, memory, d)
			for n := range int64(40) {
				require.Greater(t, next(t, c), 19+n)
				require.NoError(t, c.Err())
			}
		})
	}
	memory := storetest.NewMemory()
	var b *sequence.Sequence
	store := resending{memory, new(atomic.Bool), func() {
		b = open(t, memory, sequence.Definition{}, sequence.WithOutage(0))
		nextN(t, b, 100)
		assert.NoError(t, remove(t, memory))
	}}
	store.lost.Store(true)
	a := open(t, store, sequence.Definition{})
	assert.ErrorIs(t, second(b.Next(t.Context())), sequence.ErrDeleted)
	assert.EqualValues(t, 100, next(t, a))
}
