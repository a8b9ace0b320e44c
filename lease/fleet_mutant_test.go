package lease_test

import (
	"testing"

	"github.com/tickflake/tickflake/internal/sim/fleettest"
)

// TestFleetCatches makes sure that the simulation comes upon an ID that is issued twice: that is what all of it is for. The
// number is that of the catalogue of faults; M1 to M4 and M6 to M8 are of the generator, M10 of the files in a directory,
// and the explorer has all mutants of the protocol, this one too.
func TestFleetCatches(t *testing.T) {
	m := fleettest.Mutant{Name: "M9 an unknown outcome is taken for a failure", From: 170, Seeds: 2000, Caught: "duplicate"}
	fleettest.Catch(t, m, func(seed uint64) *fleet { return newFleet(seed, setup{retries: true}) })
}
