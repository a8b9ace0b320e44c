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
		reason string
	}{
		{"at most, just", Target{Want: 1.25, AtMost: true, Got: got}, Met, ""},
		{"at most, above", Target{Want: 1.24, AtMost: true, Got: got, Why: "noise"}, Missed, "noise"},
		{"at least, just", Target{Want: 1.25, Got: got}, Met, ""},
		{"at least, below", Target{Want: 1.26, Got: got}, Missed, ""},
		{"open", Target{Want: 1.26, Got: got, Open: "too few"}, Open, "too few"},
		{"not measured", Target{Want: 1.26, AtMost: true}, Open, "it was not measured"},
	} {
		assert.Equal(t, test.want, test.target.State(), test.name)
		assert.Equal(t, test.reason, test.target.Reason(), test.name)
	}
	assert.Equal(t, "≤ 1.25×", Target{Want: 1.25, AtMost: true, Unit: "×"}.Limit())
	assert.Equal(t, "≥ 20 ns/ID", Target{Want: 20, Unit: "ns/ID"}.Limit())
}
