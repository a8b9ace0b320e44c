//go:build linux

package guest

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// watch is a thread of its own that sleeps for a millisecond again and again.
type watch struct {
	quit  chan struct{}
	done  chan struct{}
	worst time.Duration
}

func startWatch(processor int, tick func() time.Duration) *watch {
	w := &watch{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		runtime.LockOSThread() // and never unlocked: its processor is its own, so the thread ends
		if processor >= 0 {
			var set unix.CPUSet
			set.Set(processor)
			_ = unix.SchedSetaffinity(0, &set) // on a machine with fewer processors, any
		}
		for {
			select {
			case <-w.quit:
				return
			default:
				w.worst = max(w.worst, tick())
			}
		}
	}()
	return w
}

func (w *watch) stop() time.Duration {
	close(w.quit)
	<-w.done
	return w.worst
}

func pause() {
	ts := unix.NsecToTimespec(int64(time.Millisecond))
	_ = unix.Nanosleep(&ts, nil)
}

// control measures how long the machine itself stands still: how much longer than asked
// a sleep took, by CLOCK_MONOTONIC, on each processor.
type control struct{ all []*watch }

func startControl() *control {
	c := &control{}
	for i := range runtime.NumCPU() {
		c.all = append(c.all, startWatch(i, func() time.Duration {
			t := read(unix.CLOCK_MONOTONIC)
			pause()
			return read(unix.CLOCK_MONOTONIC) - t - time.Millisecond
		}))
	}
	return c
}

func (c *control) stop() time.Duration {
	var worst time.Duration
	for _, w := range c.all {
		worst = max(worst, w.stop())
	}
	return worst
}
