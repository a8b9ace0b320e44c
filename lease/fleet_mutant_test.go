package lease_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/window"
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
	// close closes the process.
	close func(*process, *fleettest.Thread, context.Context) error
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

// release writes a release of the cell that is held, and leaves the window as it is.
func (p *process) release(ctx context.Context) error {
	m := p.k.Machine()
	in := grant.Input{Closing: true, Used: p.k.Window().Used(), Grant: p.k.Used(), Name: "released early"}
	m.Done(in, m.Next(in), grant.Result{Used: in.Used})
	op := m.Next(in)
	if op.Kind != grant.Swap {
		return nil
	}
	_, err := fleettest.Client{P: p.Process}.Swap(ctx, cell.NodeKey(op.Node), op.Version, op.Record.Encode())
	return err
}

// goOn has a new generator use a grant, without any keeper's work.
func (p *process) goOn(grant window.Range) error {
	k, err := p.newKeeper()
	if err != nil {
		return err
	}
	k.Window().Grant(grant, grant.To)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(p.strategy))
	if err == nil {
		p.k, p.gen = k, gen
	}
	return err
}

// clockTick is that of p's clock, without a pause for reading it.
func (p *process) clockTick() uint64 {
	return uint64(max(fleettest.Start.Add(time.Duration(p.M.Wall())).Sub(p.f.layout.Epoch), 0) / p.f.layout.Tick)
}

// The numbers are those of the catalogue of faults; M1 to M4 and M6 to M8 are of the
// generator, and M10 of the files in a directory.
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
			return max(p.clockTick(), p.k.Window().Used()) < p.k.Limit()
		},
	}, {
		// It asks for the cell's version anew, and goes by what it knew of the rest.
		Mutant: fleettest.Mutant{Name: "M9 an unknown outcome is taken for a failure", From: 90, Seeds: 2000},
		store:  func(_ *process, s stores.Store) stores.Store { return fleettest.Retrying{Store: s} },
	}, {
		Mutant: fleettest.Mutant{Name: "M11 the release comes before the seal", From: 80, Seeds: 1000, Faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.Shutdown}},
		close: func(p *process, t *fleettest.Thread, ctx context.Context) error {
			p.cancelLoop()
			p.lock(t)
			err := p.release(ctx)
			p.unlock()
			t.Pass(p.f.Between(0, 3*p.f.Period))
			return errors.Join(err, p.close(t, ctx))
		},
	}, {
		Mutant: fleettest.Mutant{Name: "M11 a release of unknown outcome undoes the seal", From: 500, Seeds: 1000, Faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.Shutdown}},
		close: func(p *process, t *fleettest.Thread, ctx context.Context) error {
			grant := p.k.Used()
			err := p.close(t, ctx)
			if err == nil {
				return nil
			}
			grant.From = p.k.Window().Used()
			return errors.Join(err, p.goOn(grant))
		},
	}, {
		Mutant: fleettest.Mutant{Name: "M12 the floor of a claim is the clock", Seeds: 500},
		done: func(_ *process, in grant.Input, op *grant.Op, _ *grant.Result) {
			if op.Why == grant.Claim {
				op.Record.Floor = min(op.Record.Floor, in.Now)
			}
		},
	}, {
		// What its own last ID is has no answer, and so the clock's tick stands in.
		Mutant: fleettest.Mutant{Name: "M13 a release with no ID issued goes below the floor", From: 650, Seeds: 2000, Faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.StepLarge}},
		next: func(p *process, _ grant.Input, op *grant.Op) {
			if op.Kind == grant.Swap && op.Why == grant.Release && p.last == 0 {
				op.Record.Limit = min(op.Record.Limit, p.clockTick())
				op.Record.Floor = min(op.Record.Floor, op.Record.Limit)
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
