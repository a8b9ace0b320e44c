package sequence_test

import (
	"context"
	"testing"

	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// mutant breaks what it does not leave nil.
type mutant struct {
	fleettest.Mutant
	mode  *sequence.Mode                                           // of the sequence
	store func(*process, stores.Store) stores.Store                // stands between the process and the store
	close func(*process, *fleettest.Thread, context.Context) error // closes the sequence
}

// TestFleetCatches makes sure that a simulation of each mutant comes upon a broken promise.
func TestFleetCatches(t *testing.T) {
	for _, m := range mutants {
		fleettest.Catch(t, m.Mutant, func(seed uint64) *fleet { return newFleet(seed, &m) })
	}
}

var mutants = []mutant{
	{
		Mutant: fleettest.Mutant{Name: "S1 an unknown outcome is taken for a failure", Seeds: 500, Caught: "duplicate"},
		store:  func(_ *process, s stores.Store) stores.Store { return fleettest.Retrying{Store: s} },
	}, {
		Mutant: fleettest.Mutant{Name: "S2 the rest is given back before the seal", Seeds: 500, Caught: "duplicate", Faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.Shutdown}},
		mode:   new(segmented),
		close: func(p *process, t *fleettest.Thread, ctx context.Context) error {
			m := p.s.Machine()
			if op := m.Next(count.Input{Name: "early", Closing: true, Used: p.s.Used()}); op.Kind == count.Swap {
				p.client().Swap(ctx, key, op.Version, op.Record.Encode())
			}
			t.Pass(p.f.Between(0, 2*p.f.Period))
			return p.s.CloseContext(ctx)
		},
	},
}
