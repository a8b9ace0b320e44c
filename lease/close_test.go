package lease_test

import (
	"context"
	"errors"
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
	"github.com/tickflake/tickflake/internal/vmclock/vmclocktest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// TestCloseEndsTheGoroutine, whether or not the store answers: else the bubble does not end.
func TestCloseEndsTheGoroutine(t *testing.T) {
	for _, hangs := range []bool{false, true} { // the store, and it ignores contexts
		bubble(t, func(t *testing.T) {
			store, log, goOn := storetest.NewMemory().Locking(), &record{}, make(chan struct{})
			var hanging atomic.Bool
			store.Before = func(context.Context, storetest.Op) storetest.Fault {
				if hanging.Load() {
					<-goOn
				}
				return storetest.None
			}
			k := must(lease.Claim(t.Context(), store, log.option()))
			require.Error(t, second(generator.New(generator.WithLease(k), generator.WithNode(3))), "it binds none")
			gen := must(generator.New(generator.WithLease(k)))
			require.ErrorContains(t, second(generator.New(generator.WithLease(k))), "bound to another generator")
			time.Sleep(period / 2)
			synctest.Wait()
			hanging.Store(hangs)
			ctx, cancel := context.WithCancel(t.Context())
			if hangs {
				cancel()
			}
			begin := time.Now()
			err := k.CloseContext(ctx)
			cancel()
			require.Zero(t, time.Since(begin))
			require.Equal(t, hangs, errors.Is(err, lease.ErrNotReleased))
			require.Equal(t, hangs, errors.Is(err, context.Canceled))
			require.ErrorIs(t, second(gen.Next()), generator.ErrClosed, "it is sealed in any case")
			hanging.Store(false)
			close(goOn)
			synctest.Wait()
			require.EqualValues(t, 1, k.Stats().Releases, "nobody asks again")
			next := must(lease.Claim(t.Context(), store, log.option(), lease.WithNode(k.Node())))
			require.NoError(t, next.Close())
			require.NoError(t, k.Close())
			require.NoError(t, gen.Close())
			require.ErrorIs(t, second(generator.New(generator.WithLease(k))), lease.ErrClosed)
		})
	}
}

// TestRelease checks the limit that a release leaves, whatever was in flight before it.
func TestRelease(t *testing.T) {
	scripts(t, map[string]string{
		"nothing was issued":        "claim k pin:0; 1s; close k; holding 0 released 0s; close k; stats k Releases:1",
		"one was":                   "claim k pin:0; 1s; next k; close k; holding 0 released 1.001s; log 1 'lease: released'",
		"an extension has landed":   "claim k pin:0; fate k any lost 2; 15s; poll k; holding 0 held 45s; close k; holding 0 released 0s",
		"an extension is in flight": "claim k pin:0; fate k any delayed 2; 15s; poll k; close k; holding 0 released 0s",
		"a claim has landed": `claim k bits:0; distrust k; release 0; fate k swap lost; fate k read away 1+1; poll k; holding 0 held
			close k; holding 0 released; stats k Claims:2 Releases:1`,
		"a claim has not landed": `claim k bits:0; distrust k; release 0; fate k swap away; fate k read away 1+1; poll k
			same 0 { close k }`,
		"IDs issued apart":          "claim k pin:0; apart k 1s; 1s; close k; holding 0 released 30s", // though none is known
		"none was, after all":       "claim k pin:0; apart k 1s; 1s; apart k none; close k; holding 0 released 0s",
		"apart, beyond the limit":   "claim k pin:0; apart k 45s; poll k; granted k 0s 45s; close k; holding 0 released 45s",
		"the same, the store fails": "claim k pin:0; fate k any away; apart k 45s; poll k; 15s; poll k; granted k 0s 45s; apart k 50s; poll k; granted k 0s 50s",
		"its limit is past":         "claim k pin:0; 1h; close k; holding 0 released 0s",
		"the store is away":         "claim k pin:0; fate k any away 9; close k = not-released store '0 stays taken for a while: '; log 1 'lease: not released'; close k = not-released; log 1 'lease: not released'",
	})
}

// TestEverythingAtOnce, on a store that fails in all its ways: for the race detector, and for locks that
// wait for each other.
func TestEverythingAtOnce(t *testing.T) {
	var seen sync.Map
	memory, log := storetest.NewMemory(), &record{}
	process := func() {
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
		gen := must(generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Hour))))
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
		assert.ErrorIs(t, second(gen.Next()), generator.ErrClosed)
		assert.ErrorIs(t, k.Err(), lease.ErrClosed)
	}
	for range 12 {
		var fleet sync.WaitGroup
		for range 3 {
			fleet.Go(process)
		}
		fleet.Wait()
	}
}

// TestF19_SnapshotClone restores a snapshot beside its original, and tells neither. It is the
// documented limit of a lease: both issue the same IDs, but only until the next extension. The first to extend
// makes the other find out, and take another number; both are served all the time.
func TestF19_SnapshotClone(t *testing.T) {
	const begins = "claim x bits:1 pin:1; claim a bits:1; close x; clone a b; same 0 { next a; again b }; 10s;"
	const ends = "next a; next b; 10s; poll a; poll b; next a; next b; 10s; poll a; poll b; next a; next b;"
	scripts(t, map[string]string{
		"the original extends first": begins + "poll a; poll b; node a 0; node b 1; stats a Conflicts:0; stats b Conflicts:1;" + ends + "stats b Conflicts:1",
		"the copy extends first":     begins + "poll b; poll a; node b 0; node a 1; stats b Conflicts:0; stats a Conflicts:1;" + ends + "stats a Conflicts:1",
	})
}

// TestRestoredMeets has Restored meet what happens at the same time.
func TestRestoredMeets(t *testing.T) {
	scripts(t, map[string]string{
		"a store that is away": `claim k; next k; fate k any away 99; restored k = store; next k = ungranted store
			heal k; 1s; poll k; stats k Claims:2; next k; close k; restored k = closed`,
		"a refusal": "claim k; fails k refused; restored k deadline = refused !canceled",
		"a clone's, beside its original": `claim a pin:5; next a; fate a any delayed 2; 15s; poll a; clone a b pin:5; restored b deadline
			err b; log 1 'lease: memory was restored, claiming anew'; deliver; next a; 30s; poll a; next b; err a = lost held`,
		// It grants nothing, though it lands: it is the original's, and so its number is not given back.
		"an extension": `claim x bits:1 pin:1; claim k bits:1; close x; on k swap { distrust k }; 15s; poll k; next k = ungranted; stats k Remaining:0s
			restored k; holds k 1; holding 0 held 45s`,
	})
	t.Run("a device that tells of a copy", func(t *testing.T) {
		r, device := newRig(t), vmclocktest.New(t)
		r.run("client k")
		k := r.members["k"]
		k.Keeper = r.claim(k.via, lease.WithNode(0), lease.WithVMClock(device.Path))
		r.run("next k; fate k any away 2; 15s; poll k; stats k Failures:2")
		device.Copy()
		r.run(`stats k Copies:1; next k = ungranted; poll k; log 1 'claiming anew" node=0 by="` + device.Path + `,'; stats k Claims:2; 15s; next k
			restored k; stats k Claims:3 Copies:1`)
		device.Copy() // it is not the copy that releases
		r.run("same 0 { close k }; stats k Copies:2")
		require.Equal(t, device.Path+", disruption_marker", k.Stats().VMClock)
	})
	t.Run("a step that claims before its context ends", func(t *testing.T) {
		r := newRig(t)
		c := r.client()
		k := r.claim(c)
		c.rules = away()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		k.Hook(func() string {
			if c.rules != nil && k.Free() && r.trips() > 4 { // between two tries
				c.rules = nil
				k.Poll(t.Context())
				cancel()
			}
			return cell.Token()
		})
		require.ErrorIs(t, k.Restored(ctx), lease.ErrStore)
		require.Positive(t, k.Stats().Remaining)
		require.NoError(t, k.Err())
	})
	t.Run("a close", func(t *testing.T) {
		r := newRig(t)
		r.run("claim k pin:0; 1s; next k")
		k := r.members["k"]
		k.Hook(func() string {
			k.Distrust() // Restored begins
			return cell.Token()
		})
		r.run("close k; holding 0 released 1.001s")
		require.ErrorIs(t, k.ClaimFirst(t.Context()), lease.ErrClosed, "as the rest of Restored")
	})
	t.Run("a panic", func(t *testing.T) {
		r := newRig(t)
		c := r.client()
		k := r.claim(c)
		c.rules = []*rule{{n: 1, act: func() { panic("a bug") }}}
		require.PanicsWithValue(t, "a bug", func() { _ = k.Restored(t.Context()) })
		require.NoError(t, k.Restored(t.Context()))
		require.NoError(t, k.CloseContext(t.Context()))
	})
}
