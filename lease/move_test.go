package lease_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func (w *world) export(to string, options ...lease.ExportOption) (lease.Floors, error) {
	return lease.Export(w.Context(), w.cells, to, options...)
}

// TestMove moves a fleet of which one number is held, one is pinned, and one was released.
func TestMove(t *testing.T) {
	w, running := newWorld(t), lease.EvenIfRunning()
	to := &world{t, w.clock, storetest.NewMemory(), w.log, w.calls}
	require.ErrorIs(t, second(w.export("new", running)), lease.ErrNeverClaimed)
	pinned := w.claim(nil, small(2), pin(3))
	free := w.claim(nil, small(2))
	require.ErrorIs(t, second(w.export("new")), lease.ErrHeld)
	require.NoError(t, w.claim(nil, small(2)).Close(), "it has changed nothing")
	w.refuses("Export", second(w.export("", running)))
	floors, err := w.export("new", running)
	require.NoError(t, err)
	require.Equal(t, floors, must(w.export("elsewhere")))
	limits := map[int64]uint64{}
	for _, f := range floors.Nodes {
		limits[f.Node] = f.Limit
	}
	require.Len(t, limits, 3)

	// The old processes use their grants up, and no more.
	_, limit := free.Granted()
	w.clock.Advance(period / 2)
	for _, k := range []*lease.Keeper{free, pinned} {
		k.Poll(t.Context())
		_, after := k.Granted()
		require.Equal(t, limit, after)
		require.NoError(t, k.Close())
	}
	for n := range int64(4) {
		require.ErrorIs(t, second(w.try(nil, small(2), pin(n))), lease.ErrMoved)
		require.ErrorIs(t, lease.ForceRelease(t.Context(), w.cells, n), lease.ErrHeld)
	}
	require.ErrorIs(t, lease.Reserve(t.Context(), w.cells, 0, 0, noon.AddDate(1, 0, 0), w.options(small(2))...), lease.ErrMoved)
	require.ErrorIs(t, lease.Import(t.Context(), w.cells, floors), lease.ErrMoved)

	text := must(json.Marshal(floors))
	floors = lease.Floors{}
	require.NoError(t, json.Unmarshal(text, &floors))
	require.NoError(t, lease.Import(t.Context(), to.cells, floors))
	w.clock.Step(-time.Hour)
	for n, limit := range limits {
		require.ErrorIs(t, second(to.try(nil, small(2), pin(n))), lease.ErrHeld, "the clock is behind the floor")
		w.clock.Advance(2 * time.Hour)
		from, _ := to.claim(nil, small(2), pin(n)).Granted()
		w.clock.Step(-2 * time.Hour)
		require.False(t, from.Before(snowflake.Default().Epoch.Add(time.Duration(limit)*time.Millisecond)))
	}
	require.NoError(t, lease.Import(t.Context(), to.cells, floors), "it is complete")

	// It refuses other floors, and then moves on.
	other := floors
	other.To = "another"
	require.ErrorContains(t, lease.Import(t.Context(), to.cells, lease.Sealed(other)), "was used before")
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
		w.refuses("Import", err)
		require.ErrorContains(t, err, want)
	}
	next := must(to.export("third", running))
	for _, f := range next.Nodes {
		require.GreaterOrEqual(t, f.Limit, limits[f.Node])
	}
	require.NoError(t, lease.Import(t.Context(), storetest.NewMemory(), next))
	require.ErrorIs(t, lease.Import(t.Context(), to.cells, floors), lease.ErrMoved, "an old document changes nothing")
}

// TestExportsAtOnce exports while another export is faster, and then ends early.
func TestExportsAtOnce(t *testing.T) {
	for name, conflicts := range map[string]bool{"another is faster": false, "others write all the time": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.claim(nil, small(2))
			fast := w.client(func(op storetest.Op) storetest.Fault {
				if isSwap(op) {
					return storetest.Unavailable
				}
				return storetest.None
			})
			met := 0
			slow := w.client(func(op storetest.Op) storetest.Fault {
				if op.Kind != storetest.OpSwap || op.Key != cell.LayoutKey {
					return storetest.None
				}
				if met++; conflicts {
					w.write(op.Key, w.cells.Peek(op.Key).Value)
				} else if met == 1 {
					require.ErrorIs(t, second(lease.Export(t.Context(), fast, "new", lease.EvenIfRunning())), lease.ErrStore)
				}
				require.Less(t, met, 100)
				return storetest.None
			})
			floors, err := lease.Export(t.Context(), slow, "another", lease.EvenIfRunning())
			if conflicts {
				require.ErrorIs(t, err, stores.ErrConflict)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "new", floors.To)
			require.Len(t, floors.Nodes, 1)
		})
	}
}

// TestImportIsOvertaken has others write, or the store go back, in the middle of an import.
func TestImportIsOvertaken(t *testing.T) {
	const node, layout = "node/0000000", cell.LayoutKey
	old := newWorld(t)
	old.claim(nil, small(0))
	floors := must(old.export("new", lease.EvenIfRunning()))
	old.clock.Advance(time.Hour)
	for name, test := range map[string]struct {
		key    string // others come before the second read of the key
		others func(w *world, empty, begun func())
		want   error
	}{
		"lost its floor":       {node, func(_ *world, _, begun func()) { begun() }, stores.ErrWentBack},
		"emptied":              {layout, func(_ *world, empty, _ func()) { empty() }, stores.ErrWentBack},
		"emptied and used":     {layout, func(w *world, empty, _ func()) { empty(); w.claim(nil, small(0)) }, stores.ErrWentBack},
		"emptied, used before": {node, func(w *world, empty, _ func()) { empty(); w.claim(nil, small(1)) }, stores.ErrWentBack},
		"other floors": {layout, func(w *world, empty, _ func()) {
			empty()
			require.NoError(w, lease.Import(w.Context(), w.cells, lease.Sealed(lease.Floors{Format: 1, Export: floors.Export, Layout: floors.Layout})))
		}, stores.ErrWentBack},
		"complete and used": {node, func(w *world, _, _ func()) {
			require.NoError(w, lease.Import(w.Context(), w.cells, floors))
			w.claim(nil, small(0))
		}, nil},
		"complete and exported": {layout, func(w *world, _, _ func()) {
			require.NoError(w, lease.Import(w.Context(), w.cells, floors))
			must(w.export("newer"))
		}, lease.ErrMoved},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clock = old.clock
			reads := map[string]int{}
			empty, begun := w.cells.Snapshot(), func() {}
			slow := w.client(func(op storetest.Op) storetest.Fault {
				if op.Kind != storetest.OpRead {
					return storetest.None
				}
				reads[op.Key]++
				switch {
				case op.Key == node && reads[node] == 1: // it has begun, so all others are refused
					begun = w.cells.Snapshot()
					require.ErrorIs(t, second(w.try(nil, small(0))), lease.ErrMoved)
					require.ErrorIs(t, second(w.export("newer", lease.EvenIfRunning())), lease.ErrMoved)
				case op.Key == test.key && reads[op.Key] == 2:
					test.others(w, empty, begun)
				}
				return storetest.None
			})
			require.ErrorIs(t, lease.Import(t.Context(), slow, floors), test.want)
		})
	}
}

// moving is a fleet whose store is exported and imported, with steps of its processes between
// any two operations of any of them. Operations fail, lose their replies, and land late.
type moving struct {
	t       *testing.T
	rng     *rand.Rand
	stores  [2]*storetest.Memory
	members []*member
	depth   int
}

type member struct {
	keeper *lease.Keeper
	clock  *clocktest.Virtual
	store  int
	busy   bool
	grants map[int64][2]uint64 // the lowest floor and the highest limit of each number
}

func (m *moving) client(store int) stores.Store {
	c := m.stores[store].Client()
	c.Before = func(context.Context, storetest.Op) storetest.Fault {
		if m.depth < 3 && m.rng.IntN(3) > 0 { // others come first
			m.depth++
			m.step()
			m.depth--
		}
		return []storetest.Fault{storetest.Unavailable, storetest.ReplyLost, storetest.Delayed, storetest.None}[min(m.rng.IntN(25), 3)]
	}
	return c
}

// step makes a step of the fleet, or lets a late write land.
func (m *moving) step() {
	w := &world{m.t, clocktest.NewVirtual(noon.Add(time.Duration(m.rng.IntN(180)-60) * time.Second)), nil, &record{}, nil}
	store := m.rng.IntN(2)
	if m.stores[1].Peek(cell.LayoutKey).Version == 0 {
		store = 0 // no process starts on the new store before the import
	}
	memory := m.stores[store]
	switch n := m.rng.IntN(20); {
	case n < 2 && len(m.members) < 12:
		options := []lease.Option{small(2)}
		if m.rng.IntN(4) == 0 {
			options = append(options, pin(m.rng.Int64N(4)))
		}
		if k, err := w.try(m.client(store), options...); err == nil {
			m.members = append(m.members, &member{keeper: k, clock: w.clock, store: store, grants: map[int64][2]uint64{}})
		}
	case n == 2:
		_ = lease.ForceRelease(m.t.Context(), m.client(store), m.rng.Int64N(4))
	case n == 3:
		w.clock = clocktest.NewVirtual(noon)
		_ = lease.Reserve(m.t.Context(), m.client(store), 0, 3, noon.Add(time.Duration(m.rng.IntN(100))*time.Second), w.options(small(2))...)
	case n < 6:
		if late := memory.Late(); len(late) > 0 {
			memory.Deliver(m.rng.IntN(len(late)))
		}
	case len(m.members) > 0:
		p := m.members[m.rng.IntN(len(m.members))]
		if p.busy {
			return
		}
		p.busy = true
		p.clock.Advance(time.Duration(m.rng.IntN(12)) * time.Second)
		if n == 6 {
			if h := p.keeper.Held(); h.Version != 0 {
				delete(p.grants, h.Node) // no slot was taken of it, so it may be given back
			}
			_ = p.keeper.Close()
			return // and is busy for good
		}
		p.keeper.Poll(m.t.Context())
		p.busy = false
	}
	for _, p := range m.members {
		if h := p.keeper.Held(); h.Version != 0 && !p.busy {
			g, ok := p.grants[h.Node]
			if !ok {
				g[0] = h.Floor
			}
			p.grants[h.Node] = [2]uint64{min(g[0], h.Floor), max(g[1], h.Limit)}
		}
	}
}

// TestMoveInAnyOrder checks that all grants of the old store end at or below its floors, and those
// of the new one begin at or above them.
func TestMoveInAnyOrder(t *testing.T) {
	runs := 500
	if testing.Short() {
		runs = 100
	}
	both, running := 0, lease.EvenIfRunning()
	for seed := range runs {
		m := &moving{t: t, rng: rand.New(rand.NewPCG(uint64(seed), 1)), stores: [2]*storetest.Memory{storetest.NewMemory(), storetest.NewMemory()}}
		for range 10 + m.rng.IntN(60) {
			m.step()
		}
		floors, err := lease.Export(t.Context(), m.client(0), "new", running)
		for ; err != nil && m.stores[0].Peek(cell.LayoutKey).Version != 0; floors, err = lease.Export(t.Context(), m.client(0), "new", running) {
			m.step()
		}
		if err != nil {
			continue // no process has claimed
		}
		for err = lease.Import(t.Context(), m.client(1), floors); err != nil; err = lease.Import(t.Context(), m.client(1), floors) {
			require.NotErrorIs(t, err, stores.Refused, "seed %d", seed)
			m.step()
		}
		for range 80 {
			m.step()
		}
		require.Equal(t, floors, must(lease.Export(t.Context(), m.stores[0].Client(), "new", running)), "seed %d", seed)
		limits := map[int64]uint64{}
		for _, f := range floors.Nodes {
			limits[f.Node] = f.Limit
		}
		for _, p := range m.members {
			for node, g := range p.grants {
				if p.store == 0 {
					require.LessOrEqual(t, g[1], limits[node], "seed %d, node %d: the old store has granted more", seed, node)
					continue
				}
				require.GreaterOrEqual(t, g[0], limits[node], "seed %d, node %d: the new store has granted less", seed, node)
				if limits[node] > 0 {
					both++
				}
			}
		}
	}
	require.Greater(t, both, runs/10, "numbers that both stores have granted")
}
