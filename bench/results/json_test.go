package results_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/bench/results"
)

// Cells may show parts of one slice: a sample that one drops stays for the others.
func TestClean(t *testing.T) {
	all := []float64{math.Inf(1), 1.23456789, 2, 3}
	s := results.Section{
		Tables:  []results.Table{{Rows: []results.Row{{Cells: []results.Cell{{Samples: all}, {Samples: all[2:]}, {Samples: all[:2]}}}}}},
		Targets: []results.Target{{Got: results.Cell{Samples: []float64{math.NaN()}}}},
	}
	assert.Equal(t, 3, s.Clean())
	cells := s.Tables[0].Rows[0].Cells
	assert.Equal(t, []float64{1.23457, 2, 3}, cells[0].Samples)
	assert.Equal(t, []float64{2, 3}, cells[1].Samples)
	assert.Equal(t, []float64{1.23457}, cells[2].Samples)
	assert.Empty(t, s.Targets[0].Got.Samples)
}
