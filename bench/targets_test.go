package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// BenchmarkTargets holds the library to its speed: every case fails when it
// misses its target, unless it ran for too few rounds to tell.
func BenchmarkTargets(b *testing.B) {
	b.Run("next", func(b *testing.B) {
		atMost(b, 1.08, "×floor", ratio(b, loop(b, next(), 1), loop(b, cases.Floor(), 1)))
	})
	b.Run("nextN-1024", func(b *testing.B) {
		bulk := interleave(b, measure.Work{Do: loop(b, cases.NextN(1024), 1), Unit: 1024})[0]
		slices.Sort(bulk) // a disturbance can only slow it down, so the fast quarter counts
		atMost(b, 2, "ns/ID", bulk[len(bulk)/4])
	})
	b.Run("lease", func(b *testing.B) {
		leased := cases.Leased("lease", cases.Wide())
		atMost(b, 1.03, "×without", ratio(b, loop(b, leased, 1), loop(b, next(), 1)))
	})
	for _, goroutines := range []int{2, 8, 64} {
		b.Run(fmt.Sprintf("shared-%d", goroutines), func(b *testing.B) {
			atMost(b, 1.15, "×floor", ratio(b, loop(b, next(), goroutines), loop(b, cases.SharedFloor(), goroutines)))
		})
	}
	b.Run("streams-2", func(b *testing.B) {
		floors := loop(b, cases.OwnFloor(), 2)
		t := interleave(b,
			measure.Work{Do: loop(b, cases.Stream(), 1)}, measure.Work{Do: loop(b, cases.Stream(), 2)},
			measure.Work{Do: loop(b, cases.Floor(), 1)}, measure.Work{Do: floors})
		// Two cores of a virtual machine are not always twice one: what two floors
		// that share nothing reach is what there is to reach.
		machine := median(measure.Ratios(t[2], t[3]))
		b.ReportMetric(machine, "×machine")
		atLeast(b, 0.95*machine, "×one", median(measure.Ratios(t[0], t[1])))
	})
}

// ratio returns how the time that subject takes stands to that which base takes: the
// median over the rounds.
func ratio(b *testing.B, subject, base cases.Loop) float64 {
	t := interleave(b, measure.Work{Do: subject}, measure.Work{Do: base})
	return median(measure.Ratios(t[0], t[1]))
}

// interleave measures the works in turn, in random order, in every round, and returns
// the nanoseconds per operation of each, by round. A turn takes about 5 ms.
func interleave(b *testing.B, works ...measure.Work) [][]float64 {
	return interleaveFor(b, 5*time.Millisecond, works...)
}

// interleaveFor is interleave with turns that take about so long.
func interleaveFor(b *testing.B, turn time.Duration, works ...measure.Work) [][]float64 {
	bench := measure.NewBench(works)
	for i := range works {
		bench.Calibrate(b.Context(), i, turn)
	}
	for b.Loop() {
		for _, i := range rand.Perm(len(works)) {
			bench.Measure(i)
		}
	}
	var wall [][]float64
	for _, s := range bench.Samples() {
		require.NoError(b, s.Err)
		wall = append(wall, s.Wall)
	}
	return wall
}

func median(samples []float64) float64 { return results.Cell{Samples: samples}.Median() }

// enoughRounds is how many rounds make a result that can fail.
const enoughRounds = 10

func atMost(b *testing.B, limit float64, unit string, got float64) {
	b.ReportMetric(got, unit)
	b.ReportMetric(limit, "at-most")
	b.ReportMetric(0, "ns/op") // that of a round says nothing
	if got > limit && b.N >= enoughRounds {
		b.Errorf("%.3f %s, want at most %.3f", got, unit, limit)
	}
}

func atLeast(b *testing.B, limit float64, unit string, got float64) {
	b.ReportMetric(got, unit)
	b.ReportMetric(limit, "at-least")
	b.ReportMetric(0, "ns/op")
	if got < limit && b.N >= enoughRounds {
		b.Errorf("%.3f %s, want at least %.3f", got, unit, limit)
	}
}
