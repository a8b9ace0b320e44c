package chart

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/tickflake/tickflake/bench/results"
)

// scale is the range of an axis with its ticks.
type scale struct {
	min, max float64
	log      bool
	ticks    []plot.Tick
}

// set gives an axis the scale.
func (s scale) set(axis *plot.Axis) {
	axis.Min, axis.Max = s.min, s.max
	axis.Tick.Marker = plot.ConstantTicks(s.ticks)
	axis.Scale = plot.LinearScale{}
	if s.log {
		axis.Scale = plot.LogScale{}
	}
}

// overshoot is by how much of a step a value may be beyond the last tick: a share of
// 100.2% is no reason for an axis that goes to 120%.
const overshoot = 0.05

// linear is a scale from 0, or from below it, to at least hi, with about n ticks.
func linear(lo, hi float64, n int) scale {
	lo, hi = min(lo, 0), max(hi, 0)
	if hi-lo < tiny {
		hi = 1
	}
	step := nice((hi - lo) / float64(n))
	s := scale{min: math.Floor(lo/step) * step, max: math.Ceil(hi/step-overshoot) * step}
	for i := 0; ; i++ {
		v := s.min + float64(i)*step
		if v > s.max+step/2 {
			return s
		}
		s.ticks = append(s.ticks, plot.Tick{Value: v, Label: results.Short(v)})
	}
}

// nice is the least of 1, 2, 5, 10, 20 … that is not below v.
func nice(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= v*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// logarithmic is a scale around lo and hi, which are above zero.
func logarithmic(lo, hi float64) scale {
	s := scale{min: down(lo), max: nice(hi), log: true}
	if s.min == s.max {
		s.max = nice(s.max * 1.5)
	}
	decades := math.Log10(s.max / s.min)
	for e := math.Floor(math.Log10(s.min) + 1e-9); ; e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v > s.max*(1+1e-9) {
				return s
			}
			switch {
			case v < s.min*(1-1e-9):
			case m == 1 || decades < 2.2:
				s.ticks = append(s.ticks, plot.Tick{Value: v, Label: results.Short(v)})
			default:
				s.ticks = append(s.ticks, plot.Tick{Value: v})
			}
		}
	}
}

// down is the greatest of 1, 2, 5, 10, 20 … that is not above v.
func down(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)+1e-9))
	for _, m := range []float64{5, 2} {
		if m*unit <= v*(1+1e-9) {
			return m * unit
		}
	}
	return unit
}

// apart takes the labels from ticks of a horizontal axis that would touch others, if
// it is as long as that. The first and the last keep theirs.
func (s scale) apart(length vg.Length, label text.Style) scale {
	normalizer := plot.Normalizer(plot.LinearScale{})
	if s.log {
		normalizer = plot.LogScale{}
	}
	const gap = 8
	type span struct{ from, to vg.Length }
	place := func(t plot.Tick) span {
		at, half := length*vg.Length(normalizer.Normalize(s.min, s.max, t.Value)), label.Width(t.Label)/2
		return span{at - half - gap/2, at + half + gap/2}
	}
	s.ticks = slices.Clone(s.ticks)
	var taken []span
	keep := func(i int) {
		t := &s.ticks[i]
		if t.Label == "" {
			return
		}
		here := place(*t)
		if slices.ContainsFunc(taken, func(other span) bool { return here.from < other.to && other.from < here.to }) {
			t.Label = ""
			return
		}
		taken = append(taken, here)
	}
	if len(s.ticks) > 0 {
		keep(len(s.ticks) - 1)
	}
	for i := range s.ticks[:max(len(s.ticks)-1, 0)] {
		keep(i)
	}
	return s
}
