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
	mode  *sequence.Mode                                          // of all sequences
	store func(*process, stores.Store) stores.Store               // stands between the process and the store
	close func(*opened, *fleettest.Thread, context.Context) error // closes the sequence
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
		close: func(s *opened, t *fleettest.Thread, ctx context.Context) error {
			m := s.s.Machine()
			if op := m.Next(count.Input{Name: "early", Closing: true, Used: s.s.Used()}); op.Kind == count.Swap {
				s.p.client().Swap(ctx, s.key, op.Version, op.Record.Encode())
			}
			t.Pass(s.p.f.Between(0, 2*s.p.f.Period))
			return s.s.CloseContext(ctx)
		},
	},
}
