package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

var silent = lease.WithLogger(slog.New(slog.DiscardHandler))

// noKeeper makes sure that no goroutine of a keeper is left. One that has ended may
// take a moment to go.
func noKeeper(t *testing.T) {
	t.Helper()
	buffer := make([]byte, 1<<20)
	var stacks string
	for begin := time.Now(); time.Since(begin) < 10*time.Second; runtime.Gosched() {
		stacks = string(buffer[:runtime.Stack(buffer, true)])
		if !strings.Contains(stacks, "(*Keeper).start") {
			return
		}
	}
	require.Fail(t, "a keeper's goroutine is left", stacks)
}

func TestCloseEndsTheGoroutine(t *testing.T) {
	newKeeper := func(t *testing.T, store stores.Store) *lease.Keeper {
		k, err := lease.Claim(t.Context(), store, silent, lease.WithWindow(20*time.Millisecond))
		require.NoError(t, err)
		return k
	}
	t.Run("a keeper that no generator was bound to", func(t *testing.T) {
		k := newKeeper(t, storetest.NewMemory())
		require.NoError(t, k.Close())
		noKeeper(t)
		_, err := generator.New(generator.WithLease(k))
		require.ErrorIs(t, err, lease.ErrClosed)
	})
	t.Run("a generator", func(t *testing.T) {
		gen, err := generator.New(generator.WithLease(newKeeper(t, storetest.NewMemory())))
		require.NoError(t, err)
		require.NoError(t, gen.Close())
		noKeeper(t)
	})
	t.Run("a keeper with a generator", func(t *testing.T) {
		k := newKeeper(t, storetest.NewMemory())
		gen, err := generator.New(generator.WithLease(k))
		require.NoError(t, err)
		require.NoError(t, k.Close())
		noKeeper(t)
		_, err = gen.Next()
		require.ErrorIs(t, err, generator.ErrClosed)
		require.NoError(t, gen.Close())
	})
	t.Run("a keeper whose generator could not be made", func(t *testing.T) {
		k := newKeeper(t, storetest.NewMemory())
		_, err := generator.New(generator.WithLease(k), generator.WithNode(3))
		require.Error(t, err)
		gen, err := generator.New(generator.WithLease(k))
		require.NoError(t, err, "it is not bound by that")
		_, err = generator.New(generator.WithLease(k))
		require.ErrorContains(t, err, "bound to another generator")
		require.NoError(t, gen.Close())
		noKeeper(t)
	})
	t.Run("while the store hangs", func(t *testing.T) {
		store := storetest.NewMemory()
		var hang atomic.Bool
		asked := make(chan struct{}, 100)
		store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
			if hang.Load() {
				asked <- struct{}{}
				<-ctx.Done()
			}
			return storetest.None
		}
		for _, byKeeper := range []bool{true, false} {
			hang.Store(false)
			k := newKeeper(t, store)
			gen, err := generator.New(generator.WithLease(k))
			require.NoError(t, err)
			hang.Store(true)
			<-asked // the goroutine is in the middle of it
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			begin := time.Now()
			if byKeeper {
				err = k.CloseContext(ctx)
			} else {
				err = gen.CloseContext(ctx)
			}
			require.Less(t, time.Since(begin), lease.DefaultTimeout, "the context has ended")
			require.ErrorIs(t, err, lease.ErrNotReleased)
			require.ErrorIs(t, err, context.Canceled)
			noKeeper(t)
		}
	})
}

// A store that does not look at its context holds nobody up who closes with one that ends.
func TestCloseWhileTheStoreIgnoresItsContext(t *testing.T) {
	store := storetest.NewMemory()
	asked, goOn := make(chan struct{}), make(chan struct{})
	var hang atomic.Bool
	store.Before = func(context.Context, storetest.Op) storetest.Fault {
		if hang.CompareAndSwap(true, false) {
			close(asked)
			<-goOn
		}
		return storetest.None
	}
	k, err := lease.Claim(t.Context(), store, silent, lease.WithWindow(20*time.Millisecond))
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	hang.Store(true)
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = k.CloseContext(ctx)
	require.ErrorIs(t, err, lease.ErrNotReleased)
	require.ErrorIs(t, err, context.Canceled)
	_, err = gen.Next()
	require.ErrorIs(t, err, generator.ErrClosed, "it is sealed all the same")
	close(goOn)
	require.NoError(t, k.Close(), "now it is released")
	require.EqualValues(t, 1, k.Stats().Releases)
	require.NoError(t, k.Close())
	noKeeper(t)
}

// Whoever is first, no ID is issued under a lease that was given back.
func TestCloseAgainstNew(t *testing.T) {
	for range 500 {
		store := storetest.NewMemory()
		k, err := lease.Claim(t.Context(), store, silent, lease.WithNode(lease.NodeNumber(0)))
		require.NoError(t, err)
		var group sync.WaitGroup
		group.Go(func() { assert.NoError(t, k.Close()) })
		gen, err := generator.New(generator.WithLease(k))
		var last snowflake.ID
		if err == nil {
			for err == nil {
				var id snowflake.ID
				if id, err = gen.Next(); err == nil {
					last = id
				}
			}
			assert.ErrorIs(t, err, generator.ErrClosed)
		} else {
			assert.ErrorIs(t, err, lease.ErrClosed)
		}
		group.Wait()
		if last != 0 {
			holding, err := lease.Inspect(t.Context(), store, 0)
			require.NoError(t, err)
			at := must(snowflake.Default().Decode(last)).Time
			require.True(t, at.Before(holding.Limit), "the limit %s is not above an ID of %s", holding.Limit, at)
		}
	}
	noKeeper(t)
}

// Everything at once, on a store that fails in all its ways: for the race detector,
// and for locks that wait for each other.
func TestEverythingAtOnce(t *testing.T) {
	var seen sync.Map
	memory := storetest.NewMemory()
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
				k, err := lease.Claim(t.Context(), store, silent, small(3), lease.WithWindow(20*time.Millisecond))
				if err != nil {
					return // the store has failed, or all numbers are held by those who could not give them back
				}
				gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
				if !assert.NoError(t, err) {
					return
				}
				var users sync.WaitGroup
				use := func(f func() ([]snowflake.ID, error)) {
					users.Go(func() {
						for range 300 {
							ids, err := f()
							for _, id := range ids {
								_, twice := seen.LoadOrStore(id, true)
								assert.False(t, twice, "%d was issued before", id)
							}
							if errors.Is(err, generator.ErrClosed) {
								return
							}
						}
					})
				}
				stream := gen.Stream()
				one := func(id snowflake.ID, err error) ([]snowflake.ID, error) {
					if err != nil {
						return nil, err
					}
					return []snowflake.ID{id}, nil
				}
				use(func() ([]snowflake.ID, error) { return one(gen.Next()) })
				use(func() ([]snowflake.ID, error) { return one(stream.Next()) })
				use(func() ([]snowflake.ID, error) {
					ids := make([]snowflake.ID, 200)
					n, err := gen.NextN(ids)
					return ids[:n], err
				})
				use(func() ([]snowflake.ID, error) { k.Poll(t.Context()); return nil, k.Err() })
				use(func() ([]snowflake.ID, error) {
					err := gen.Restored(t.Context())
					if errors.Is(err, lease.ErrClosed) {
						err = generator.ErrClosed
					}
					return nil, err
				})
				use(func() ([]snowflake.ID, error) {
					k.Stats()
					k.Granted()
					k.Node()
					gen.Stats()
					gen.Node()
					return nil, nil
				})
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
	noKeeper(t)
}

// Streams that have slots in reserve count as if they had issued them.
func TestReleaseCountsWhatStreamsReserved(t *testing.T) {
	store := storetest.NewMemory()
	clock := clocktest.NewVirtual(noon)
	k := claim(t, store, clock, lease.WithNode(lease.NodeNumber(5)))
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	stream := gen.Stream()
	for range 100 { // so that its blocks grow
		_, err := stream.Next()
		require.NoError(t, err)
	}
	tick := must(gen.Layout().Decode(must(stream.Next()))).Time
	require.NoError(t, gen.Close())
	holding, err := lease.Inspect(t.Context(), store, 5)
	require.NoError(t, err)
	require.Equal(t, tick.Add(time.Millisecond), holding.Limit)
	require.Equal(t, lease.Released, holding.State)
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// An extension whose outcome is not known may have landed, or lands later; either
// way the number is given back by whatever version it has.
func TestReleaseAfterAnUnknownExtension(t *testing.T) {
	for _, fault := range []storetest.Fault{storetest.ReplyLost, storetest.Delayed, storetest.Unavailable} {
		memory := storetest.NewMemory()
		store := memory.Client()
		clock := clocktest.NewVirtual(noon)
		k := claim(t, store, clock, lease.WithNode(lease.NodeNumber(5)))
		clock.Advance(15 * time.Second)
		store.Fail(fault, 2) // also the read that would tell
		k.Poll(t.Context())
		require.ErrorIs(t, k.Err(), storetest.ErrFault)
		require.NoError(t, k.Close())
		holding, err := lease.Inspect(t.Context(), memory, 5)
		require.NoError(t, err)
		require.Equal(t, lease.Released, holding.State, "%d", fault)
		require.Equal(t, noon, holding.Limit)
		for range memory.Late() {
			require.False(t, memory.Deliver(0))
		}
	}
}

// A generator that is closed while its keeper goes over to another number never
// comes to use that: it is given back as it was, and not from where the IDs of the
// old one ended, for what lies between is another's.
func TestReleaseOfWhatWasNeverUsed(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	clock.Step(time.Hour) // somebody's was ahead, and it may still be issuing
	ahead, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(1), lease.WithNode(lease.NodeNumber(1)))...)
	require.NoError(t, err)
	require.NoError(t, ahead.Close())
	floor := must(lease.Inspect(t.Context(), memory, 1)).Limit
	clock.Step(-time.Hour)

	store := memory.Client()
	k, err := lease.Claim(t.Context(), store, quiet(clock, small(1))...)
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	claim(t, memory.Client(), clock, small(1), lease.WithNode(lease.NodeNumber(0)), lease.WithWindow(time.Hour))
	clock.Advance(15 * time.Second) // the rest of the grant is not past
	k.Poll(t.Context())
	require.EqualValues(t, 0, k.Node(), "it is held back")
	require.NoError(t, gen.Close())
	holding, err := lease.Inspect(t.Context(), memory, 1)
	require.NoError(t, err)
	require.Equal(t, lease.Released, holding.State)
	require.True(t, holding.Limit.Equal(floor), "%s, not %s", holding.Limit, floor)
}

// A claim that was under way when the keeper was closed, and has landed, is given back as
// well.
func TestReleaseAfterAnUnknownClaim(t *testing.T) {
	memory := storetest.NewMemory()
	client := memory.Client()
	clock := clocktest.NewVirtual(noon)
	k, err := lease.Claim(t.Context(), client, quiet(clock, small(1))...)
	require.NoError(t, err)
	lost := k.Node()
	key := cell.NodeKey(lost)
	r, err := cell.DecodeNode(memory.Peek(key).Value)
	require.NoError(t, err)
	r.Holder, r.Floor, r.Limit, r.Write = "another", r.Limit, r.Limit+100, "another's"
	_, err = memory.Swap(t.Context(), key, memory.Peek(key).Version, r.Encode())
	require.NoError(t, err)
	clock.Advance(lease.DefaultWindow / 2)
	ctx, cancel := context.WithCancel(t.Context())
	client.After = func(_ context.Context, op storetest.Op) {
		if isSwap(op) && op.Key != key {
			cancel() // as Close does
		}
	}
	client.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) && op.Key != key && ctx.Err() == nil {
			return storetest.ReplyLost
		}
		return storetest.None
	}
	k.Poll(ctx)
	client.After = nil
	client.Heal()
	node := 1 - lost
	require.Equal(t, lease.Held, must(lease.Inspect(t.Context(), memory, node)).State, "it has landed")
	require.NoError(t, k.Close())
	require.Equal(t, lease.Released, must(lease.Inspect(t.Context(), memory, node)).State)
	require.Equal(t, lease.Held, must(lease.Inspect(t.Context(), memory, lost)).State, "the other's")
}
