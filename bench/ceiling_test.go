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
// processor time. A round lasts a second; the better quarter of them counts, as
// a machine that takes the processor away for a millisecond takes a tick with it.
func BenchmarkCeiling(b *testing.B) {
	const second = 4096 * 1000
	for _, goroutines := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			w := together(times(goroutines, next(b, newGenerator(b)))...)
			var took, used []float64 // nanoseconds per ID
			for b.Loop() {
				cpu, begin := cpuTime(b), time.Now()
				w(second)
				took = append(took, float64(time.Since(begin))/second)
				used = append(used, float64(cpuTime(b)-cpu)/second)
			}
			slices.Sort(took)
			slices.Sort(used)
			perID, cpuPerID := took[len(took)/4], used[len(used)/4]
			share, cores := 100*float64(time.Second)/second/perID, cpuPerID/perID
			b.ReportMetric(cpuPerID, "cpu-ns/ID")
			b.ReportMetric(cores, "cores")
			b.ReportMetric(share, "%ceiling")
			b.ReportMetric(0, "ns/op")
			if b.N < 3 {
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
