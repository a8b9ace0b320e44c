package results

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSummaryOfFewSamplesIsTheirRange(t *testing.T) {
	c := Cell{Samples: []float64{5, 1, 3}}
	s, ok := c.Summary()
	require.True(t, ok)
	assert.Equal(t, Summary{Median: 3, Lo: 1, Hi: 5, N: 3, Whole: true}, s)
	assert.Equal(t, []float64{5, 1, 3}, c.Samples, "the samples must stay in order")
}

// An interval of 95% has the true median in 19 of 20 cases, or more.
func TestIntervalCoversTheMedian(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{6, 7, 10, 25} {
		const runs = 4000
		covered := 0
		for range runs {
			var c Cell
			for range n {
				c.Samples = append(c.Samples, random.ExpFloat64())
			}
			s, _ := c.Summary()
			require.False(t, s.Whole)
			sorted := slices.Sorted(slices.Values(c.Samples))
			require.InDelta(t, (sorted[(n-1)/2]+sorted[n/2])/2, s.Median, 1e-12)
			if s.Lo <= math.Ln2 && math.Ln2 <= s.Hi {
				covered++
			}
		}
		assert.GreaterOrEqual(t, float64(covered)/runs, 0.94, "%d samples", n)
		assert.LessOrEqual(t, float64(covered)/runs, 0.998, "%d samples: the interval is too wide to say anything", n)
	}
}

func TestNoiseLeavesCountsOut(t *testing.T) {
	r := &Report{Sections: []Section{{Tables: []Table{{Rows: []Row{{Cells: []Cell{
		{Samples: []float64{99, 100, 101}}, // ±1%
		{Samples: []float64{90, 100, 101}}, // ±10%
		{Samples: []float64{7, 7, 7}},      // a count
		{Samples: []float64{5}},            // once
		{Text: "–"},
		{Samples: []float64{50, 100, 100}}, // ±50%
	}}}}}}}}
	n := r.Noise()
	assert.Equal(t, 3, n.Cells)
	assert.InDelta(t, 0.10, n.Typical, 1e-9)
	assert.InDelta(t, 0.50, n.Most, 1e-9)
	assert.Zero(t, new(Report).Noise())
}

func TestDifferenceOfKnownSamples(t *testing.T) {
	low := Cell{Samples: []float64{1, 2, 3, 4, 5}}
	high := Cell{Samples: []float64{10, 6, 8, 9, 7}}
	d, ok := high.Against(low)
	require.True(t, ok)
	// All of 252 ways to part ten samples into five and five are alike, and two of
	// them are as extreme.
	assert.InDelta(t, 2.0/252, d.P, 1e-9)
	assert.True(t, d.Significant())

	d, _ = Cell{Samples: []float64{1, 3, 5, 4, 2}}.Against(low)
	assert.False(t, d.Significant())

	// Three and three can be parted in 20 ways only: no difference is significant.
	d, _ = Cell{Samples: []float64{100, 101, 102}}.Against(Cell{Samples: []float64{1, 2, 3}})
	assert.False(t, d.Testable())

	d, _ = Cell{Samples: []float64{6, 7, 8, 9, 10, 11}}.Against(low)
	assert.Equal(t, 11, d.N1+d.N2)

	_, ok = low.Against(Cell{Text: "none"})
	assert.False(t, ok)
}

func TestFigure(t *testing.T) {
	for want, v := range map[string]float64{
		"0": 0, "12": 12, "4,096": 4096, "-1,234,567": -1234567, "33.12": 33.1249, "1.250": 1.25000001, "0.03312": 0.033121,
		"244.1": 244.13, "38,500": 38499.7, "999.5": 999.49999, "1e-05": 1e-5, "99.97": 99.971, "?": math.NaN(), "9.999": 9.9990001, "10.00": 9.99999, "1,000": 999.99,
	} {
		assert.Equal(t, want, Figure(v), "%v", v)
	}
}

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
	assert.Empty(t, table.Ahead("ours", "other"))
	assert.Empty(t, table.Ahead("other", "ns"))
}
