package measure

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"github.com/tickflake/tickflake/bench/results"
)

// A batch is disturbed if a hypervisor took processor time during it, or if the threads of
// this process together waited for a processor for more than allowedDelay of its time. The
// time tells more than the number of involuntary context switches: on a busy machine many of
// them cost nothing, and a few cost a whole batch.
const allowedDelay = 0.10

// The rounds of a pair decide a target if at least [results.Enough] count, and a half of all.
const leastShare = 0.5

// Rule is the rule by which rounds count, for the reader of a report.
var Rule = fmt.Sprintf("A case and what it is compared with are measured one after the other in each round, and their order is swapped from round to round. "+
	"A round of such a pair counts if the hypervisor took no processor time during its two batches, and if this process waited for a processor, with all its threads together, for at most %s of the time of each. "+
	"The ratio of a pair is the median of its ratios in the rounds that count, with their quartiles. It decides a target if at least %d rounds count, and half of all.",
	results.Percent(allowedDelay), results.Enough)

// Watch begins to look for disturbances, and returns the function that ends it and reports
// whether there was one. A system that does not tell has none.
func Watch() (disturbed func() bool) {
	stolen, delay, began := stolenTime(), runDelay(), time.Now()
	return func() bool {
		took := time.Since(began)
		return stolenTime() > stolen || float64(runDelay()-delay) > allowedDelay*float64(took)
	}
}

// runDelay is how long the threads of this process have waited for a processor while they
// could run, as Linux tells it. It is 0 elsewhere.
func runDelay() (sum time.Duration) {
	files, _ := filepath.Glob("/proc/self/task/*/schedstat") // the pattern is right
	for _, name := range files {
		text, err := os.ReadFile(name)
		if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
			ns, _ := strconv.ParseInt(fields[1], 10, 64) // 0 if it is no number
			sum += time.Duration(ns)
		}
	}
	return sum
}

// WatchStolen is [Watch] for what waits for other processes: it looks for stolen time only,
// for there the kernel takes the processor away by right.
func WatchStolen() (disturbed func() bool) {
	stolen := stolenTime()
	return func() bool { return stolenTime() > stolen }
}

// Times is the time of all processors so far.
func Times() cpu.TimesStat {
	all, err := cpu.Times(false)
	if err != nil || len(all) == 0 {
		return cpu.TimesStat{}
	}
	return all[0]
}

// stolenTime is how long hypervisors have kept processors, in seconds of a processor.
func stolenTime() float64 { return Times().Steal }

// Stolen is the share of the processors' time between two readings, in percent, that a
// hypervisor gave to others.
func Stolen(before, after cpu.TimesStat) float64 {
	all := total(after) - total(before)
	if all <= 0 {
		return 0
	}
	return min(100*max(after.Steal-before.Steal, 0)/all, 100) // rounding may give more than all
}

// total is the sum of the times. The time of guests is part of the user time.
func total(t cpu.TimesStat) float64 {
	return t.User + t.Nice + t.System + t.Idle + t.Iowait + t.Irq + t.Softirq + t.Steal
}

// Pair is how a work compares with another, round by round. A round that does not count has
// the ratio NaN.
type Pair struct {
	wall, cpu []float64 // cpu is empty if the system does not tell
}

// Compare makes the pair of a work and its base. A round counts if neither was disturbed.
func Compare(subject, base Samples) Pair {
	var p Pair
	for i := range min(len(subject.Wall), len(base.Wall)) {
		counts := 1.0
		if subject.disturbed(i) || base.disturbed(i) {
			counts = math.NaN()
		}
		p.wall = append(p.wall, counts*subject.Wall[i]/base.Wall[i])
		if i < len(subject.CPU) && i < len(base.CPU) {
			p.cpu = append(p.cpu, counts*subject.CPU[i]/base.CPU[i])
		}
	}
	return p
}

func (s Samples) disturbed(round int) bool { return round < len(s.Disturbed) && s.Disturbed[round] }

// Pair compares the work with its base. It is empty if there is none.
func (s Samples) Pair() Pair {
	if s.Base == nil {
		return Pair{}
	}
	return Compare(s, *s.Base)
}

// Per divides p by another pair in each round. It compares two works, each of which was
// measured next to a base of the same kind.
func (p Pair) Per(other Pair) Pair {
	return Pair{Ratios(p.wall, other.wall), Ratios(p.cpu, other.cpu)}
}

// By returns the pair with f of each ratio.
func (p Pair) By(f func(float64) float64) Pair { return Pair{Each(p.wall, f), Each(p.cpu, f)} }

// OfCPU returns the pair whose ratios are those by processor time.
func (p Pair) OfCPU() Pair { return Pair{wall: p.cpu} }

// Ratios are those by time in the rounds that count.
func (p Pair) Ratios() []float64 { return counted(p.wall) }

// CPURatios are those by processor time in the rounds that count.
func (p Pair) CPURatios() []float64 { return counted(p.cpu) }

func counted(ratios []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(ratios), math.IsNaN)
}

// enough reports whether enough rounds count.
func (p Pair) enough() bool {
	n := len(p.Ratios())
	return n >= results.Enough && float64(n) >= leastShare*float64(len(p.wall))
}

// Cell shows the ratios, with their quartiles.
func (p Pair) Cell() results.Cell {
	ratios := p.Ratios()
	if len(p.wall) > 0 && len(ratios) == 0 {
		return results.Cell{Text: "disturbed"}
	}
	return results.Cell{Samples: ratios, Quartiles: true}
}

// Judge judges a target by the pair. It stays open if too few rounds count.
func (p Pair) Judge(t results.Target) results.Target {
	ratios := p.Ratios()
	said := fmt.Sprintf("%d of %d rounds count", len(ratios), len(p.wall))
	if len(ratios) < len(p.wall) {
		t = t.With(said)
	}
	t.Got = results.Cell{Samples: ratios, Quartiles: true}
	t = t.Judge(p.CPURatios())
	if len(p.wall) >= results.Enough && !p.enough() || len(p.wall) > 0 && len(ratios) == 0 {
		t.Open = "the machine was disturbed"
	}
	return t
}
