package measure

import (
	"math"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/bench/results"
)

func TestStolen(t *testing.T) {
	before := cpu.TimesStat{User: 100, Idle: 100, Steal: 10}
	assert.InDelta(t, 5, Stolen(before, cpu.TimesStat{User: 150, Idle: 145, Steal: 15}), 1e-9)
	assert.Zero(t, Stolen(before, before), "no time passed")
	assert.Zero(t, Stolen(before, cpu.TimesStat{User: 150, Idle: 145, Steal: 5}), "a counter that went back")
	assert.Zero(t, Stolen(cpu.TimesStat{}, cpu.TimesStat{}), "a system that does not tell")
	only := cpu.TimesStat{User: 42687.61, Nice: 19241.28, System: 9791.75, Idle: 41228.03, Iowait: 447.04, Softirq: 556.95, Steal: 6679.02}
	more := only
	more.Steal = 6679.03
	assert.Equal(t, 100.0, Stolen(only, more), "no more than all, however it is rounded")
}

// samples are of rounds that take so long, of which some are disturbed.
func samplesOf(ns float64, rounds int, disturbed ...int) Samples {
	s := Samples{Disturbed: make([]bool, rounds)}
	for range rounds {
		s.Wall, s.CPU = append(s.Wall, ns), append(s.CPU, ns/2)
	}
	for _, i := range disturbed {
		s.Disturbed[i] = true
		s.Wall[i] *= 100
	}
	return s
}

// A round counts if neither of the pair was disturbed.
func TestOnlyRoundsWithoutADisturbanceCount(t *testing.T) {
	p := Compare(samplesOf(3, 16, 0, 5), samplesOf(2, 16, 5, 7))
	assert.Len(t, p.Ratios(), 13)
	for _, ratio := range append(p.Ratios(), p.CPURatios()...) {
		assert.InDelta(t, 1.5, ratio, 1e-9)
	}
	target := results.Target{ID: "t", Want: 1.6, AtMost: true}
	got := p.Judge(target)
	assert.Equal(t, results.Met, got.State())
	assert.Equal(t, "13 of 16 rounds count", got.Beside)
	assert.Empty(t, Compare(samplesOf(3, 16), samplesOf(2, 16)).Judge(target).Beside, "all rounds count")
	twice := p.By(func(x float64) float64 { return 2 * x })
	assert.InDelta(t, 3, twice.Ratios()[0], 1e-9)
	assert.Len(t, p.Per(twice).Ratios(), 13)
	assert.InDelta(t, 0.5, p.Per(twice).Ratios()[0], 1e-9)
}

// A pair of which too few rounds count decides nothing.
func TestTooManyDisturbedRoundsDecideNothing(t *testing.T) {
	target := results.Target{ID: "t", Want: 1, AtMost: true} // 1.5 would miss it
	for name, test := range map[string]struct {
		rounds, disturbed int
		want              string
	}{
		"fewer than enough":    {12, 3, "too few samples"},
		"fewer than a half":    {24, 13, "the machine was disturbed"},
		"none":                 {12, 12, "the machine was disturbed"},
		"too few of all":       {9, 0, "too few samples"},
		"just a half":          {24, 12, ""},
		"nothing was measured": {0, 0, "not measured"},
	} {
		var which []int
		for i := range test.disturbed {
			which = append(which, i)
		}
		got := Compare(samplesOf(3, test.rounds, which...), samplesOf(2, test.rounds)).Judge(target)
		if test.want == "" {
			assert.Equal(t, results.Missed, got.State(), name)
			continue
		}
		assert.Equal(t, results.Open, got.State(), name)
		assert.Contains(t, []string{test.want, "the machine was disturbed"}, got.Open, name)
	}
	assert.Equal(t, "disturbed", Compare(samplesOf(3, 2, 0, 1), samplesOf(2, 2)).Cell().Text)
	assert.Zero(t, math.Round(100*(Compare(samplesOf(3, 4, 0), samplesOf(2, 4)).Cell().Median()-1.5)))
}

// A work and its base are neighbours, and each batch of either is watched.
func TestInterleaveMeasuresPairs(t *testing.T) {
	run, _ := newRun(&fake{}, 0)
	run.now = nil
	var order []string
	work := func(name string) Work {
		return Work{Name: name, Do: func(n int) error {
			if n > 0 && (len(order) == 0 || order[len(order)-1] != name) {
				order = append(order, name)
			}
			return nil
		}}
	}
	base := work("base")
	paired := work("paired")
	paired.Base = &base
	samples := Interleave(t.Context(), run, 0, 4, []Work{work("alone"), paired})
	assert.Len(t, samples, 2)
	assert.Nil(t, samples[0].Base)
	assert.Empty(t, samples[0].Pair().Ratios())
	assert.Len(t, samples[1].Base.Wall, 4)
	assert.Len(t, samples[1].Disturbed, 4)
	for i, name := range order {
		if name == "paired" {
			before, after := i > 0 && order[i-1] == "base", i+1 < len(order) && order[i+1] == "base"
			assert.True(t, before || after, "%v", order)
		}
	}

	f := &fake{stolen: true}
	b := newBench(f, taking(f, time.Microsecond))
	b.Measure(0)
	assert.Equal(t, []bool{true}, b.Samples()[0].Disturbed)
}
