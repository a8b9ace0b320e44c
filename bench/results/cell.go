package results

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is that of an interval around a median.
const confidence = 0.95

// Summary is what the samples of a cell come to.
type Summary struct {
	Median float64
	// Lo and Hi bound the median with a confidence of 95%. Of fewer than 6 samples
	// nobody can say that much: then they are the least and the greatest sample.
	Lo, Hi float64
	N      int  // samples
	Whole  bool // Lo and Hi are the whole range
}

// Summary returns what the samples come to, or false if there are none.
func (c Cell) Summary() (Summary, bool) {
	if len(c.Samples) == 0 {
		return Summary{}, false
	}
	sample := c.sample()
	got := benchmath.AssumeNothing.Summary(sample, confidence)
	s := Summary{Median: got.Center, Lo: got.Lo, Hi: got.Hi, N: len(c.Samples)}
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		s.Lo, s.Hi, s.Whole = sample.Values[0], sample.Values[s.N-1], true
	}
	return s, true
}

// Median returns the median of the samples, or NaN if there are none.
func (c Cell) Median() float64 {
	if s, ok := c.Summary(); ok {
		return s.Median
	}
	return math.NaN()
}

// sample returns the samples as benchmath takes them, which sorts what it is given.
func (c Cell) sample() *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(c.Samples), &benchmath.DefaultThresholds)
}

// Spread is how far the interval goes to the wider side of the median, as a share of
// the median: 0.02 is ±2%. It is NaN where the median is 0.
func (s Summary) Spread() float64 {
	if s.Median == 0 {
		if s.Lo == 0 && s.Hi == 0 {
			return 0
		}
		return math.NaN()
	}
	return max(s.Hi-s.Median, s.Median-s.Lo) / math.Abs(s.Median)
}

// Noise is how much repeats of one thing differ in a run.
type Noise struct {
	Typical float64 // spread: half of the cells have at most this
	Most    float64 // nine in ten have at most this
	Cells   int     // that were measured more than once, and timed rather than counted
}

// Noise returns the noise of the run. Cells whose samples are all the same are
// counts, in which there is no noise to see, and are left out.
func (r *Report) Noise() Noise {
	var spreads []float64
	for _, section := range r.Sections {
		for _, table := range section.Tables {
			for _, row := range table.Rows {
				for _, cell := range row.Cells {
					s, _ := cell.Summary()
					if spread := s.Spread(); s.N > 1 && spread >= 0 && !cell.constant() {
						spreads = append(spreads, spread)
					}
				}
			}
		}
	}
	if len(spreads) == 0 {
		return Noise{}
	}
	slices.Sort(spreads)
	at := func(q float64) float64 { return spreads[int(math.Ceil(q*float64(len(spreads))))-1] }
	return Noise{Typical: at(0.5), Most: at(0.9), Cells: len(spreads)}
}
