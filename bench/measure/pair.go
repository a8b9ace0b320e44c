package measure

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"github.com/tickflake/tickflake/bench/report"
)

// watch begins to look for disturbances, and returns the function that ends it and reports
// whether there was one: a hypervisor took processor time, or, unless other processes serve, the
// threads of this process waited too long for a processor. The time tells more than the number
// of involuntary context switches: on a busy machine many of them cost nothing, and a few cost a
// whole batch. A system that does not tell has no disturbances.
func watch(served bool) (disturbed func() bool) {
	stolen, delay, began := Times().Steal, runDelay(), time.Now()
	return func() bool {
		took := time.Since(began)
		return Times().Steal > stolen || !served && float64(runDelay()-delay) > report.AllowedDelay*float64(took)
	}
}

// runDelay is how long the threads of this process have waited for a processor while they
// could run, as Linux tells it. It is 0 elsewhere.
func runDelay() time.Duration {
	delay, _ := threads("self", 1) // or 0
	return delay
}

// CPUOf returns the processor time that the threads of a process have used, as Linux tells it.
func CPUOf(pid int) (time.Duration, error) { return threads(strconv.Itoa(pid), 0) }

// threads sums a field of the threads' statistics of the scheduler.
func threads(pid string, field int) (sum time.Duration, err error) {
	files, _ := filepath.Glob("/proc/" + pid + "/task/*/schedstat") // the pattern is right
	if len(files) == 0 {
		return 0, errors.New("the system does not tell the times of threads")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if fields := strings.Fields(string(text)); err == nil && len(fields) > field { // a thread may have ended
			ns, _ := strconv.ParseInt(fields[field], 10, 64) // 0 if it is no number
			sum += time.Duration(ns)
		}
	}
	return sum, nil
}

// CPUTime is the processor time that this process has used.
func CPUTime() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}

// Times is the time of all processors so far.
func Times() cpu.TimesStat {
	all, err := cpu.Times(false)
	if err != nil || len(all) == 0 {
		return cpu.TimesStat{}
	}
	return all[0]
}

// Stolen is the share of the processors' time between two readings, in percent, that a
// hypervisor gave to others.
func Stolen(before, after cpu.TimesStat) float64 {
	total := func(t cpu.TimesStat) float64 { // the time of guests is part of the user time
		return t.User + t.Nice + t.System + t.Idle + t.Iowait + t.Irq + t.Softirq + t.Steal
	}
	if total(after) <= total(before) {
		return 0
	}
	return min(100*max(after.Steal-before.Steal, 0)/(total(after)-total(before)), 100) // rounding may give more than all
}

// Pair is how a load compares with another, round by round, as [report.Rule] says: the ratios of one
// of their figures. That of a round that does not count is NaN.
type Pair []float64

// Pair compares a figure of the load with that of its base. It is empty if there is none. A
// round counts if neither was disturbed.
func (l *Load) Pair(figure string) (p Pair) {
	if l.Base == nil {
		return nil
	}
	for i := range min(len(l.Figures[figure]), len(l.Base.Figures[figure])) {
		ratio := l.Figures[figure][i] / l.Base.Figures[figure][i]
		if l.Disturbed[i] || l.Base.Disturbed[i] {
			ratio = math.NaN()
		}
		p = append(p, ratio)
	}
	return p
}

// Per divides p by another pair in each round. It compares two loads, each of which was
// measured next to a base of the same kind.
func (p Pair) Per(other Pair) Pair {
	out := slices.Clone(p[:min(len(p), len(other))])
	for i := range out {
		out[i] /= other[i]
	}
	return out
}

// By returns the pair with f of each ratio.
func (p Pair) By(f func(float64) float64) Pair { return each(p, f) }

// Rates returns the pair of the rates in place of the times.
func (p Pair) Rates() Pair { return p.By(func(x float64) float64 { return 1 / x }) }

// Cell shows the ratios in the rounds that count.
func (p Pair) Cell() report.Cell {
	ratios := slices.DeleteFunc(slices.Clone(p), math.IsNaN)
	if len(p) > 0 && len(ratios) == 0 {
		return report.Cell{Text: "disturbed"}
	}
	return report.Cell{Samples: ratios}
}

// Judge judges a target by the pair. It stays open if too few rounds count.
func (p Pair) Judge(t report.Target) report.Target {
	t.Got.Samples = p.Cell().Samples
	n := len(t.Got.Samples)
	if n < len(p) {
		t.Beside = fmt.Sprintf("%d of %d rounds count", n, len(p))
	}
	t = t.Judge()
	enough := n >= report.Enough && 2*n >= len(p)
	if len(p) >= report.Enough && !enough || len(p) > 0 && n == 0 {
		t.Open = "the machine was disturbed"
	}
	return t
}
