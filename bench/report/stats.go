package report

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is that of the interval around a median.
const confidence = 0.95

// Summary is the median of the samples of a cell. Lo and Hi bound it with a confidence of 95%.
// Fewer than 6 samples do not give that confidence: then Lo is the least sample and Hi the
// greatest.
type Summary struct{ Median, Lo, Hi float64 }

// Summary returns the median with its interval, or false if there are no samples.
func (c Cell) Summary() (Summary, bool) {
	if len(c.Samples) == 0 {
		return Summary{}, false
	}
	sample := c.sample()
	got := benchmath.AssumeNothing.Summary(sample, confidence)
	s := Summary{got.Center, got.Lo, got.Hi}
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		s.Lo, s.Hi = sample.Values[0], sample.Values[len(sample.Values)-1]
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

// sample returns the samples for benchmath, which sorts what it is given.
func (c Cell) sample() *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(c.Samples), &benchmath.DefaultThresholds)
}

// constant reports whether all samples are the same.
func (c Cell) constant() bool { return slices.Min(c.Samples) == slices.Max(c.Samples) }

// Spread is the distance from the median to the farther end of the interval, as a share
// of the median: 0.02 is ±2%. It is NaN if the median is 0 and the interval is not.
func (s Summary) Spread() float64 {
	switch {
	case s.Lo == s.Hi:
		return 0
	case s.Median == 0:
		return math.NaN()
	}
	return max(s.Hi-s.Median, s.Median-s.Lo) / math.Abs(s.Median)
}

// Difference is how one cell compares to another.
type Difference struct {
	Ratio       float64 // of the medians; NaN if the base's is 0
	P           float64 // probability of such a difference by chance, by the Mann-Whitney U test
	Significant bool    // chance alone makes such a difference in fewer than one of 20 cases
	digits      int     // of Ratio that are known
}

// Against compares c to base. It returns false if one of them has no samples.
func (c Cell) Against(base Cell) (Difference, bool) {
	if len(c.Samples) == 0 || len(base.Samples) == 0 {
		return Difference{}, false
	}
	const alpha = 0.05
	is, _ := c.Summary()
	was, _ := base.Summary()
	d := Difference{Ratio: math.NaN(), P: benchmath.AssumeNothing.Compare(base.sample(), c.sample()).P, digits: min(is.digits(), was.digits())}
	d.Significant = d.P < alpha
	if was.Median != 0 {
		d.Ratio = is.Median / was.Median
	}
	return d, true
}

// State says whether a target is met.
type State string

// The states of a target.
const (
	Met    State = "met"
	Missed State = "missed"
	Open   State = "open" // this run does not decide it
)

// State judges the target by the median of its samples.
func (t Target) State() State {
	got := t.Got.Median()
	switch {
	case t.Open != "" || math.IsNaN(got):
		return Open
	case t.AtMost && got <= t.Want, !t.AtMost && got >= t.Want:
		return Met
	}
	return Missed
}

// Enough is how many samples a target needs.
const Enough = 10

// Judge leaves a target open that has too few samples, and says of a missed one whether that is
// within the noise.
func (t Target) Judge() Target {
	got, ok := t.Got.Summary()
	switch {
	case !ok:
		t.Open = "not measured"
	case len(t.Got.Samples) < Enough:
		t.Open = "too few samples"
	case t.State() != Missed:
	case got.Lo <= t.Want && t.Want <= got.Hi:
		t.Why = "within the noise"
	}
	return t
}

// mostStolen is the share of the processors' time, in percent, from which on a section is
// unusable: a hypervisor took so much that the figures show the machine.
const mostStolen = 2

// Unusable says why the section decides no target. It is empty if the section is usable.
func (s Section) Unusable() string {
	if s.Stolen < mostStolen {
		return ""
	}
	return fmt.Sprintf("the hypervisor took %.1f%% of the processors' time, and from %d%% on the figures show the machine", s.Stolen, mostStolen)
}

// Targets returns those of all sections, in order. Those of an unusable section are open. A quick
// run has none.
func (r *Report) Targets() (all []Target) {
	if r.Quick {
		return nil
	}
	for _, s := range r.Sections {
		for _, t := range s.Targets {
			if why := s.Unusable(); why != "" {
				t.Open = "the section is unusable: " + why
			}
			all = append(all, t)
		}
	}
	return all
}

// Ahead returns the peers whose cell in the column is significantly better than that of
// the row.
func (t *Table) Ahead(row, column string) []string {
	i := t.column(column)
	if i < 0 {
		return nil
	}
	base := t.Cell(row, column)
	var names []string
	for _, r := range t.Rows {
		d, ok := r.Cells[i].Against(base)
		if r.Group == Peers && ok && d.Significant && (d.Ratio < 1) == (t.Columns[i].Better == Less) {
			names = append(names, r.Name)
		}
	}
	return names
}
