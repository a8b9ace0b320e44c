package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// Of an original and its clone, the one that is told of it shares no ID with the other,
// whatever was under way when the memory was copied.
func TestRestored(t *testing.T) {
	for name, test := range map[string]struct {
		options   []lease.Option
		underWay  storetest.Fault // the outcome of an extension when the memory was copied
		sameStays bool
	}{
		"at rest":                       {},
		"an extension has landed":       {underWay: storetest.ReplyLost},
		"an extension is on its way":    {underWay: storetest.Delayed},
		"pinned":                        {options: []lease.Option{five}, sameStays: true},
		"pinned, an extension landed":   {options: []lease.Option{five}, underWay: storetest.ReplyLost, sameStays: true},
		"pinned, an extension comes":    {options: []lease.Option{five}, underWay: storetest.Delayed, sameStays: true},
		"the only number of the layout": {options: []lease.Option{small(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktest.NewVirtual(noon)
			clock.AutoAdvance(true)
			memory := storetest.NewMemory()
			store := memory.Client()
			options := quiet(clock, test.options...)
			original, err := lease.Claim(t.Context(), store, options...)
			require.NoError(t, err)
			first, err := generator.New(generator.WithLease(original), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
			require.NoError(t, err)
			seen := map[snowflake.ID]bool{}
			issue := func(g *generator.Generator) {
				for range 100 {
					if id, err := g.Next(); err == nil {
						require.False(t, seen[id])
						seen[id] = true
					}
				}
			}
			issue(first)
			if test.underWay != storetest.None {
				clock.Advance(lease.DefaultWindow / 2)
				store.Fail(test.underWay, 2) // also the read that would tell
				original.Poll(t.Context())
				store.Heal()
			}

			clone, err := original.Clone(memory.Client(), options)
			require.NoError(t, err)
			second, err := generator.New(generator.WithLease(clone), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
			require.NoError(t, err)
			node := original.Node()
			token := memory.Peek(cell.NodeKey(node))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			require.NoError(t, clone.Restored(ctx))
			require.NoError(t, clone.Err())
			if test.sameStays || original.Layout().NodeBits == 0 {
				require.Equal(t, node, clone.Node())
			} else {
				require.NotEqual(t, node, clone.Node())
			}
			was, err := cell.DecodeNode(token.Value)
			require.NoError(t, err)
			is, err := cell.DecodeNode(memory.Peek(cell.NodeKey(clone.Node())).Value)
			require.NoError(t, err)
			require.NotEqual(t, was.Holder, is.Holder, "it has another token")
			memory.Deliver(0)
			for range 10 {
				issue(first)
				issue(second)
				clock.Advance(lease.DefaultWindow / 3)
				original.Poll(t.Context())
				clone.Poll(t.Context())
			}
			if test.sameStays {
				require.ErrorIs(t, original.Err(), lease.ErrLost)
			} else if original.Layout().NodeBits > 0 {
				require.Zero(t, original.Stats().Conflicts)
			}
			issue(second)
			require.NoError(t, second.Close())
			require.NoError(t, first.Close())
		})
	}
}

// TestF19_SnapshotClone restores a snapshot beside its original, and tells neither. It is the
// documented limit of a lease: both issue the same IDs, but only of the grant at the time of
// the snapshot. The first to extend makes the other find out, and take another number.
func TestF19_SnapshotClone(t *testing.T) {
	for name, order := range map[string][2]int{"the original extends first": {0, 1}, "the copy extends first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			clock, memory := clocktest.NewVirtual(noon), storetest.NewMemory()
			clock.AutoAdvance(true)
			options := quiet(clock, small(1))
			original, err := lease.Claim(t.Context(), memory.Client(), options...)
			require.NoError(t, err)
			node := original.Node()
			floor, limit := original.Granted()
			clone, err := original.Clone(memory.Client(), options)
			require.NoError(t, err)
			keepers := [2]*lease.Keeper{original, clone}
			var gens [2]*generator.Generator
			for i, k := range keepers {
				gens[i], err = generator.New(generator.WithLease(k))
				require.NoError(t, err)
			}
			issued := map[snowflake.ID]int{} // by whom
			var lastTwice time.Time
			for clock.Wall().Before(limit.Add(3 * lease.DefaultWindow)) {
				for _, i := range order {
					keepers[i].Poll(t.Context())
					id, err := gens[i].Next()
					require.NoError(t, err, "both are served all the time")
					if by, twice := issued[id]; twice {
						require.NotEqual(t, i, by, "%d twice", id)
						d, err := original.Layout().Decode(id)
						require.NoError(t, err)
						lastTwice = d.Time
					}
					issued[id] = i
				}
				clock.Advance(10 * time.Millisecond)
			}
			first, second := keepers[order[0]], keepers[order[1]]
			require.True(t, lastTwice.After(floor), "the copy is none: nothing came twice")
			require.LessOrEqual(t, lastTwice.Sub(floor), lease.DefaultWindow/3+50*time.Millisecond, "until the next extension")
			require.Zero(t, first.Stats().Conflicts)
			require.EqualValues(t, 1, second.Stats().Conflicts, "found out once")
			require.Equal(t, node, first.Node())
			require.NotEqual(t, node, second.Node())
		})
	}
}

// Nothing is issued until there is a new grant, and the keeper goes on trying.
func TestRestoredWhileTheStoreIsAway(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	store := storetest.NewMemory()
	k := claim(t, store, clock)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	before, err := gen.Next()
	require.NoError(t, err)
	store.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable }
	require.ErrorIs(t, k.Restored(t.Context()), lease.ErrStore)
	from, to := k.Granted()
	require.Equal(t, from, to)
	_, err = gen.Next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
	require.ErrorIs(t, err, lease.ErrStore)
	store.Before = nil
	clock.Advance(time.Second)
	k.Poll(t.Context())
	after, err := gen.Next()
	require.NoError(t, err)
	require.Greater(t, after, before)
	require.NoError(t, gen.Close())
	require.ErrorIs(t, k.Restored(t.Context()), lease.ErrClosed)
}

// A Restored whose context ends after a step of the Keeper has claimed sets no error any more.
func TestRestoredTooLate(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	store := storetest.NewMemory()
	k := claim(t, store, clock)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	failed := false
	store.Before = func(context.Context, storetest.Op) storetest.Fault { failed = true; return storetest.Unavailable }
	n := 0
	k.Hook(func() string {
		if failed && k.Free() { // between two tries
			failed, store.Before = false, nil
			k.Poll(t.Context())
			cancel()
		}
		n++
		return fmt.Sprint(n)
	}, nil, func() {})
	require.ErrorIs(t, k.Restored(ctx), lease.ErrStore)
	from, to := k.Granted()
	require.Less(t, from, to)
	require.NoError(t, k.Err())
}

// A write that is under way when the memory is restored grants nothing, though it lands:
// it is the original's.
func TestRestoredWithinARound(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	store := storetest.NewMemory()
	k := claim(t, store, clock)
	node := k.Node()
	store.After = func(_ context.Context, op storetest.Op) {
		if isSwap(op) {
			store.After = nil
			k.Distrust() // Restored begins
		}
	}
	clock.Advance(lease.DefaultWindow / 2)
	k.Poll(t.Context())
	from, to := k.Granted()
	require.Equal(t, from, to, "nothing is granted")
	require.NoError(t, k.Restored(t.Context()))
	require.NotEqual(t, node, k.Node())
	require.Equal(t, lease.Held, must(lease.Inspect(t.Context(), store, node)).State, "the original's number is not given back")
}

// Restored that begins while the Keeper is closed takes nothing back: the release must
// know up to where IDs were issued, and there is no new grant to speak of.
func TestRestoredWhileItIsClosed(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	store := storetest.NewMemory()
	k := claim(t, store, clock, five)
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	clock.Advance(time.Second)
	last, err := gen.Next()
	require.NoError(t, err)
	n := 0
	k.Hook(func() string {
		n++
		k.Distrust() // Restored begins
		return fmt.Sprint(n)
	}, nil, func() {})
	require.NoError(t, gen.Close())
	is := must(lease.Inspect(t.Context(), store, 5))
	require.Equal(t, lease.Released, is.State)
	require.True(t, is.Limit.After(must(gen.Layout().Decode(last)).Time), "%s", is.Limit)
	require.ErrorIs(t, k.Err(), lease.ErrClosed)
	require.ErrorIs(t, k.ClaimFirst(t.Context()), lease.ErrClosed, "as the rest of Restored")
}

// A clock or store that panics within Restored leaves a Keeper that can be closed.
func TestRestoredPanics(t *testing.T) {
	store := storetest.NewMemory()
	k := claim(t, store, clocktest.NewVirtual(noon))
	store.Before = func(context.Context, storetest.Op) storetest.Fault { panic("a bug") }
	require.PanicsWithValue(t, "a bug", func() { _ = k.Restored(t.Context()) })
	store.Before = nil
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, k.Restored(ctx))
	require.NoError(t, k.CloseContext(ctx))
}
