//go:build unix

package bench

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkCeiling asks for more IDs than the default layout holds, 4096 per
// millisecond, and reports how near to that it comes and what it costs in
// processor time. A round fills 500 ticks; the better quarter of the rounds
// counts, as a machine that takes the processor away for a millisecond takes a
// tick with it. The first tick is not counted: a round may begin at its end.
func BenchmarkCeiling(b *testing.B) {
	const ticks, round = 500, 500 * 4096
	for _, goroutines := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			w := together(times(goroutines, next(b, newGenerator(b)))...)
			var took, used []float64 // nanoseconds
			for b.Loop() {
				cpu, begin := cpuTime(b), time.Now()
				w(round)
				took = append(took, float64(time.Since(begin)))
				used = append(used, float64(cpuTime(b)-cpu))
			}
			slices.Sort(took)
			slices.Sort(used)
			elapsed, cpu := took[len(took)/4], used[len(used)/4]
			share, cores := 100*(ticks-1)*float64(time.Millisecond)/elapsed, cpu/elapsed
			b.ReportMetric(cpu/round, "cpu-ns/ID")
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

// cpuTime is the processor time that this process has used.
func cpuTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
