package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator"
)

// BenchmarkTargets holds the library to its speed: every case fails when it
// misses its target.
func BenchmarkTargets(b *testing.B) {
	layout := generator.WithLayout(wide())
	b.Run("next", func(b *testing.B) {
		atMost(b, 1.25, "×floor", ratio(b, next(b, newGenerator(b, layout)), floor(), 1<<14))
	})
	b.Run("nextN-1024", func(b *testing.B) {
		perID := median(b, func() float64 { return nanoseconds(nextN(b, newGenerator(b, layout), 1024), 1<<18) })
		atMost(b, 2, "ns/ID", perID)
	})
	for _, goroutines := range []int{2, 8, 64} {
		b.Run(fmt.Sprintf("shared-%d", goroutines), func(b *testing.B) {
			nexts := times(goroutines, next(b, newGenerator(b, layout)))
			floors := times(goroutines, sharedFloor())
			atMost(b, 1.15, "×floor", ratio(b, together(nexts...), together(floors...), 1<<17))
		})
	}
	b.Run("streams-2", func(b *testing.B) {
		one := streamsOf(b, newGenerator(b, layout), 1)
		two := streamsOf(b, newGenerator(b, layout), 2)
		atLeast(b, 1.8, "×one", 1/ratio(b, two, one, 1<<18))
	})
}

// ratio returns the median, over the benchmark's rounds, of the time that
// subject takes to that which base takes, for n each. Both are run in every
// round, one after the other, so that a disturbance meets both.
func ratio(b *testing.B, subject, base work, n int) float64 {
	subject(n) // warm up
	base(n)
	round := 0
	return median(b, func() float64 {
		if round++; round%2 == 0 {
			s := nanoseconds(subject, n)
			return s / nanoseconds(base, n)
		}
		f := nanoseconds(base, n)
		return nanoseconds(subject, n) / f
	})
}

func nanoseconds(w work, n int) float64 {
	begin := time.Now()
	w(n)
	return float64(time.Since(begin)) / float64(n)
}

func median(b *testing.B, round func() float64) float64 {
	var all []float64
	for b.Loop() {
		all = append(all, round())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func atMost(b *testing.B, limit float64, unit string, got float64) {
	b.ReportMetric(got, unit)
	b.ReportMetric(0, "ns/op") // that of a round says nothing
	if got > limit {
		b.Errorf("%.3f %s, want at most %.3f", got, unit, limit)
	}
}

func atLeast(b *testing.B, limit float64, unit string, got float64) {
	b.ReportMetric(got, unit)
	b.ReportMetric(0, "ns/op")
	if got < limit {
		b.Errorf("%.3f %s, want at least %.3f", got, unit, limit)
	}
}
