package lease_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/stores"
)

// mutant breaks what it does not leave nil.
type mutant struct {
	fleettest.Mutant

	// store stands between the keeper and the store.
	store func(*process, stores.Store) stores.Store
	// unlimited takes the end of a grant away.
	unlimited bool
	// check is made before each call of the generator, and decides whether there is one.
	check func(*process) bool

	moves bool // the fleet moves to other stores
	past  bool // numbers are given to the past, by way of gives, and their lanes are drawn by way of draws, if these are not nil

	gives, draws func(stores.Store) stores.Store
}

// TestFleetCatches makes sure that a simulation of each mutant comes upon an ID that
// is issued twice: that is what all of it is for. That the store's cells do not bear
// out what a process does is often seen earlier; it is logged which check sees it.
func TestFleetCatches(t *testing.T) {
	for _, m := range mutants {
		m.Caught = cmp.Or(m.Caught, "duplicate")
		fleettest.Catch(t, m.Mutant, func(seed uint64) *fleet { return newFleet(seed, &m, nil) })
	}
}

// clockTick is that of p's clock, without a pause for reading it.
func (p *process) clockTick() uint64 {
	return uint64(max(fleettest.Start.Add(time.Duration(p.M.Wall())).Sub(p.f.layout.Epoch), 0) / p.f.layout.Tick)
}

// The numbers are those of the catalogue of faults; M1 to M4 and M6 to M8 are of the
// generator, M10 of the files in a directory, and the explorer has M11 and M13.
var mutants = []mutant{
	{
		// What a process issues is reported from time to time, and not before.
		Mutant:    fleettest.Mutant{Name: "M2 the last tick is reported after the fact", Seeds: 500},
		unlimited: true,
		store: altered(nil, func(p *process, r *cell.Node) {
			if r.Holder != "" {
				r.Limit = max(r.Limit-min(r.Limit, r.Window), r.Floor, p.k.Window().Used())
			}
		}),
	}, {
		Mutant:    fleettest.Mutant{Name: "M5 the grant is checked before use, and not at use", Seeds: 500},
		unlimited: true,
		check: func(p *process) bool {
			return max(p.clockTick(), p.k.Window().Used()) < p.k.Held().Limit
		},
	}, {
		// It asks for the cell's version anew, and goes by what it knew of the rest.
		Mutant: fleettest.Mutant{Name: "M9 an unknown outcome is taken for a failure", From: 90, Seeds: 2000},
		store:  func(_ *process, s stores.Store) stores.Store { return fleettest.Retrying{Store: s} },
	}, {
		Mutant: fleettest.Mutant{Name: "M12 the floor of a claim is the clock", Seeds: 500},
		store: altered(func(p *process, _ int64, c *stores.Cell, r *cell.Node) bool {
			ahead := p.k.Held().Version == 0 && c.Version != 0 && r.Limit > p.clockTick()
			r.Limit = min(r.Limit, p.clockTick())
			r.Floor = min(r.Floor, r.Limit)
			return ahead
		}, nil),
	}, {
		Mutant: fleettest.Mutant{Name: "a store that went back is taken for another process", Seeds: 500, Faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind}, Caught: "went back unnoticed"},
		store: altered(func(p *process, node int64, c *stores.Cell, r *cell.Node) bool {
			held := p.k.Held()
			back := held.Version != 0 && node == held.Node && r.Limit < held.Limit
			c.Version, r.Limit, r.Floor, r.Write, r.Layout = max(c.Version, 1), held.Limit, held.Limit, "another's", p.f.layout.String()
			return back
		}, nil),
	}, {
		Mutant: fleettest.Mutant{Name: "a lane of unknown outcome is drawn once more", Seeds: 500},
		past:   true,
		draws:  func(s stores.Store) stores.Store { return fleettest.Retrying{Store: s} },
	}, {
		Mutant: fleettest.Mutant{Name: "a number that was claimed is given to the past", Seeds: 500},
		past:   true,
		gives:  func(s stores.Store) stores.Store { return forgetful{s} },
	},
}

// altered returns a way to the store on which cells of node numbers are changed: what is read if read reports that,
// and what is written. Each may be nil.
func altered(read func(p *process, node int64, c *stores.Cell, r *cell.Node) (changed bool), written func(*process, *cell.Node)) func(*process, stores.Store) stores.Store {
	return func(p *process, s stores.Store) stores.Store { return alteredStore{s, p, read, written} }
}

type alteredStore struct {
	stores.Store
	p       *process
	read    func(*process, int64, *stores.Cell, *cell.Node) bool
	written func(*process, *cell.Node)
}

func (s alteredStore) change(key string, c stores.Cell) stores.Cell {
	node, ok := cell.NodeOf(key)
	changed, r := c, recordOf(c.Value)
	if !ok || s.read == nil || !s.read(s.p, node, &changed, &r) {
		return c
	}
	changed.Value = r.Encode()
	return changed
}

func (s alteredStore) Read(ctx context.Context, key string) (stores.Cell, error) {
	c, err := s.Store.Read(ctx, key)
	if err == nil {
		c = s.change(key, c)
	}
	return c, err
}

func (s alteredStore) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	cells, err := s.Store.List(ctx, from, to, limit)
	for i, c := range cells {
		cells[i] = s.change(c.Key, c)
	}
	return cells, err
}

func (s alteredStore) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if _, ok := cell.NodeOf(key); ok && s.written != nil {
		r := recordOf(value)
		s.written(s.p, &r)
		value = r.Encode()
	}
	return s.Store.Swap(ctx, key, version, value)
}

// forgetful reads no cell of a node number, and writes all the same.
type forgetful struct{ stores.Store }

func (s forgetful) Read(ctx context.Context, key string) (stores.Cell, error) {
	if _, ok := cell.NodeOf(key); ok {
		return stores.Cell{}, nil
	}
	return s.Store.Read(ctx, key)
}

func (s forgetful) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if c, err := s.Store.Read(ctx, key); err == nil {
		version = c.Version
	}
	return s.Store.Swap(ctx, key, version, value)
}
