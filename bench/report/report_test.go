package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Those peers are ahead of a row that are significantly better.
func TestAhead(t *testing.T) {
	ours, fast, slow := []float64{5, 6, 7, 8, 9}, []float64{1, 2, 3, 4, 4.5}, []float64{11, 12, 13, 14, 15}
	table := Table{Columns: []Column{{ID: "ns", Better: Less}, {ID: "rate", Better: More}}, Rows: []Row{
		{Name: "ours", Group: Ours, Cells: []Cell{{Samples: ours}, {Samples: ours}}},
		{Name: "fast", Group: Peers, Cells: []Cell{{Samples: fast}, {Samples: slow}}},
		{Name: "slow", Group: Peers, Cells: []Cell{{Samples: slow}, {Samples: fast}}},
		{Name: "few", Group: Peers, Cells: []Cell{{Samples: fast[:2]}, {Samples: slow[:2]}}},
		{Name: "none", Group: Peers, Cells: []Cell{{}, {}}},
		{Name: "floor", Group: Floor, Cells: []Cell{{Samples: fast}, {Samples: slow}}},
	}}
	assert.Equal(t, []string{"fast"}, table.Ahead("ours", "ns"))
	assert.Equal(t, []string{"fast"}, table.Ahead("ours", "rate"))
}

func TestJudge(t *testing.T) {
	around := func(middle, step float64, n int) []float64 {
		samples := make([]float64, n)
		for i := range samples {
			samples[i] = middle + step*(float64(i)-float64(n-1)/2)
		}
		return samples
	}
	for name, test := range map[string]struct {
		got, cpu  []float64
		state     State
		why, open string
	}{
		"nothing":            {nil, nil, Open, "", "not measured"},
		"too few, and above": {around(2, 0.01, 9), nil, Open, "", "too few samples"},
		"met":                {around(1.2, 0.001, 20), nil, Met, "", ""},
		"missed":             {around(1.5, 0.001, 20), around(1.5, 0.001, 20), Missed, "", ""},
		"no processor":       {around(1.5, 0.001, 20), around(1.2, 0.001, 20), Missed, "met by processor time (1.20×): the process did not have the processors to itself", ""},
		"noise":              {around(1.3, 0.1, 20), around(1.3, 0.1, 20), Missed, "within the noise", ""},
	} {
		got := Target{ID: "t", Unit: "×", Want: 1.25, AtMost: true, Got: Cell{Samples: test.got}}.Judge(test.cpu)
		assert.Equal(t, [3]string{string(test.state), test.why, test.open}, [3]string{string(got.State()), got.Why, got.Open}, name)
		least := Target{Want: 1.25, Got: Cell{Samples: test.got}}.Judge(nil)
		assert.Equal(t, test.state == Missed, least.State() == Met, name)
	}
}

// Cells may show parts of one slice: a sample that one drops stays for the others.
func TestClean(t *testing.T) {
	all := []float64{math.Inf(1), 1.23456789, 2}
	r := &Report{Schema: Schema, Sections: []Section{{ID: "s", Tables: []Table{{ID: "t", Columns: make([]Column, 2), Rows: []Row{{Cells: []Cell{{Samples: all}, {Samples: all[1:]}}}}}}}}}
	r.Clean()
	for _, c := range r.Sections[0].Tables[0].Rows[0].Cells {
		assert.Equal(t, []float64{1.23457, 2}, c.Samples)
	}
	assert.NoError(t, r.Check())
	r.Sections = append(r.Sections, r.Sections[0])
	assert.Error(t, r.Check(), "each ID once")
}
