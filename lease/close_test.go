package lease_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// TestCloseEndsTheGoroutine, whoever closes, whether or not the store answers: else the bubble does not end.
func TestCloseEndsTheGoroutine(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		hangs bool // the store ignores contexts
		close func(k *lease.Keeper, gen *generator.Generator) error
	}{
		"the keeper":                {close: func(k *lease.Keeper, _ *generator.Generator) error { return k.Close() }},
		"the generator":             {close: func(_ *lease.Keeper, gen *generator.Generator) error { return gen.Close() }},
		"the keeper, it hangs":      {true, func(k *lease.Keeper, _ *generator.Generator) error { return k.CloseContext(ended) }},
		"the generator, it hangs":   {true, func(_ *lease.Keeper, gen *generator.Generator) error { return gen.CloseContext(ended) }},
		"nobody, as none was bound": {close: nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store, log, goOn := storetest.NewMemory(), &record{}, make(chan struct{})
				var hangs atomic.Bool
				store.Before = func(context.Context, storetest.Op) storetest.Fault {
					if hangs.Load() {
						<-goOn
					}
					return storetest.None
				}
				k := must(lease.Claim(t.Context(), store, log.option()))
				if test.close == nil {
					_, err := generator.New(generator.WithLease(k), generator.WithNode(3))
					require.Error(t, err)
					require.NoError(t, k.Close())
					_, err = generator.New(generator.WithLease(k))
					require.ErrorIs(t, err, lease.ErrClosed)
					return
				}
				gen, err := generator.New(generator.WithLease(k))
				require.NoError(t, err)
				_, err = generator.New(generator.WithLease(k))
				require.ErrorContains(t, err, "bound to another generator")
				hangs.Store(test.hangs)
				time.Sleep(period / 2)
				synctest.Wait()
				begin := time.Now()
				err = test.close(k, gen)
				require.Zero(t, time.Since(begin))
				require.Equal(t, test.hangs, errors.Is(err, lease.ErrNotReleased))
				require.Equal(t, test.hangs, errors.Is(err, context.Canceled))
				_, err = gen.Next()
				require.ErrorIs(t, err, generator.ErrClosed, "it is sealed in any case")
				hangs.Store(false)
				close(goOn)
				require.NoError(t, k.Close(), "now it is released")
				require.EqualValues(t, 1, k.Stats().Releases)
				require.NoError(t, gen.Close())
			})
		})
	}
}

// TestRelease checks the limit that a release leaves, whatever was in flight before it.
func TestRelease(t *testing.T) {
	for name, test := range map[string]func(w *world, store *storetest.Memory, k *lease.Keeper, gen *generator.Generator) (limit time.Time){
		"nothing was issued": func(*world, *storetest.Memory, *lease.Keeper, *generator.Generator) time.Time { return noon },
		"a stream has slots in reserve": func(w *world, _ *storetest.Memory, _ *lease.Keeper, gen *generator.Generator) time.Time {
			stream := gen.Stream()
			for range 100 { // so that its blocks grow
				must(stream.Next())
			}
			return must(gen.Layout().Decode(must(stream.Next()))).Time.Add(time.Millisecond)
		},
		"an extension has landed": func(w *world, store *storetest.Memory, k *lease.Keeper, _ *generator.Generator) time.Time {
			store.Fail(storetest.ReplyLost, 2) // also the read that would tell
			w.pass(period/2, k)
			return noon
		},
		"an extension is in flight": func(w *world, store *storetest.Memory, k *lease.Keeper, _ *generator.Generator) time.Time {
			store.Fail(storetest.Delayed, 2)
			w.pass(period/2, k)
			return noon
		},
	} {
		w := newWorld(t)
		store := w.client(nil)
		k := w.claim(store, pin(5))
		gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
		require.NoError(t, err)
		limit := test(w, store, k, gen)
		require.NoError(t, gen.Close(), name)
		require.Equal(t, lease.Released, w.holding(5).State, name)
		require.True(t, w.holding(5).Limit.Equal(limit), "%s: %s", name, w.holding(5).Limit)
	}
}

// TestReleaseAfterAnUnknownClaim: a claim that was in flight when the keeper was closed, and has landed, is
// given back as well.
func TestReleaseAfterAnUnknownClaim(t *testing.T) {
	w := newWorld(t)
	var lost atomic.Bool
	store := w.client(func(op storetest.Op) storetest.Fault {
		if isSwap(op) && lost.Load() {
			return storetest.ReplyLost
		}
		return storetest.None
	})
	ctx, cancel := context.WithCancel(t.Context())
	store.After = func(_ context.Context, op storetest.Op) {
		if isSwap(op) && lost.Load() {
			cancel() // as Close does
		}
	}
	k := w.claim(store, small(0))
	k.Distrust()
	require.NoError(t, lease.ForceRelease(t.Context(), w.cells, 0))
	lost.Store(true)
	k.Poll(ctx)
	lost.Store(false)
	require.Equal(t, lease.Held, w.holding(0).State, "it has landed")
	require.NoError(t, k.Close())
	require.Equal(t, lease.Released, w.holding(0).State)
}

// TestEverythingAtOnce, on a store that fails in all its ways: for the race detector, and for locks that
// wait for each other.
func TestEverythingAtOnce(t *testing.T) {
	var seen sync.Map
	memory, log := storetest.NewMemory(), &record{}
	for range 12 {
		var fleet sync.WaitGroup
		for range 3 {
			fleet.Go(func() {
				store := memory.Client()
				var turn atomic.Uint64
				store.Before = func(context.Context, storetest.Op) storetest.Fault {
					if n := turn.Add(1); n%5 == 0 {
						return storetest.Fault(n / 5 % 4)
					}
					return storetest.None
				}
				k, err := lease.Claim(t.Context(), store, log.option(), small(3), lease.WithWindow(20*time.Millisecond))
				if err != nil {
					return // the store has failed, or all numbers are held by those who could not give them back
				}
				gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
				if !assert.NoError(t, err) {
					return
				}
				var users sync.WaitGroup
				stream, ids := gen.Stream(), make([]snowflake.ID, 200)
				for _, use := range []func() ([]snowflake.ID, error){
					func() ([]snowflake.ID, error) { id, err := gen.Next(); return []snowflake.ID{id}, err },
					func() ([]snowflake.ID, error) { id, err := stream.Next(); return []snowflake.ID{id}, err },
					func() ([]snowflake.ID, error) { n, err := gen.NextN(ids); return ids[:n], err },
					func() ([]snowflake.ID, error) { k.Poll(t.Context()); return nil, k.Err() },
					func() ([]snowflake.ID, error) { return nil, gen.Restored(t.Context()) },
					func() ([]snowflake.ID, error) { k.Stats(); k.Granted(); k.Node(); gen.Stats(); return nil, nil },
				} {
					users.Go(func() {
						for range 300 {
							ids, err := use()
							for _, id := range ids {
								_, twice := seen.LoadOrStore(id, true)
								assert.False(t, twice && err == nil, "%d was issued before", id)
							}
							if errors.Is(err, generator.ErrClosed) || errors.Is(err, lease.ErrClosed) {
								return
							}
						}
					})
				}
				for range 2 {
					users.Go(func() {
						memory.Deliver(0)
						for range 50 {
							runtime.Gosched()
						}
						_ = k.Close() // may fail with the store
						_ = gen.Close()
					})
				}
				users.Wait()
				_, err = gen.Next()
				assert.ErrorIs(t, err, generator.ErrClosed)
				assert.ErrorIs(t, k.Err(), lease.ErrClosed)
			})
		}
		fleet.Wait()
	}
}

// TestRestored: of an original and its clone, the one that is told of it shares no ID with the other,
// whatever was in flight when the memory was copied.
func TestRestored(t *testing.T) {
	for name, test := range map[string]struct {
		option   lease.Option
		inFlight storetest.Fault // the outcome of an extension when the memory was copied
	}{
		"at rest":                     {small(10), storetest.None},
		"an extension has landed":     {small(10), storetest.ReplyLost},
		"an extension is on its way":  {small(10), storetest.Delayed},
		"pinned":                      {pin(5), storetest.None},
		"pinned, an extension landed": {pin(5), storetest.ReplyLost},
		"pinned, an extension comes":  {pin(5), storetest.Delayed},
		"the only number":             {small(0), storetest.None},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clock.AutoAdvance(true)
			store := w.client(nil)
			original := w.claim(store, test.option)
			seen := map[snowflake.ID]bool{}
			issue := func(g *generator.Generator) {
				for range 100 {
					if id, err := g.Next(); err == nil {
						require.False(t, seen[id])
						seen[id] = true
					}
				}
			}
			first := w.generator(original)
			issue(first)
			if test.inFlight != storetest.None {
				store.Fail(test.inFlight, 2) // also the read that would tell
				w.clock.Advance(period / 2)
				original.Poll(t.Context())
			}
			clone := w.clone(original, test.option)
			twin := w.generator(clone)
			node := original.Node()
			was := must(cell.DecodeNode(w.cells.Peek(cell.NodeKey(node)).Value))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			require.NoError(t, clone.Restored(ctx))
			require.NoError(t, clone.Err())
			same := clone.Pinned() || clone.Layout().NodeBits == 0
			require.Equal(t, same, node == clone.Node())
			require.Equal(t, 1, w.log.count("lease: memory was restored, claiming anew"))
			is := must(cell.DecodeNode(w.cells.Peek(cell.NodeKey(clone.Node())).Value))
			require.NotEqual(t, was.Holder, is.Holder, "it has another token")
			w.cells.Deliver(0)
			for range 10 {
				issue(first)
				issue(twin)
				w.clock.Advance(third)
				original.Poll(t.Context())
				clone.Poll(t.Context())
			}
			require.Equal(t, clone.Pinned(), errors.Is(original.Err(), lease.ErrLost))
			require.Equal(t, same, original.Stats().Conflicts > 0)
			issue(twin)
		})
	}
}

// TestF19_SnapshotClone restores a snapshot beside its original, and tells neither. It is the
// documented limit of a lease: both issue the same IDs, but only of the grant at the time of
// the snapshot. The first to extend makes the other find out, and take another number.
func TestF19_SnapshotClone(t *testing.T) {
	for name, order := range map[string][2]int{"the original extends first": {0, 1}, "the copy extends first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clock.AutoAdvance(true)
			original := w.claim(nil, small(1))
			node := original.Node()
			floor, limit := original.Granted()
			keepers := [2]*lease.Keeper{original, w.clone(original)}
			gens := [2]*generator.Generator{w.generator(keepers[0]), w.generator(keepers[1])}
			issued := map[snowflake.ID]int{} // by whom
			var lastTwice time.Time
			for n := 0; w.clock.Wall().Before(limit.Add(3 * period)); n++ {
				for _, i := range order {
					if n > 0 { // the first extension may be due at once
						keepers[i].Poll(t.Context())
					}
					id := must(gens[i].Next()) // both are served all the time
					if by, twice := issued[id]; twice {
						require.NotEqual(t, i, by, "%d twice", id)
						lastTwice = must(original.Layout().Decode(id)).Time
					}
					issued[id] = i
				}
				w.clock.Advance(50 * time.Millisecond)
			}
			first, second := keepers[order[0]], keepers[order[1]]
			require.False(t, lastTwice.IsZero(), "the copy is none: nothing came twice")
			require.LessOrEqual(t, lastTwice.Sub(floor), third+100*time.Millisecond, "until the next extension")
			require.Zero(t, first.Stats().Conflicts)
			require.EqualValues(t, 1, second.Stats().Conflicts, "found out once")
			require.Equal(t, node, first.Node())
			require.NotEqual(t, node, second.Node())
		})
	}
}

// TestRestoredMeets has Restored meet what happens at the same time.
func TestRestoredMeets(t *testing.T) {
	t.Run("a store that is away", func(t *testing.T) {
		w, gone := newWorld(t), away(false)
		k := w.claim(w.client(gone.fault))
		gen := w.generator(k)
		before := must(gen.Next())
		gone = true
		require.ErrorIs(t, k.Restored(t.Context()), lease.ErrStore)
		_, err := gen.Next()
		require.ErrorIs(t, err, generator.ErrNotGranted)
		require.ErrorIs(t, err, lease.ErrStore)
		gone = false
		w.pass(time.Second, k) // it goes on trying
		require.EqualValues(t, 2, k.Stats().Claims)
		require.Greater(t, must(gen.Next()), before)
		require.NoError(t, gen.Close())
		require.ErrorIs(t, k.Restored(t.Context()), lease.ErrClosed)
	})
	t.Run("a refusal", func(t *testing.T) {
		w, ctx, refused := newWorld(t), deadline(t), error(nil)
		k := w.claim(failing{w.cells.Locking(), func() error { return refused }})
		refused = stores.Refused.New("no")
		require.ErrorIs(t, k.Restored(ctx), stores.Refused)
		require.NoError(t, ctx.Err())
	})
	t.Run("a step that claims before its context ends", func(t *testing.T) {
		w, gone := newWorld(t), away(false)
		k := w.claim(w.client(gone.fault))
		gone = true
		ctx, cancel := context.WithCancel(deadline(t))
		n := 0
		k.Hook(func() string {
			if bool(gone) && k.Free() && w.trips() > 4 { // between two tries
				gone = false
				k.Poll(t.Context())
				cancel()
			}
			n++
			return fmt.Sprint(n)
		}, nil, func() {})
		require.ErrorIs(t, k.Restored(ctx), lease.ErrStore)
		require.Positive(t, k.Stats().Remaining)
		require.NoError(t, k.Err())
	})
	t.Run("an extension", func(t *testing.T) {
		w, k := newWorld(t), (*lease.Keeper)(nil)
		store := w.client(nil)
		k = w.claim(store)
		node := k.Node()
		store.After = func(_ context.Context, op storetest.Op) {
			if isSwap(op) {
				store.After = nil
				k.Distrust() // Restored begins
			}
		}
		w.clock.Advance(period / 2)
		k.Poll(t.Context())
		require.Zero(t, k.Stats().Remaining, "it grants nothing, though it lands: it is the original's")
		require.NoError(t, k.Restored(t.Context()))
		require.NotEqual(t, node, k.Node())
		require.Equal(t, lease.Held, w.holding(node).State, "the original's number is not given back")
	})
	t.Run("a close", func(t *testing.T) {
		w := newWorld(t)
		k := w.claim(nil, pin(5))
		gen := w.generator(k)
		w.clock.Advance(time.Second)
		last := must(gen.Next())
		n := 0
		k.Hook(func() string {
			n++
			k.Distrust() // Restored begins
			return fmt.Sprint(n)
		}, nil, func() {})
		require.NoError(t, gen.Close())
		require.Equal(t, lease.Released, w.holding(5).State)
		require.True(t, w.holding(5).Limit.After(must(gen.Layout().Decode(last)).Time), "the release knows what was issued")
		require.ErrorIs(t, k.ClaimFirst(t.Context()), lease.ErrClosed, "as the rest of Restored")
	})
	t.Run("a panic", func(t *testing.T) {
		w, fails := newWorld(t), false
		k := w.claim(w.client(func(storetest.Op) storetest.Fault {
			if fails {
				panic("a bug")
			}
			return storetest.None
		}))
		fails = true
		require.PanicsWithValue(t, "a bug", func() { _ = k.Restored(t.Context()) })
		fails = false
		require.NoError(t, k.Restored(deadline(t)))
		require.NoError(t, k.CloseContext(deadline(t)))
	})
}

// deadline is a context whose deadline does not come.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
