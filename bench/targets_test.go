package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator"
)

// BenchmarkTargets holds the library to its speed: every case fails when it
// misses its target, unless it ran for too few rounds to tell.
func BenchmarkTargets(b *testing.B) {
	layout := generator.WithLayout(wide())
	b.Run("next", func(b *testing.B) {
		atMost(b, 1.25, "×floor", ratio(b, next(b, newGenerator(b, layout)), floor(), 1<<14))
	})
	b.Run("nextN-1024", func(b *testing.B) {
		atMost(b, 2, "ns/ID", interleave(b, 1<<18, nextN(b, newGenerator(b, layout), 1024))[0])
	})
	b.Run("lease", func(b *testing.B) {
		leased, plain := next(b, newLeased(b, wide())), next(b, newGenerator(b, layout))
		atMost(b, 1.03, "×without", ratio(b, leased, plain, 1<<14))
	})
	for _, goroutines := range []int{2, 8, 64} {
		b.Run(fmt.Sprintf("shared-%d", goroutines), func(b *testing.B) {
			nexts := times(goroutines, next(b, newGenerator(b, layout)))
			floors := times(goroutines, sharedFloor())
			atMost(b, 1.15, "×floor", ratio(b, together(nexts...), together(floors...), 1<<19))
		})
	}
	b.Run("streams-2", func(b *testing.B) {
		one, two := streamsOf(b, newGenerator(b, layout), 1), streamsOf(b, newGenerator(b, layout), 2)
		oneFloor, twoFloors := together(floor()), together(floor(), floor())
		t := interleave(b, 1<<19, one, two, oneFloor, twoFloors)
		// Two cores of a virtual machine are not always twice one: what two floors
		// that share nothing reach is what there is to reach.
		machine := t[2] / t[3]
		b.ReportMetric(machine, "×machine")
		atLeast(b, 1.8*machine/2, "×one", t[0]/t[1])
	})
}

// ratio returns how the time that subject takes stands to that which base takes,
// for n each.
func ratio(b *testing.B, subject, base work, n int) float64 {
	t := interleave(b, n, subject, base)
	return t[0] / t[1]
}

// interleave runs the works in turn, n each, in every round, so that a
// disturbance meets them all, and returns the time per operation of each. As a
// disturbance can only slow them down, it is that of the fast quarter of the
// rounds.
func interleave(b *testing.B, n int, works ...work) []float64 {
	for _, w := range works {
		w(n) // warm up
	}
	rounds := make([][]float64, len(works))
	for b.Loop() {
		for i, w := range works {
			rounds[i] = append(rounds[i], nanoseconds(w, n))
		}
	}
	times := make([]float64, len(works))
	for i, r := range rounds {
		slices.Sort(r)
		times[i] = r[len(r)/4]
	}
	return times
}

func nanoseconds(w work, n int) float64 {
	begin := time.Now()
	w(n)
	return float64(time.Since(begin)) / float64(n)
}

// enoughRounds is how many rounds make a result that can fail.
const enoughRounds = 10

func atMost(b *testing.B, limit float64, unit string, got float64) {
	b.ReportMetric(got, unit)
	b.ReportMetric(0, "ns/op") // that of a round says nothing
	if got > limit && b.N >= enoughRounds {
		b.Errorf("%.3f %s, want at most %.3f", got, unit, limit)
	}
}

func atLeast(b *testing.B, limit float64, unit string, got float64) {
	b.ReportMetric(got, unit)
	b.ReportMetric(0, "ns/op")
	if got < limit && b.N >= enoughRounds {
		b.Errorf("%.3f %s, want at least %.3f", got, unit, limit)
	}
}
