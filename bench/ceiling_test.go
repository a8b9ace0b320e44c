package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/snowflake"
)

// BenchmarkCeiling asks for more IDs than the default layout holds, 4096 per
// millisecond, and reports how near to that it comes and what it costs in
// processor time. A round fills 500 ticks, once the one that it finds is used up; the
// better quarter of the rounds counts, as a machine that takes the processor away for a
// millisecond takes a tick with it.
func BenchmarkCeiling(b *testing.B) {
	if _, told := measure.CPUTime(); !told {
		b.Skip("this system does not tell the processor time of a process")
	}
	c := cases.Next("ceiling", snowflake.Default())
	const ticks = 500
	round := ticks * c.Limit.IDs
	for _, goroutines := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			l := loop(b, c, goroutines)
			var took, used []float64 // nanoseconds
			for b.Loop() {
				require.NoError(b, l(c.Limit.LeadIn(goroutines)))
				before, _ := measure.CPUTime()
				begin := time.Now()
				require.NoError(b, l(round))
				took = append(took, float64(time.Since(begin)))
				after, _ := measure.CPUTime()
				used = append(used, float64(after-before))
			}
			slices.Sort(took)
			slices.Sort(used)
			elapsed, cpu := took[len(took)/4], used[len(used)/4]
			share, cores := 100*ticks*float64(c.Limit.Per)/elapsed, cpu/elapsed
			b.ReportMetric(cpu/float64(round), "cpu-ns/ID")
			b.ReportMetric(cores, "cores")
			b.ReportMetric(share, "%ceiling")
			b.ReportMetric(0, "ns/op")
			if b.N < 5 {
				return // too few rounds to tell
			}
			if share < 99.5 {
				b.Errorf("%.2f%% of the ceiling, want at least 99.5%%", share)
			}
			if cores > 0.35 {
				b.Errorf("%.3f cores, want at most 0.35", cores)
			}
		})
	}
}
