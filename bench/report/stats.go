package report

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is that of the interval around a median.
const confidence = 0.95

// sample returns the samples for benchmath, which sorts what it is given, or nil if there are none. A sample that is
// not finite, such as a rate over no time, is none.
func (c Cell) sample() *benchmath.Sample {
	kept := slices.DeleteFunc(slices.Clone(c.Samples), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(kept) == 0 {
		return nil
	}
	return benchmath.NewSample(kept, &benchmath.DefaultThresholds)
}

// summary is the median of the samples, and its interval with a confidence of 95%. Fewer than 6 samples do not give
// that confidence: then Lo is the least sample and Hi the greatest. It is NaN if there are none.
func (c Cell) summary() benchmath.Summary {
	sample := c.sample()
	if sample == nil {
		return benchmath.Summary{Center: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	s := benchmath.AssumeNothing.Summary(sample, confidence)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		s.Lo, s.Hi = sample.Values[0], sample.Values[len(sample.Values)-1]
	}
	return s
}

// Median returns the median of the samples, or NaN if there are none.
func (c Cell) Median() float64 { return c.summary().Center }

// digits is how many significant digits the interval around the median leaves: the last one may be wrong by some.
func digits(s benchmath.Summary) int {
	switch spread := max(s.Hi-s.Center, s.Center-s.Lo); {
	case spread < 0.01*math.Abs(s.Center) || spread == 0:
		return 3
	case spread < 0.5*math.Abs(s.Center) || s.Center == 0:
		return 2
	}
	return 1
}

// Difference is how one cell compares to another.
type Difference struct {
	benchmath.Comparison         // by the Mann-Whitney U test
	Ratio                float64 // of the medians; NaN if one has no samples, or the base's median is 0
	digits               int     // of Ratio that are known
}

// Against compares c to base.
func (c Cell) Against(base Cell) Difference {
	d := Difference{Ratio: math.NaN()}
	is, was := c.summary(), base.summary()
	if math.IsNaN(is.Center) || math.IsNaN(was.Center) {
		return d
	}
	d.Comparison, d.digits = benchmath.AssumeNothing.Compare(base.sample(), c.sample()), min(digits(is), digits(was))
	if was.Center != 0 {
		d.Ratio = is.Center / was.Center
	}
	return d
}

// Significant reports whether chance alone makes such a difference in fewer than one of 20 cases.
func (d Difference) Significant() bool { return d.P < d.Alpha }

// By is a cell with f of each sample.
func (c Cell) By(f func(float64) float64) Cell {
	var out []float64
	for _, v := range c.Samples {
		out = append(out, f(v))
	}
	c.Samples = out
	return c
}

// Per is the ratios to another cell, sample by sample.
func (c Cell) Per(other Cell) Cell {
	return c.with(other, func(x, y float64) float64 { return x / y })
}

// Minus is the differences from another cell, sample by sample.
func (c Cell) Minus(other Cell) Cell {
	return c.with(other, func(x, y float64) float64 { return x - y })
}

func (c Cell) with(other Cell, f func(x, y float64) float64) (out Cell) {
	for i := range min(len(c.Samples), len(other.Samples)) {
		out.Samples = append(out.Samples, f(c.Samples[i], other.Samples[i]))
	}
	return out
}

// Inverse makes rates of times, and times of rates.
func Inverse(x float64) float64 { return 1 / x }

// State says whether a target is met.
type State string

// The states of a target.
const (
	Met    State = "met"
	Missed State = "missed"
	Open   State = "open" // this run does not decide it
)

// Enough is how many samples a target needs, unless it is of what was counted.
const Enough = 10

// State judges the target by the median of its samples.
func (t Target) State() State { state, _ := t.judge(); return state }

// Reason says why the target was missed or is open.
func (t Target) Reason() string { _, why := t.judge(); return why }

func (t Target) judge() (State, string) {
	got := t.Got.summary()
	switch {
	case t.Open != "":
		return Open, t.Open
	case math.IsNaN(got.Center):
		return Open, "not measured"
	case len(t.Got.Samples) < Enough && t.Got.Text == "":
		return Open, "too few samples"
	case t.AtMost && got.Center <= t.Want, !t.AtMost && got.Center >= t.Want:
		return Met, ""
	case got.Lo <= t.Want && t.Want <= got.Hi:
		return Missed, "within the noise"
	}
	return Missed, t.Why
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
	for _, s := range r.Sections {
		for _, t := range s.Targets {
			if why := s.Unusable(); why != "" {
				t.Open = "the section is unusable: " + why
			}
			if !r.Quick {
				all = append(all, t)
			}
		}
	}
	return all
}

// Ahead returns the peers whose cell in the column is significantly better than that of
// the row.
func (t *Table) Ahead(row, column string) (names []string) {
	for _, r := range t.Rows {
		i := t.column(column)
		d := t.Cell(r.Name, column).Against(t.Cell(row, column))
		if r.Group == Peers && d.Significant() && (d.Ratio < 1) == (t.Columns[i].Better == Less) {
			names = append(names, r.Name)
		}
	}
	return names
}
