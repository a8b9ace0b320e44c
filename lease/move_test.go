package lease_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestMove moves a fleet of which one number is held, one is pinned, and one was released.
func TestMove(t *testing.T) {
	r := newRig(t)
	r.run("export new = never-claimed; claim x bits:2 pin:0; claim p bits:2 pin:3; claim f bits:2")
	require.ErrorIs(t, second(lease.Export(t.Context(), r.cells, "new")), lease.ErrHeld)
	r.refuses("Export", second(lease.Export(t.Context(), r.cells, "", lease.EvenIfRunning())))
	r.run(`close x; export new; floors new 3; export elsewhere; floors new 3`)
	floors := r.floors

	// The old processes use their grants up, and no more.
	r.run(`15s; poll f; granted f 0s 30s; err f = moved; close f; poll p; granted p 0s 30s; err p = lost; close p
		reserve 0 0 8760h bits:2 = moved; import = moved`)
	for n := range 4 {
		r.run(fmt.Sprintf("claim o bits:2 pin:%d = moved; release %[1]d = held", n))
	}

	// The new ones begin at the floors, and not before the clock is there.
	text := must(json.Marshal(floors))
	r.floors = lease.Floors{}
	require.NoError(t, json.Unmarshal(text, &r.floors))
	r.run("in new; import; step -1h")
	for _, f := range floors.Nodes {
		r.run(fmt.Sprintf("claim n bits:2 pin:%d = held; 2h; claim n bits:2 pin:%[1]d; step -2h", f.Node))
		require.GreaterOrEqual(t, r.members["n"].Held().Floor, f.Limit)
	}
	r.run("import") // it is complete

	forged := func(nodes ...lease.Floor) func(*lease.Floors) {
		return func(f *lease.Floors) { f.Nodes = nodes; *f = lease.Sealed(*f) }
	}
	for want, change := range map[string]func(*lease.Floors){
		"format 0":         func(f *lease.Floors) { f.Format = 0 },
		"newer version":    func(f *lease.Floors) { f.Format = 2 },
		`export ""`:        func(f *lease.Floors) { f.Export = "" },
		"spec":             func(f *lease.Floors) { f.Layout = "x" },
		"SHA-256":          func(f *lease.Floors) { f.Nodes = nil },
		"each number once": forged(floors.Nodes[0], floors.Nodes[0]),
		"number 4 with":    forged(lease.Floor{Node: 4, Limit: 1}),
		"with limit 0":     forged(lease.Floor{}),
		"limit 115292150":  forged(lease.Floor{Limit: 1 << 60}),
	} {
		bad := floors
		change(&bad)
		err := lease.Import(t.Context(), storetest.NewMemory(), bad)
		r.refuses("Import", err)
		require.ErrorContains(t, err, want)
	}
	r.run("cut; import = refused 'was used before'") // of other floors
	r.floors = floors
	r.run("export third")
	limits := map[int64]uint64{}
	for _, f := range r.floors.Nodes {
		limits[f.Node] = f.Limit
	}
	for _, f := range floors.Nodes {
		require.GreaterOrEqual(t, limits[f.Node], f.Limit)
	}
	r.floors, floors = floors, r.floors
	r.run("import = moved") // an old document changes nothing
	r.floors = floors
	r.run("in third; import")
}

// TestExportsAtOnce exports while another export is faster, and then ends early.
func TestExportsAtOnce(t *testing.T) {
	scripts(t, map[string]string{
		"another is faster": `claim k bits:2; client fast; fate fast swap:node away 9
			client slow; on slow swap:layout { export new fast = store 'export again to continue' }; export another slow; floors new 1`,
		"others write a cell":    "claim k bits:0; client slow; on slow swap:node 99 { write 0 }; export another slow = conflict '8 times in a row'",
		"the outcome is unknown": "claim k bits:2; client c; fate c swap:layout lost; export new c = store 'perhaps'; export another; floors new 1",
	})
}

// TestImportIsOvertaken has others write, or the store go back, in the middle of an import.
func TestImportIsOvertaken(t *testing.T) {
	rows := map[string]string{}
	for name, others := range map[string]string{ // come before the second read of a cell
		"lost its floor":        "on i read:node { back begun }; import i = went-back 'node number 0'",
		"emptied":               "on i read:layout 1+1 { back empty }; import i = went-back",
		"emptied and used":      "on i read:layout 1+1 { back empty; claim x bits:0 }; import i = went-back",
		"emptied, used before":  "on i read:node { back empty; claim x bits:1 }; import i = went-back",
		"other floors":          "on i read:layout 1+1 { back empty; cut; import }; import i = went-back",
		"complete and used":     "on i read:node { import; claim x bits:0 }; import i",
		"complete and exported": "on i read:layout 1+1 { import; export newer }; import i = moved",
	} {
		rows[name] = `claim o bits:0; export new; 1h; in new; client i; snapshot empty
			on i read:node { snapshot begun; claim x bits:0 = moved; export newer = moved }; ` + others // as it has begun
	}
	scripts(t, rows)
}

// moving is a fleet whose store is exported and imported, with steps of its processes between
// any two operations of any of them. Operations fail, lose their replies, and land late.
type moving struct {
	t       *testing.T
	rng     *rand.Rand
	stores  [2]*storetest.Memory
	members []*mover
	depth   int
}

type mover struct {
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
	w := newRig(m.t)
	w.clock.Step(time.Duration(m.rng.IntN(180)-60) * time.Second)
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
			m.members = append(m.members, &mover{keeper: k, clock: w.clock, store: store, grants: map[int64][2]uint64{}})
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
