package results

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTargetState(t *testing.T) {
	got := Cell{Samples: []float64{1.2, 1.3, 1.25}}
	for _, test := range []struct {
		name   string
		target Target
		want   State
	}{
		{"at most, just", Target{Want: 1.25, AtMost: true, Got: got}, Met},
		{"at most, above", Target{Want: 1.24, AtMost: true, Got: got}, Missed},
		{"at least, just", Target{Want: 1.25, Got: got}, Met},
		{"at least, below", Target{Want: 1.26, Got: got}, Missed},
		{"open", Target{Want: 1.26, Got: got, Open: "too few"}, Open},
		{"not measured", Target{Want: 1.26, AtMost: true}, Open},
	} {
		assert.Equal(t, test.want, test.target.State(), test.name)
	}
	assert.Equal(t, "≤ 1.25×", Target{Want: 1.25, AtMost: true, Unit: "×"}.Limit())
	assert.Equal(t, "≥ 20 ns/ID", Target{Want: 20, Unit: "ns/ID"}.Limit())
}

func TestJudge(t *testing.T) {
	around := func(middle, step float64, n int) []float64 {
		samples := make([]float64, n)
		for i := range samples {
			samples[i] = middle + step*(float64(i)-float64(n-1)/2)
		}
		return samples
	}
	for _, test := range []struct {
		name      string
		got, cpu  []float64
		state     State
		why, open string
	}{
		{"nothing", nil, nil, Open, "", "not measured"},
		{"too few", around(1, 0.01, 9), nil, Open, "", "too few samples"},
		{"too few, and above", around(2, 0.01, 9), nil, Open, "", "too few samples"},
		{"met", around(1.2, 0.001, 20), nil, Met, "", ""},
		{"missed", around(1.5, 0.001, 20), around(1.5, 0.001, 20), Missed, "", ""},
		{"no processor", around(1.5, 0.001, 20), around(1.2, 0.001, 20), Missed,
			"met by processor time (1.200×): the process did not have the processors to itself", ""},
		{"noise", around(1.3, 0.1, 20), around(1.3, 0.1, 20), Missed, "within the noise", ""},
	} {
		got := Target{ID: "t", Unit: "×", Want: 1.25, AtMost: true, Got: Cell{Samples: test.got}}.Judge(test.cpu)
		assert.Equal(t, test.state, got.State(), test.name)
		assert.Equal(t, test.why, got.Why, test.name)
		assert.Equal(t, test.open, got.Open, test.name)
	}
}
