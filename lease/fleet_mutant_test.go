package lease_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// mutant breaks the protocol in a way in which others have got it wrong. What it does
// not replace is as it is.
type mutant struct {
	name string
	// seeds is within how many of them it must be caught.
	seeds int
	// faults are more frequent than they are drawn to be.
	faults []fleettest.FaultKind
	// caught is the check that must see it, if it is not a duplicate.
	caught string

	// store stands between the keeper and the store.
	store func(*process, stores.Store) stores.Store
	// decide is the decision of a round.
	decide func(*process, protocol.State, protocol.Read) protocol.Decision
	// check is made before each call of the generator, and decides whether there is one.
	check func(*process, *thread) bool
	// close closes the process.
	close func(*process, *thread, context.Context) error
}

// TestFleetCatches makes sure that a simulation of each mutant comes upon an ID that
// is issued twice: that is what all of it is for. That the store's cells do not bear
// out what a process does is often seen earlier; it is logged which check sees it.
func TestFleetCatches(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			fleettest.Catches(t, m.seeds, cmp.Or(m.caught, "duplicate"), func(seed uint64) *fleet { return newFleet(seed, &m) })
		})
	}
}

// decideThen decides, and changes the decision. What the keeper believes to hold is the
// mutant's; the true limit is kept aside, so that extensions go on from it.
func decideThen(change func(p *process, s protocol.State, d *protocol.Decision)) func(*process, protocol.State, protocol.Read) protocol.Decision {
	return func(p *process, s protocol.State, r protocol.Read) protocol.Decision {
		if s.Held != nil && p.truth > 0 {
			held := *s.Held
			held.Limit = p.truth
			s.Held = &held
		}
		d := protocol.Decide(s, r)
		if d.Held.Limit > 0 {
			p.truth = d.Held.Limit
		}
		change(p, s, &d)
		return d
	}
}

// unlimited takes the end of a grant away.
func unlimited(_ *process, s protocol.State, d *protocol.Decision) {
	if d.Held.Limit > 0 {
		d.Held.Limit = s.End
	}
}

// retrying takes a write of unknown outcome for one that has failed.
type retrying struct{ stores.Store }

func (s retrying) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := s.Store.Swap(ctx, key, version, value)
	if err == nil || errors.Is(err, stores.ErrConflict) {
		return now, err
	}
	cell, readErr := s.Store.Read(ctx, key)
	if readErr != nil {
		return now, err
	}
	return s.Store.Swap(ctx, key, cell.Version, value)
}

// release writes a release of the cell that is held, and leaves the window as it is.
func (p *process) release(ctx context.Context) error {
	h := p.k.Held()
	if h == nil {
		return nil
	}
	d := protocol.Decide(protocol.State{
		Closing: true, Held: h, Used: p.k.Window().Used(), Name: "released early", Layout: p.f.layout.String(),
		Issued: p.k.Used().Node == h.Node && p.k.Used().From == h.Floor,
	}, protocol.Read{})
	_, err := p.client().Swap(ctx, cell.NodeKey(h.Node), d.Version, d.Record.Encode())
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
func (p *process) clockTick() uint64 { return p.f.tickAt(p.M.Wall()) }

// The numbers are those of the catalogue of faults; M1 to M4 and M6 to M8 are of the
// generator, and M10 of the files in a directory.
var mutants = []mutant{
	{
		// What a process issues is reported from time to time, and not before.
		name: "M2 the last tick is reported after the fact", seeds: 500,
		decide: decideThen(func(p *process, s protocol.State, d *protocol.Decision) {
			if d.Kind == protocol.Claim || d.Kind == protocol.Extend {
				d.Record.Limit = max(d.Record.Limit-min(d.Record.Limit, s.Window), s.Used)
			}
			unlimited(p, s, d)
		}),
	}, {
		name: "M5 the grant is checked before use, and not at use", seeds: 500,
		decide: decideThen(unlimited),
		check: func(p *process, t *thread) bool {
			return max(p.clockTick(), p.k.Window().Used()) < p.truth
		},
	}, {
		// It asks for the cell's version anew, and goes by what it knew of the rest.
		name: "M9 an unknown outcome is taken for a failure", seeds: 2000,
		store: func(_ *process, s stores.Store) stores.Store { return retrying{s} },
	}, {
		name: "M11 the release comes before the seal", seeds: 1000, faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.Shutdown},
		close: func(p *process, t *thread, ctx context.Context) error {
			p.cancelLoop()
			p.lock(t)
			err := p.release(ctx)
			p.unlock()
			t.Pass(t.f.Between(0, 3*t.f.Period))
			return errors.Join(err, p.close(t, ctx))
		},
	}, {
		name: "M11 a release of unknown outcome undoes the seal", seeds: 1000, faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.Shutdown},
		close: func(p *process, t *thread, ctx context.Context) error {
			grant := p.k.Used()
			err := p.close(t, ctx)
			if err == nil {
				return nil
			}
			grant.From = p.k.Window().Used()
			return errors.Join(err, p.goOn(grant))
		},
	}, {
		name: "M12 the floor of a claim is the clock", seeds: 500,
		decide: func(p *process, s protocol.State, r protocol.Read) protocol.Decision {
			d := protocol.Decide(s, r)
			if d.Kind == protocol.Claim {
				d.Held.Floor = min(d.Held.Floor, s.Now)
			}
			return d
		},
	}, {
		// What its own last ID is has no answer, and so the clock's tick stands in.
		name: "M13 a release with no ID issued goes below the floor", seeds: 2000, faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.StepLarge},
		decide: func(p *process, s protocol.State, r protocol.Read) protocol.Decision {
			d := protocol.Decide(s, r)
			if d.Kind == protocol.Release && p.first == 0 {
				d.Record.Limit = min(d.Record.Limit, p.clockTick())
				d.Record.Floor = d.Record.Limit // else no process reads the cell
			}
			return d
		},
	}, {
		name: "a store that went back is taken for another process", seeds: 500, faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind}, caught: "went back unnoticed",
		decide: func(_ *process, s protocol.State, r protocol.Read) protocol.Decision {
			d := protocol.Decide(s, r)
			if d.Kind == protocol.WentBack {
				d.Kind = protocol.Lost
			}
			return d
		},
	},
}
