package measure

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
)

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

// Together runs do in n goroutines, with their numbers, and waits for all.
func Together(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range errs {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Closers end what was opened, the last first.
type Closers []func() error

// Add adds one.
func (c *Closers) Add(f func() error) { *c = append(*c, f) }

// Close ends all. It may be called again.
func (c *Closers) Close() (err error) {
	for i := range *c {
		err = errors.Join(err, (*c)[len(*c)-1-i]())
	}
	*c = nil
	return err
}
