package speed

import (
	"fmt"

	"github.com/tickflake/tickflake/bench/results"
)

// enough is how many samples a target needs to be judged.
const enough = 10

// judged leaves a target open after too few samples, and says why it was missed, as
// far as the data tells: because of what is not the library's time, for reason, or by
// no more than the noise. byCPU are the samples by processor time in place of time
// that passed, if that is a measure of the same.
func judged(t results.Target, byCPU []float64, reason string) results.Target {
	got, ok := t.Got.Summary()
	if !ok {
		t.Open = "it was not measured"
		return t
	}
	if got.N < enough {
		t.Open = fmt.Sprintf("%d samples are too few to judge by: it takes %d", got.N, enough)
		return t
	}
	if t.State() != results.Missed {
		return t
	}
	cpu := t
	cpu.Got = results.Cell{Samples: byCPU}
	switch {
	case cpu.State() == results.Met:
		t.Why = fmt.Sprintf("by processor time it is %s%s: the rest is time for which this process had no processor", short(cpu.Got.Median()), t.Unit)
	case reason != "":
		t.Why = reason
	case got.Lo <= t.Want && t.Want <= got.Hi:
		t.Why = fmt.Sprintf("not by more than the noise: the median lies between %s%s and %s%s with a confidence of 95%%", short(got.Lo), t.Unit, short(got.Hi), t.Unit)
	}
	return t
}

// worst returns the index of the samples whose median is furthest on the wrong side: the
// greatest if the target is an upper bound, or else the least. It is -1 if there are no
// samples at all.
func worst(atMost bool, of [][]float64) int {
	found, bad := -1, 0.0
	for i, samples := range of {
		if len(samples) == 0 {
			continue
		}
		m := results.Cell{Samples: samples}.Median()
		if found < 0 || atMost && m > bad || !atMost && m < bad {
			found, bad = i, m
		}
	}
	return found
}

// wholly leaves a target open that was met as far as it was measured, which is not with
// all numbers of goroutines.
func wholly(t results.Target, of [][]float64, goroutines []int) results.Target {
	var missing []string
	for i, samples := range of {
		if len(samples) == 0 {
			missing = append(missing, fmt.Sprint(goroutines[i]))
		}
	}
	if len(missing) > 0 && t.State() == results.Met {
		t.Open = fmt.Sprintf("it was not measured with %s goroutines", list(missing))
	}
	return t
}

// side says on which side of 1 the ratios are: -1 below, 1 above, and 0 if that cannot
// be told with a confidence of 95%.
func side(ratios []float64) int {
	s, ok := results.Cell{Samples: ratios}.Summary()
	switch {
	case !ok || s.Whole:
		return 0
	case s.Hi < 1:
		return -1
	case s.Lo > 1:
		return 1
	}
	return 0
}
