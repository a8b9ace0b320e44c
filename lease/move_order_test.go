package lease_test

import (
	"context"
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
		m.between()
		return []storetest.Fault{storetest.Unavailable, storetest.ReplyLost, storetest.Delayed, storetest.None}[min(m.rng.IntN(25), 3)]
	}
	return c
}

// between lets others run.
func (m *moving) between() {
	if m.depth >= 3 || m.rng.IntN(3) == 0 {
		return
	}
	m.depth++
	defer func() { m.depth-- }()
	m.step()
}

// step makes a step of the fleet, or lets a late write land.
func (m *moving) step() {
	store := m.rng.IntN(2)
	if m.stores[1].Peek(cell.LayoutKey).Version == 0 {
		store = 0 // no process starts on the new store before the import
	}
	memory := m.stores[store]
	switch n := m.rng.IntN(20); {
	case n < 2 && len(m.members) < 12:
		clock := clocktest.NewVirtual(noon.Add(time.Duration(m.rng.IntN(180)-60) * time.Second))
		options := quiet(clock, small(2))
		if m.rng.IntN(4) == 0 {
			options = append(options, lease.WithNode(lease.NodeNumber(m.rng.Int64N(4))))
		}
		if k, err := lease.Claim(m.t.Context(), m.client(store), options...); err == nil {
			m.members = append(m.members, &member{keeper: k, clock: clock, store: store, grants: map[int64][2]uint64{}})
		}
	case n == 2:
		_ = lease.ForceRelease(m.t.Context(), m.client(store), m.rng.Int64N(4))
	case n == 3:
		_ = lease.Reserve(m.t.Context(), m.client(store), 0, 3, noon.Add(time.Duration(m.rng.IntN(100))*time.Second), quiet(clocktest.NewVirtual(noon), small(2))...)
	case n < 6:
		if late := memory.Late(); len(late) > 0 {
			memory.Deliver(m.rng.IntN(len(late)))
		}
	case len(m.members) > 0:
		i := m.rng.IntN(len(m.members))
		p := m.members[i]
		if p.busy {
			return
		}
		p.busy = true
		p.clock.Advance(time.Duration(m.rng.IntN(12)) * time.Second)
		if n == 6 {
			if h := p.keeper.Held(); h.Version != 0 {
				delete(p.grants, h.Node) // no slot was taken of it, so it may be given back
			}
			p.busy = true
			_ = p.keeper.Close()
			return // and is busy for good
		} else {
			p.keeper.Poll(m.t.Context())
		}
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
	both := 0
	for seed := range runs {
		m := &moving{t: t, rng: rand.New(rand.NewPCG(uint64(seed), 1)), stores: [2]*storetest.Memory{storetest.NewMemory(), storetest.NewMemory()}}
		for range 10 + m.rng.IntN(60) {
			m.step()
		}
		floors, err := lease.Export(t.Context(), m.client(0), "new", lease.EvenIfRunning())
		for ; err != nil && m.stores[0].Peek(cell.LayoutKey).Version != 0; floors, err = lease.Export(t.Context(), m.client(0), "new", lease.EvenIfRunning()) {
			m.step()
		}
		if err != nil {
			continue // no process has claimed
		}
		for err = lease.Import(t.Context(), m.client(1), floors); err != nil; err = lease.Import(t.Context(), m.client(1), floors) {
			require.NotErrorIs(t, err, stores.ErrRefused, "seed %d", seed)
			m.step()
		}
		for range 80 {
			m.step()
		}
		again, err := lease.Export(t.Context(), m.stores[0].Client(), "new", lease.EvenIfRunning())
		require.NoError(t, err)
		require.Equal(t, floors, again, "seed %d", seed)
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
