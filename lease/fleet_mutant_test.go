package lease_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/stores"
)

// mutant breaks what it does not leave nil.
type mutant struct {
	fleettest.Mutant

	// store stands between the keeper and the store.
	store func(*process, stores.Store) stores.Store
	// next changes what the machine does next, and done what it is told of it.
	next func(*process, grant.Input, *grant.Op)
	done func(*process, grant.Input, *grant.Op, *grant.Result)
	// unlimited takes the end of a grant away.
	unlimited bool
	// check is made before each call of the generator, and decides whether there is one.
	check func(*process) bool

	moves bool // the fleet moves to other stores
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
		next: func(p *process, in grant.Input, op *grant.Op) {
			if op.Why == grant.Claim || op.Why == grant.Extend {
				op.Record.Limit = max(op.Record.Limit-min(op.Record.Limit, op.Record.Window), in.Used)
			}
		},
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
		done: func(_ *process, in grant.Input, op *grant.Op, _ *grant.Result) {
			if op.Why == grant.Claim {
				op.Record.Floor = min(op.Record.Floor, in.Now)
			}
		},
	}, {
		Mutant: fleettest.Mutant{Name: "a store that went back is taken for another process", Seeds: 500, Faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind}, Caught: "went back unnoticed"},
		done: func(p *process, _ grant.Input, op *grant.Op, r *grant.Result) {
			if limit := p.k.Held().Limit; op.Why == grant.Doubt && r.Status == grant.OK && r.Cell.Record.Limit < limit {
				r.Cell.Version, r.Cell.Record.Limit, r.Cell.Record.Floor, r.Cell.Record.Write = max(r.Cell.Version, 1), limit, limit, "another's"
			}
		},
	},
}
