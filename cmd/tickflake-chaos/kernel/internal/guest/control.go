//go:build linux

package guest

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// control measures how long the machine itself stands still: how much longer than asked
// a sleep took, by CLOCK_MONOTONIC, on a thread of its own on each processor.
type control struct {
	ended   atomic.Bool
	threads sync.WaitGroup
	worst   []time.Duration // by processor
}

func startControl() *control {
	c := &control{worst: make([]time.Duration, runtime.NumCPU())}
	for i := range c.worst {
		c.threads.Go(func() {
			runtime.LockOSThread() // and never unlocked: its processor is its own, so the thread ends
			var set unix.CPUSet
			set.Set(i)
			_ = unix.SchedSetaffinity(0, &set) // on a machine with fewer processors, any
			for !c.ended.Load() {
				begin := read(unix.CLOCK_MONOTONIC)
				ts := unix.NsecToTimespec(int64(time.Millisecond))
				_ = unix.Nanosleep(&ts, nil)
				c.worst[i] = max(c.worst[i], read(unix.CLOCK_MONOTONIC)-begin-time.Millisecond)
			}
		})
	}
	return c
}

func (c *control) stop() time.Duration {
	c.ended.Store(true)
	c.threads.Wait()
	return slices.Max(c.worst)
}
