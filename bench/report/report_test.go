package report

import (
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
		got   []float64
		state State
		why   string
	}{
		"nothing":            {nil, Open, "not measured"},
		"too few, and above": {around(2, 0.01, 9), Open, "too few samples"},
		"met":                {around(1.2, 0.001, 20), Met, ""},
		"missed":             {around(1.5, 0.001, 20), Missed, "because"},
		"noise":              {around(1.3, 0.1, 20), Missed, "within the noise"},
	} {
		got := Target{ID: "t", Unit: "×", Want: 1.25, AtMost: true, Got: Cell{Samples: test.got}, Why: "because"}
		assert.Equal(t, [2]string{string(test.state), test.why}, [2]string{string(got.State()), got.Reason()}, name)
		least := Target{Want: 1.25, Got: Cell{Samples: test.got}}
		assert.Equal(t, test.state == Missed, least.State() == Met, name)
	}
	assert.Equal(t, Missed, Target{AtMost: true, Got: One(1)}.State(), "one that was counted is enough")
}

// A ratio is that of a round, and of no round that only one of the two has.
func TestPer(t *testing.T) {
	ratio := Cell{Samples: []float64{3, 6, 9}}.Per(Cell{Samples: []float64{2, 3}})
	assert.Equal(t, []float64{1.5, 2}, ratio.Samples)
	assert.Equal(t, []float64{2. / 3, 0.5}, ratio.By(Inverse).Samples)
}

// What was not measured stands in the first table as in the published run, or empty.
func TestWhich(t *testing.T) {
	cost := Section{ID: "cost", Tables: []Table{{ID: "cost", Columns: []Column{{ID: "ns"}}, Rows: []Row{{Name: "rs/xid", Cells: []Cell{One(56)}}}}}}
	kernel := Section{ID: "kernel", Tables: []Table{{ID: "kernel", Columns: []Column{{ID: "twice"}, {ID: "step"}, {ID: "runs"}, {ID: "ids"}},
		Rows: []Row{{Name: "rs/xid", Cells: []Cell{{Text: "1,573: copies"}, {Text: "nothing"}, One(2), One(10_053)}}}}}}
	was := map[string][]string{"rs/xid": {"7: copies", "nothing"}}
	for _, test := range []struct {
		run             []Section
		was             map[string][]string
		twice, step, ns string
	}{
		{nil, was, "–", "–", "–"},
		{[]Section{cost}, nil, "–", "–", "56"},
		{[]Section{cost}, was, "7: copies (published run)", "nothing (published run)", "56"},
		{[]Section{cost, kernel}, was, "1,573: copies", "nothing", "56"},
	} {
		which := (&Report{Sections: test.run, Published: test.was}).Which()
		assert.Equal(t, []string{test.twice, test.step, test.ns},
			[]string{which.Cell("rs/xid", "duplicates").String(), which.Cell("rs/xid", "step").String(), which.Cell("rs/xid", "ns").String()})
		if len(test.run) == 2 {
			assert.Equal(t, "duplicates in 2 runs on a real kernel, of about 10,000 IDs", which.Columns[0].Title)
		}
	}
}

// A verdict has the values of its cells, and there is none without them, or after a disturbance.
func TestSaid(t *testing.T) {
	var one Table
	one.Say("%s ns", Cell{})
	assert.Empty(t, one.Verdict)
	one.Say("%s ns", One(3))
	s := Section{Tables: []Table{one, {}, {Verdict: "No peer is faster."}}}
	assert.Equal(t, "3 ns No peer is faster.", s.Said())
	s.Stolen = mostStolen
	assert.Contains(t, s.Said(), "disturbed")
}
