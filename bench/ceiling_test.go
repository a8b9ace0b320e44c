//go:build unix

package bench

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
)

// BenchmarkCeiling asks for more IDs than the default layout holds, 4096 per
// millisecond, and reports how near to that it comes and what it costs in
// processor time. Run it for a second or more: -benchtime 2s.
func BenchmarkCeiling(b *testing.B) {
	for _, goroutines := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			w := together(times(goroutines, next(b, newGenerator(b)))...)
			n := max(b.N, goroutines)
			n -= n % goroutines
			cpu, begin := cpuTime(b), time.Now()
			w(n)
			elapsed, used := time.Since(begin), cpuTime(b)-cpu
			share := 100 * float64(n) / (elapsed.Seconds() * generator.DefaultLayout().Capacity().IDsPerSecond)
			cores := used.Seconds() / elapsed.Seconds()
			b.ReportMetric(share, "%ceiling")
			b.ReportMetric(cores, "cores")
			b.ReportMetric(float64(used)/float64(n), "cpu-ns/ID")
			if elapsed < time.Second/2 {
				return // too short to judge
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
