package results

import (
	"fmt"
	"math"

	"golang.org/x/perf/benchmath"
)

// Difference is how one cell stands to another.
type Difference struct {
	Ratio  float64 // of the medians; NaN if the base's is 0
	P      float64 // by the Mann-Whitney U test, that chance alone makes as much of a difference
	N1, N2 int     // samples of the base, and of the other
}

// Against returns how c stands to base, or false if one of them has no samples.
func (c Cell) Against(base Cell) (Difference, bool) {
	if len(c.Samples) == 0 || len(base.Samples) == 0 {
		return Difference{}, false
	}
	got := benchmath.AssumeNothing.Compare(base.sample(), c.sample())
	d := Difference{Ratio: math.NaN(), P: got.P, N1: got.N1, N2: got.N2}
	if b := base.Median(); b != 0 {
		d.Ratio = c.Median() / b
	}
	return d, true
}

// Significant says that chance alone would make such a difference in fewer than one
// of 20 cases.
func (d Difference) Significant() bool {
	return d.P < benchmath.DefaultThresholds.CompareAlpha
}

// Testable says that there are enough samples for a difference to be significant at
// all: of 3 and 3, even those that do not overlap would come by chance in one of 10
// cases.
func (d Difference) Testable() bool {
	// Of all ways to share out the places between the two, the outermost are two.
	ways := 1.0
	for i := range min(d.N1, d.N2) {
		ways *= float64(max(d.N1, d.N2)+i+1) / float64(i+1)
		if ways > 1e6 {
			break
		}
	}
	return 2/ways < benchmath.DefaultThresholds.CompareAlpha
}

// test is the outcome of the test: "p=0.002 n=8", or "n=3, too few".
func (d Difference) test() string {
	if !d.Testable() {
		return d.samples() + ", too few"
	}
	p := fmt.Sprintf("p=%.3f", d.P)
	if d.P < 0.001 {
		p = "p<0.001"
	}
	return p + " " + d.samples()
}

// samples is how many there are: "n=8", or "n=8+6".
func (d Difference) samples() string {
	if d.N1 == d.N2 {
		return fmt.Sprintf("n=%d", d.N1)
	}
	return fmt.Sprintf("n=%d+%d", d.N1, d.N2)
}

// Times is the ratio as it is shown: "1.13×", or "~" if it is not significant.
func (d Difference) Times() string {
	switch {
	case !d.Significant():
		return "~"
	case math.IsNaN(d.Ratio):
		return "?" // nothing is a multiple of nothing
	}
	return significant(d.Ratio, ratioDigits) + "×"
}

// Percent is the ratio as a change: "+13.0%", or "~" if it is not significant.
func (d Difference) Percent() string {
	switch {
	case !d.Significant():
		return "~"
	case math.IsNaN(d.Ratio):
		return "?"
	}
	return change(d.Ratio)
}

// change is a ratio as a change in percent.
func change(ratio float64) string {
	return fmt.Sprintf("%+.1f%%", 100*(ratio-1))
}

// String is the ratio with the test's outcome.
func (d Difference) String() string {
	return fmt.Sprintf("%s (%s)", d.Times(), d.test())
}
