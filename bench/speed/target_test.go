package speed

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/bench/results"
)

// around are n samples about a middle.
func around(middle, step float64, n int) []float64 {
	samples := make([]float64, n)
	for i := range samples {
		samples[i] = middle + step*(float64(i)-float64(n-1)/2)
	}
	return samples
}

func TestJudged(t *testing.T) {
	target := func(samples []float64) results.Target {
		return results.Target{ID: "t", Unit: "×", Want: 1.25, AtMost: true, Got: results.Cell{Samples: samples}}
	}
	for _, test := range []struct {
		name   string
		got    []float64
		cpu    []float64
		reason string
		state  results.State
		why    string
	}{
		{"nothing", nil, nil, "", results.Open, "it was not measured"},
		{"too few", around(1, 0.01, 9), nil, "", results.Open, "9 samples are too few to judge by: it takes 10"},
		{"too few, and above", around(2, 0.01, 9), nil, "", results.Open, "9 samples are too few to judge by: it takes 10"},
		{"met", around(1.2, 0.001, 20), nil, "because", results.Met, ""},
		{"missed", around(1.5, 0.001, 20), around(1.5, 0.001, 20), "", results.Missed, ""},
		{"missed, known why", around(1.5, 0.001, 20), nil, "because", results.Missed, "because"},
		{"no processor", around(1.5, 0.001, 20), around(1.2, 0.001, 20), "because", results.Missed,
			"by processor time it is 1.2×: the rest is time for which this process had no processor"},
		{"noise", around(1.3, 0.1, 20), around(1.3, 0.1, 20), "", results.Missed, "not by more than the noise"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := judged(target(test.got), test.cpu, test.reason)
			assert.Equal(t, test.state, got.State())
			if test.why == "" {
				assert.Empty(t, got.Reason())
			}
			assert.Contains(t, got.Reason(), test.why)
		})
	}
}

func TestWorst(t *testing.T) {
	all := [][]float64{nil, {1, 2, 3}, {5}, {4, 4}}
	assert.Equal(t, 2, worst(true, all))
	assert.Equal(t, 1, worst(false, all))
	assert.Equal(t, -1, worst(true, [][]float64{nil, {}}))
}

func TestSide(t *testing.T) {
	assert.Equal(t, -1, side(around(0.9, 0.001, 20)))
	assert.Equal(t, 1, side(around(1.1, 0.001, 20)))
	assert.Equal(t, 0, side(around(1, 0.01, 20)))
	assert.Equal(t, 0, side(around(0.5, 0.001, 4)), "of so few nothing can be told")
	assert.Equal(t, 0, side(nil))
}
