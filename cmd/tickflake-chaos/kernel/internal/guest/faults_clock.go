//go:build linux

package guest

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

const (
	hour = time.Hour
	year = 365 * 24 * time.Hour

	// before is how long the subjects issue before a step. It is longer than the step of
	// a second, so that the clock goes through ticks again in which IDs were issued.
	before = 1200 * time.Millisecond
	// after is how long they issue after it: longer than the step of a second too, and
	// than the limits of the strategies, so that a call that waits is seen to end.
	after = 1600 * time.Millisecond
	// clockWindow is the grant of a lease while the clock changes: the default with a server. A keeper on a busy host
	// may get no processor for as long as 6 s, two thirds of 9 s.
	clockWindow = 30 * time.Second
	// clockTimeout is how long a sequence waits for that disk.
	clockTimeout = 20 * time.Second
)

func clockFaults() []Fault {
	all := []Fault{
		{Name: "step-back-1ms", About: "CLOCK_REALTIME steps back 1 ms, at random instants for 2 s", Run: stepsBack(time.Millisecond)},
		{Name: "step-back-1s", About: "CLOCK_REALTIME steps back 1 s", Run: steps(-time.Second)},
		{Name: "step-back-1h", About: "CLOCK_REALTIME steps back 1 h", Behind: true, Run: steps(-hour)},
		{Name: "step-back-1y", About: "CLOCK_REALTIME steps back 365 days", Behind: true, Run: steps(-year)},
		{Name: "step-ahead-back-1h", About: "CLOCK_REALTIME steps ahead 1 h, and back 1 h", Behind: true, Run: steps(hour, -hour)},
		{Name: "restart-back-1ms", About: "SIGKILL, CLOCK_REALTIME steps back 1 ms, start", Restarts: true, Run: restarts(-time.Millisecond)},
		{Name: "restart-back-1s", About: "SIGKILL, CLOCK_REALTIME steps back 1 s, start", Restarts: true, Run: restarts(-time.Second)},
		{Name: "restart-back-1h", About: "SIGKILL, CLOCK_REALTIME steps back 1 h, start", Restarts: true, Run: restarts(-hour)},
		{Name: "restart-back-1y", About: "SIGKILL, CLOCK_REALTIME steps back 365 days, start", Restarts: true, Run: restarts(-year)},
		{Name: "restart-ahead-back-1h", About: "CLOCK_REALTIME steps ahead 1 h; SIGKILL, it steps back 1 h, start", Restarts: true, Run: func(s *Stage) {
			s.Step(hour)
			restarts(-hour)(s)
		}},
		{Name: "slews", About: "adjtimex makes the clocks 500 ppm faster, and slower; then their tick 10 % longer, and shorter", Calm: true, Run: slew},
		{Name: "leap-insert", About: "a leap second is inserted (STA_INS)", Before: startBeforeMidnight, Run: leap(unix.STA_INS)},
		{Name: "leap-delete", About: "a leap second is deleted (STA_DEL)", Before: startBeforeMidnight, Run: leap(unix.STA_DEL)},
		{Name: "clock-source", About: "the clock source changes from tsc to hpet, to acpi_pm and back", Calm: true, Run: changeSource},
		{Name: "steps-minute", About: "CLOCK_REALTIME steps every 10 ms for a minute, by random sizes up to 1 ms at its begin and 1 h at its end", Behind: true, Limit: 2 * time.Minute, Run: stepsMinute},
		{Name: "boot-1970", About: "the machine boots at 1970 without a clock, which is corrected a second later", NoRTC: true, Own: true, Run: boot1970},
		{Name: "late", About: "the subjects start with last month's clock, which is set a second later", Before: lastMonth, Causes: []string{setAhead}, Run: func(s *Stage) {
			setRight(s)
			s.await(overLimit, false, warned)
		}},
		{Name: "late-wait", About: "the same, and a lease waits until the clock was set", Before: lastMonth, Wait: true, Right: true, Run: setRight},
	}
	for i := range all {
		all[i].Kind, all[i].Window, all[i].Timeout = Clocks, clockWindow, clockTimeout
	}
	return all
}

// steps makes steps while the subjects issue, the first in the middle of a second: after a step back by one, the
// clock is in the second before, and then in the same one again, each time for as long as a slow host needs to issue.
func steps(sizes ...time.Duration) func(*Stage) {
	return func(s *Stage) {
		s.Issue(before)
		for into := time.Duration(0); into < 400*time.Millisecond || into > 600*time.Millisecond; into = read(unix.CLOCK_REALTIME) % time.Second {
			s.Issue(10 * time.Millisecond)
		}
		s.Mark()
		for _, d := range sizes {
			s.Step(d)
			s.Issue(after)
		}
	}
}

// stepsBack makes small steps back for some seconds, at random instants: a single one
// falls between two bursts of most subjects, and is over before the next.
func stepsBack(size time.Duration) func(*Stage) {
	return func(s *Stage) {
		s.Issue(before / 4)
		s.Mark()
		for end := s.now() + 2*time.Second; s.now() < end; {
			s.Step(-size)
			s.Issue(time.Duration(s.Rand.Int64N(int64(20 * time.Millisecond))))
		}
	}
}

// restarts makes a step between SIGKILL and start. It is counted from the clock at the
// kill: the new processes are ready to read the clock, so they begin about where the step
// leads.
func restarts(size time.Duration) func(*Stage) {
	return func(s *Stage) {
		s.Issue(before)
		s.must(s.prepare())
		killed := read(unix.CLOCK_REALTIME)
		s.Restart(func() error {
			s.Mark() // all that the killed processes had printed was read
			return setTime(killed + size)
		})
		s.goOn(after)
	}
}

// slew lets the subjects issue while the clocks run at other rates: up to the limit of ntpd, and that of the kernel.
func slew(s *Stage) {
	s.Mark()
	for _, ppm := range []int64{500, -500} {
		s.must(setFrequency(ppm))
		s.Issue(700 * time.Millisecond)
	}
	s.must(setFrequency(0))
	for _, percent := range []int64{110, 90} {
		s.must(setTick(bootTick * percent / 100))
		s.Issue(700 * time.Millisecond)
	}
}

const (
	day = 24 * time.Hour
	// startsBefore midnight the subjects start, and announcesBefore it the kernel hears of
	// the leap second: it looks once in a second, and deletes 23:59:59 if it knew at 23:59:58.
	startsBefore    = 20 * time.Second
	announcesBefore = 3500 * time.Millisecond
)

// beforeMidnight sets the clock to d before the next midnight of UTC.
func beforeMidnight(d time.Duration) error {
	now := read(unix.CLOCK_REALTIME)
	return setTime((now + d).Truncate(day) + day - d)
}

func startBeforeMidnight() error { return beforeMidnight(startsBefore) }

// leap lets the subjects issue during a leap second. The step ahead before it is one of
// some seconds, and is not measured.
func leap(status int32) func(*Stage) {
	return func(s *Stage) {
		s.must(beforeMidnight(announcesBefore))
		s.first = s.clocks() // the step ahead is not measured
		s.must(setLeap(status))
		s.Issue(announcesBefore)
		s.Mark()
		s.Issue(after)
		now := readClocks()
		step := (now.Realtime - s.first.Realtime) - (now.Monotonic - s.first.Monotonic)
		if (step.Abs() - time.Second).Abs() > time.Millisecond {
			s.must(fmt.Errorf("a leap second was announced, and CLOCK_REALTIME moved by %v against CLOCK_MONOTONIC", step))
		}
	}
}

// changeSource changes the clock source under load. The stage sets it back.
func changeSource(s *Stage) {
	first := readLine(sourceFile)
	s.Mark()
	for _, name := range []string{"hpet", "acpi_pm", first} {
		s.must(setSource(name))
		s.Issue(time.Second)
	}
}

// stepsMinute sets the clock right and wrong again and again, so that it comes back to
// the same ticks. The sizes are spread evenly over the orders of magnitude, up to a limit
// that grows from a millisecond to an hour: after a step ahead by an hour, a generator on
// the wall clock does nothing any more.
func stepsMinute(s *Stage) {
	const (
		length, interval           = time.Minute, 10 * time.Millisecond
		smallest, limitThen, limit = 100 * time.Microsecond, time.Millisecond, hour
	)
	s.Issue(before / 4)
	s.Mark()
	right := read(unix.CLOCK_REALTIME) - read(unix.CLOCK_BOOTTIME)
	for begin := s.now(); s.now()-begin < length; {
		largest := float64(limitThen) * math.Pow(float64(limit)/float64(limitThen), float64(s.now()-begin)/float64(length))
		size := float64(smallest) * math.Pow(largest/float64(smallest), s.Rand.Float64())
		if s.Rand.IntN(2) == 0 {
			size = -size
		}
		s.must(setTime(right + read(unix.CLOCK_BOOTTIME) + time.Duration(size)))
		s.Issue(interval)
	}
}

// setAhead is in the log of a keeper whose clock began behind.
const setAhead = "lease: the wall clock was set ahead"

// lastMonth is the clock of a machine without a battery, which begins where it was last written down. The kernel
// then says that it may be off by 16 s or more, as after each boot.
func lastMonth() error { return setTime(read(unix.CLOCK_REALTIME) - 30*day) }

// setRight does what a time client does once it knows the time, and lets all issue after it.
func setRight(s *Stage) {
	s.Issue(time.Second)
	right := s.hostTime()
	s.Mark()
	s.must(setTime(right))
	s.must(adjust("tell that the clock is right", unix.Timex{Modes: unix.ADJ_MAXERROR, Maxerror: 5000}))
	// After a fault that ends all processes, they start beside each other on a busy host.
	s.await(startLimit, false, recovers)
	s.settle()
}

// boot1970 runs in a machine that had no clock to boot with.
func boot1970(s *Stage) {
	if now := time.Now(); now.Year() > 1970 {
		s.must(fmt.Errorf("the machine booted at %v, want 1970", now))
	}
	setRight(s)
}
