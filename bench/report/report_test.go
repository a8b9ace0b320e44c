package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An interval of 95% has the true median in 19 of 20 cases, or more; of few samples it is their
// range.
func TestIntervalCoversTheMedian(t *testing.T) {
	few, _ := Cell{Samples: []float64{5, 1, 3}}.Summary()
	assert.Equal(t, Summary{Median: 3, Lo: 1, Hi: 5}, few)
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{6, 7, 10, 25} {
		const runs = 4000
		covered := 0
		for range runs {
			var c Cell
			for range n {
				c.Samples = append(c.Samples, random.ExpFloat64())
			}
			if s, _ := c.Summary(); s.Lo <= math.Ln2 && math.Ln2 <= s.Hi {
				covered++
			}
		}
		assert.InDelta(t, 0.97, float64(covered)/runs, 0.03, "%d samples", n)
	}
}

func TestNoiseLeavesCountsOut(t *testing.T) {
	r := &Report{Sections: []Section{{Tables: []Table{{Columns: make([]Column, 6), Rows: []Row{{Cells: []Cell{
		{Samples: []float64{99, 100, 101}}, // ±1%
		{Samples: []float64{90, 100, 101}}, // ±10%
		{Samples: []float64{7, 7, 7}},      // a count
		{Samples: []float64{5}},            // once
		{Text: "–"},
		{Samples: []float64{50, 100, 100}}, // ±50%
	}}}}}}}}
	typical, most, cells := r.Noise()
	assert.Equal(t, 3, cells)
	assert.InDelta(t, 0.10, typical, 1e-9)
	assert.InDelta(t, 0.50, most, 1e-9)
}

func TestDifferenceOfKnownSamples(t *testing.T) {
	low := Cell{Samples: []float64{1, 2, 3, 4, 5}}
	d, _ := Cell{Samples: []float64{10, 6, 8, 9, 7}}.Against(low)
	// All of 252 ways to part ten samples into five and five are alike, and two of
	// them are as extreme.
	assert.InDelta(t, 2.0/252, d.P, 1e-9)
	assert.True(t, d.Significant)
	d, _ = Cell{Samples: []float64{1, 3, 5, 4, 2}}.Against(low)
	assert.False(t, d.Significant)
}

func TestFigure(t *testing.T) {
	for want, v := range map[string]float64{
		"0": 0, "12": 12, "4,096": 4096, "-1,234,567": -1234567, "33.1": 33.1249, "1.25": 1.25000001, "0.0331": 0.033121,
		"244": 244.13, "38,500": 38499.7, "999": 999.49999, "1e-05": 1e-5, "?": math.NaN(), "9.99": 9.9940001, "10.0": 9.99999, "1,000": 999.99,
	} {
		assert.Equal(t, want, Figure(v), "%v", v)
	}
	// As many digits as the interval leaves; of one sample that is not exact nobody knows.
	for want, c := range map[string]Cell{
		"1.23": {Samples: []float64{1.234, 1.235}}, "1.2": {Samples: []float64{1.2, 1.234, 1.3}}, "40": {Samples: []float64{20, 41, 90}},
		"1.7": {Samples: []float64{1.68}}, "1.68": One(1.68), "300": {Samples: []float64{300}}, "–": {},
	} {
		assert.Equal(t, want, c.Value())
	}
}

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
