package lease_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestMove moves a fleet of which one number is held, one was released, and one is reserved.
func TestMove(t *testing.T) {
	clock, old, to := clocktest.NewVirtual(noon), storetest.NewMemory(), storetest.NewMemory()
	claim := func(store stores.Store, more ...lease.Option) (*lease.Keeper, error) {
		return lease.Claim(t.Context(), store, quiet(clock, append(more, small(2))...)...)
	}
	_, err := lease.Export(t.Context(), old, "new", lease.EvenIfRunning())
	require.ErrorIs(t, err, lease.ErrNeverClaimed)
	node := func(n int64) lease.Option { return lease.WithNode(lease.NodeNumber(n)) }
	free, pinned := must(claim(old)), must(claim(old, node(3)))
	if free.Node() == 3 {
		free = must(claim(old))
	}
	_, err = lease.Export(t.Context(), old, "new")
	require.ErrorIs(t, err, lease.ErrHeld)
	must(claim(old)) // it has changed nothing
	_, err = lease.Export(t.Context(), old, "", lease.EvenIfRunning())
	require.ErrorIs(t, err, stores.ErrRefused)

	floors, err := lease.Export(t.Context(), old, "new", lease.EvenIfRunning())
	require.NoError(t, err)
	again, err := lease.Export(t.Context(), old, "elsewhere")
	require.NoError(t, err)
	require.Equal(t, floors, again)
	limits := map[int64]uint64{}
	for _, f := range floors.Nodes {
		limits[f.Node] = f.Limit
	}
	require.GreaterOrEqual(t, len(limits), 2)

	// The old processes use their grants up, and no more.
	_, limit := free.Granted()
	clock.Advance(lease.DefaultWindow / 2)
	free.Poll(t.Context())
	pinned.Poll(t.Context())
	require.ErrorIs(t, free.Err(), lease.ErrMoved)
	require.ErrorIs(t, pinned.Err(), lease.ErrLost)
	require.ErrorContains(t, pinned.Err(), "moved the fleet to another store")
	_, after := free.Granted()
	require.Equal(t, limit, after)
	for _, k := range []*lease.Keeper{free, pinned} {
		require.NoError(t, k.Close())
	}
	for n := range int64(4) {
		_, err = claim(old, node(n))
		require.ErrorIs(t, err, lease.ErrMoved)
		require.ErrorIs(t, lease.ForceRelease(t.Context(), old, n), lease.ErrHeld)
	}
	require.ErrorIs(t, lease.Reserve(t.Context(), old, 0, 0, noon.AddDate(1, 0, 0), quiet(clock, small(2))...), lease.ErrMoved)
	require.ErrorIs(t, lease.Import(t.Context(), old, floors), lease.ErrMoved)

	text, err := json.Marshal(floors)
	require.NoError(t, err)
	floors = lease.Floors{}
	require.NoError(t, json.Unmarshal(text, &floors))
	require.NoError(t, lease.Import(t.Context(), to, floors))
	clock.Step(-time.Hour)
	for n, limit := range limits {
		_, err := claim(to, node(n))
		require.ErrorIs(t, err, lease.ErrHeld, "the clock is behind the floor")
		clock.Advance(2 * time.Hour)
		k := must(claim(to, node(n)))
		clock.Step(-2 * time.Hour)
		from, _ := k.Granted()
		floor := snowflake.Default().Epoch.Add(time.Duration(limit) * time.Millisecond)
		require.False(t, from.Before(floor))
	}
	require.NoError(t, lease.Import(t.Context(), to, floors), "it is complete")

	// It refuses other floors, and then moves on.
	other := floors
	other.To = "another"
	require.ErrorContains(t, lease.Import(t.Context(), to, lease.Sealed(other)), "was used before")
	forged := func(nodes ...lease.Floor) func(*lease.Floors) {
		return func(f *lease.Floors) { f.Nodes = nodes; *f = lease.Sealed(*f) }
	}
	for want, change := range map[string]func(*lease.Floors){
		"format 0":         func(f *lease.Floors) { f.Format = 0 },
		"newer version":    func(f *lease.Floors) { f.Format = 2 },
		`export ""`:        func(f *lease.Floors) { f.Export = "" },
		"spec":             func(f *lease.Floors) { f.Layout = "x" },
		"of 0 node":        func(f *lease.Floors) { f.Nodes = nil },
		"SHA-256":          func(f *lease.Floors) { f.Nodes, f.Count = nil, 0 },
		"each number once": forged(floors.Nodes[0], floors.Nodes[0]),
		"number 4 with":    forged(lease.Floor{Node: 4, Limit: 1}),
		"with limit 0":     forged(lease.Floor{}),
		"limit 115292150":  forged(lease.Floor{Limit: 1 << 60}),
		`and not ""`:       forged(lease.Floor{Limit: 1}),
	} {
		bad := floors
		change(&bad)
		err := lease.Import(t.Context(), storetest.NewMemory(), bad)
		require.ErrorIs(t, err, stores.ErrRefused)
		require.ErrorContains(t, err, want)
	}
	next, err := lease.Export(t.Context(), to, "third", lease.EvenIfRunning())
	require.NoError(t, err)
	for _, f := range next.Nodes {
		assert.GreaterOrEqual(t, f.Limit, limits[f.Node])
	}
	require.NoError(t, lease.Import(t.Context(), storetest.NewMemory(), next))
	require.ErrorIs(t, lease.Import(t.Context(), to, floors), lease.ErrMoved, "an old document changes nothing")
}

// TestExportsAtOnce exports while another export is faster, and then ends early.
func TestExportsAtOnce(t *testing.T) {
	clock, memory := clocktest.NewVirtual(noon), storetest.NewMemory()
	claim(t, memory, clock, small(2))
	slow, fast := memory.Client(), memory.Client()
	fast.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			return storetest.Unavailable
		}
		return storetest.None
	}
	slow.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpSwap && op.Key == cell.LayoutKey && fast != nil {
			_, err := lease.Export(t.Context(), fast, "new", lease.EvenIfRunning())
			require.ErrorIs(t, err, lease.ErrStore)
			fast = nil
		}
		return storetest.None
	}
	floors, err := lease.Export(t.Context(), slow, "another", lease.EvenIfRunning())
	require.NoError(t, err)
	require.Equal(t, "new", floors.To)
	require.Len(t, floors.Nodes, 1)

	memory = storetest.NewMemory()
	claim(t, memory, clock, small(2))
	slow, conflicts := memory.Client(), 0
	slow.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if c := memory.Peek(cell.LayoutKey); op.Kind == storetest.OpSwap && op.Key == c.Key {
			must(memory.Swap(t.Context(), c.Key, c.Version, c.Value))
			conflicts++
			require.Less(t, conflicts, 100)
		}
		return storetest.None
	}
	_, err = lease.Export(t.Context(), slow, "new", lease.EvenIfRunning())
	require.ErrorIs(t, err, stores.ErrConflict)
}

// TestImportIsOvertaken has others write, or the store go back, in the middle of an import.
func TestImportIsOvertaken(t *testing.T) {
	const node, layout = "node/0000000", cell.LayoutKey
	clock, old := clocktest.NewVirtual(noon), storetest.NewMemory()
	claim(t, old, clock, small(0))
	floors := must(lease.Export(t.Context(), old, "new", lease.EvenIfRunning()))
	clock.Advance(time.Hour)
	for _, test := range []struct {
		name, key string // others come before the second read of the key
		others    func(memory *storetest.Memory, empty, begun func())
		want      error
	}{
		{"lost its floor", node, func(_ *storetest.Memory, _, begun func()) { begun() }, stores.ErrWentBack},
		{"emptied", layout, func(_ *storetest.Memory, empty, _ func()) { empty() }, stores.ErrWentBack},
		{"emptied and used", layout, func(memory *storetest.Memory, empty, _ func()) {
			empty()
			claim(t, memory, clock, small(0))
		}, stores.ErrWentBack},
		{"emptied and used before", node, func(memory *storetest.Memory, empty, _ func()) {
			empty()
			claim(t, memory, clock, small(1))
		}, stores.ErrWentBack},
		{"other floors", layout, func(memory *storetest.Memory, empty, _ func()) {
			empty()
			require.NoError(t, lease.Import(t.Context(), memory, lease.Sealed(lease.Floors{Format: 1, Export: floors.Export, Layout: floors.Layout})))
		}, stores.ErrWentBack},
		{"complete and used", node, func(memory *storetest.Memory, _, _ func()) {
			require.NoError(t, lease.Import(t.Context(), memory, floors))
			claim(t, memory, clock, small(0))
		}, nil},
		{"complete and exported", layout, func(memory *storetest.Memory, _, _ func()) {
			require.NoError(t, lease.Import(t.Context(), memory, floors))
			must(lease.Export(t.Context(), memory, "newer"))
		}, lease.ErrMoved},
	} {
		t.Run(test.name, func(t *testing.T) {
			memory, reads := storetest.NewMemory(), map[string]int{}
			empty, begun, slow := memory.Snapshot(), func() {}, memory.Client()
			slow.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if op.Kind == storetest.OpRead {
					reads[op.Key]++
				}
				switch {
				case op.Key == node && reads[node] == 1 && op.Kind == storetest.OpRead:
					begun = memory.Snapshot()
					_, err := lease.Claim(t.Context(), memory, quiet(clock, small(0))...)
					require.ErrorIs(t, err, lease.ErrMoved)
					_, err = lease.Export(t.Context(), memory, "newer", lease.EvenIfRunning())
					require.ErrorIs(t, err, lease.ErrMoved)
				case op.Key == test.key && reads[op.Key] == 2 && op.Kind == storetest.OpRead:
					test.others(memory, empty, begun)
				}
				return storetest.None
			}
			require.ErrorIs(t, lease.Import(t.Context(), slow, floors), test.want)
		})
	}
}
