//go:build linux

package guest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Reading is one reading of all clocks.
type Reading struct {
	Host, Realtime, Monotonic, Boottime time.Duration
}

func read(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(fmt.Sprintf("read clock %d: %v", clock, err)) // each kernel has these clocks
	}
	return time.Duration(t.Nano())
}

// readClocks reads the clocks of the kernel. Two readings of CLOCK_MONOTONIC enclose that
// of CLOCK_REALTIME: the emulation may stop a thread between any two, and this must not
// look like a step.
func readClocks() Reading {
	const enough, tries = 30 * time.Microsecond, 8
	best, least := Reading{}, time.Duration(-1)
	for range tries {
		before := read(unix.CLOCK_MONOTONIC)
		now := Reading{Realtime: read(unix.CLOCK_REALTIME)}
		gap := read(unix.CLOCK_MONOTONIC) - before
		now.Monotonic = before + gap/2
		now.Boottime = read(unix.CLOCK_BOOTTIME)
		if least < 0 || gap < least {
			best, least = now, gap
		}
		if gap < enough {
			break
		}
	}
	return best
}

// clocks reads the clocks of the kernel and that of the host, which are a few
// milliseconds apart.
func (s *Stage) clocks() Reading {
	host := s.hostTime()
	r := readClocks()
	r.Host = host
	return r
}

const sourceFile = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

// bootSource is the clock source of the kernel after its boot.
var bootSource = sync.OnceValue(source)

// source is the clock source. The kernel calls the tsc tsc-early until it has measured it, about
// a second after its start.
func source() string { return strings.TrimSuffix(readLine(sourceFile), "-early") }

// setSource changes the hardware that the clocks of the kernel count. The kernel ignores
// a name that it does not know, so this reads it back.
func setSource(name string) error {
	if err := os.WriteFile(sourceFile, []byte(name), 0); err != nil {
		return fmt.Errorf("change the clock source to %s: %w", name, err)
	}
	if now := source(); now != name {
		return fmt.Errorf("change the clock source to %s: it still is %s; the kernel has %s", name, now,
			readLine("/sys/devices/system/clocksource/clocksource0/available_clocksource"))
	}
	return nil
}

// setTime sets CLOCK_REALTIME, as a time client does that steps.
func setTime(t time.Duration) error {
	tv := unix.NsecToTimeval(int64(t))
	if err := unix.Settimeofday(&tv); err != nil {
		return fmt.Errorf("set CLOCK_REALTIME to %v: %w", time.Unix(0, int64(t)).UTC(), err)
	}
	return nil
}

// Step steps CLOCK_REALTIME by d.
func (s *Stage) Step(d time.Duration) { s.must(setTime(read(unix.CLOCK_REALTIME) + d)) }

// What a kernel has after its boot.
const (
	bootTick = 10000 // microseconds in 1/100 s
	bootTAI  = 0     // seconds
)

func adjust(what string, t unix.Timex) error {
	if _, err := unix.Adjtimex(&t); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// setFrequency makes the clocks run faster by so many parts per million, at most 500 up
// or down, as a time client does that slews.
func setFrequency(ppm int64) error {
	t := unix.Timex{Modes: unix.ADJ_FREQUENCY}
	long(&t.Freq, ppm<<16)
	return adjust("set the frequency of the clock", t)
}

// setTick sets how many microseconds the clocks advance in 1/100 s: 9000 to 11000.
func setTick(micros int64) error {
	t := unix.Timex{Modes: unix.ADJ_TICK}
	long(&t.Tick, micros)
	return adjust("set the tick of the clock", t)
}

// long sets a field that is a long of C: it compiles on 32 bits too.
func long[T int32 | int64](field *T, value int64) { *field = T(value) }

// setLeap announces a leap second at the next midnight of UTC: unix.STA_INS or
// unix.STA_DEL. The kernel looks for it once in a second, so it must come seconds before.
func setLeap(status int32) error {
	return adjust("announce a leap second", unix.Timex{Modes: unix.ADJ_STATUS, Status: status | unix.STA_UNSYNC})
}

// reset undoes what a fault may have done to the clocks: rate, leap second, source, time.
func (s *Stage) reset(now Reading) error {
	// To leave the phase-locked loop ends a leap second at once. Without it the kernel
	// takes up to two seconds, and ignores another one meanwhile.
	for _, t := range []unix.Timex{
		{Modes: unix.ADJ_STATUS | unix.ADJ_OFFSET, Status: unix.STA_PLL},
		{Modes: unix.ADJ_STATUS | unix.ADJ_FREQUENCY | unix.ADJ_TICK, Status: unix.STA_UNSYNC, Tick: bootTick},
		{Modes: unix.ADJ_TAI, Constant: bootTAI},
	} {
		if err := adjust("reset the clock", t); err != nil {
			return err
		}
	}
	if boot := bootSource(); boot != "" && source() != boot {
		if err := setSource(boot); err != nil {
			return err
		}
	}
	return setTime(now.Host)
}

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
