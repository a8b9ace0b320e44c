//go:build linux

package guest

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// nap is how long a thread of a control sleeps, and how late it may wake without a note.
const nap = 5 * time.Millisecond

// control knows when its process stood still: when a sleep took longer than asked, by CLOCK_MONOTONIC, on
// a thread of its own on each processor. Where goroutines wait for a turn, as subjects do on a busy host, its
// threads wait in the same queue.
type control struct {
	mu      sync.Mutex
	threads []napper // by processor
}

// napper is a thread. It sleeps since an instant.
type napper struct {
	since time.Time
	stood []stretch // in their order
}

// stretch is a time when a thread stood still.
type stretch struct{ from, to time.Time }

// startControl starts threads that end with the process.
func startControl() *control {
	c := &control{threads: slices.Repeat([]napper{{since: time.Now()}}, runtime.NumCPU())}
	for i := range c.threads {
		go func() {
			runtime.LockOSThread() // and never unlocked: its processor is its own
			var set unix.CPUSet
			set.Set(i)
			_ = unix.SchedSetaffinity(0, &set) // on a machine with fewer processors, any
			for {
				ts := unix.NsecToTimespec(int64(nap))
				_ = unix.Nanosleep(&ts, nil)
				c.wakes(&c.threads[i], time.Now())
			}
		}()
	}
	return c
}

// wakes notes that a thread has slept, and sleeps again.
func (c *control) wakes(n *napper, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if due := n.since.Add(nap); now.Sub(due) > nap {
		n.stood = append(n.stood, stretch{due, now})
	}
	n.since = now
}

// stood is how long the process has stood still between two instants, by the thread that did so longest.
func (c *control) stood(from, to time.Time) (longest time.Duration) {
	if to.Sub(from) <= nap {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.threads {
		var sum time.Duration
		add := func(s stretch) {
			begin, end := max(s.from.Sub(from), 0), min(s.to.Sub(from), to.Sub(from))
			sum += max(0, end-begin)
		}
		add(stretch{n.since.Add(nap), to}) // it may be late now
		for _, s := range slices.Backward(n.stood) {
			if s.to.Before(from) {
				break
			}
			add(s)
		}
		longest = max(longest, sum)
	}
	return longest
}
