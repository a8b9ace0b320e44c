//go:build linux

package guest

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
)

// List returns all faults of the report, in its order. Each group has a function of its own.
func List() []Fault {
	none := Fault{Name: "none", About: "nothing happens: the bench itself", Kind: Clocks, Window: clockWindow, Timeout: clockTimeout, Calm: true, Run: func(s *Stage) { s.Issue(time.Second) }}
	return slices.Concat([]Fault{none}, clockFaults(), execFaults(), processFaults(), copyFaults(), diskFaults(), nfsFaults(), powerCutFaults())
}

func processFaults() []Fault {
	return []Fault{
		{Name: "sigkill", About: "SIGKILL at random instants and start, many times", Kind: Processes, Restarts: true, Limit: 10 * time.Minute, Run: kills},
		{Name: "sigstop", About: "SIGSTOP for longer than a window, then SIGCONT", Kind: Processes, Run: stopped},
	}
}

// kills kills processes at random instants: after they have issued for a while, and soon
// after they began to make their generators.
func kills(s *Stage) {
	s.Mark()
	issue := func(limit time.Duration) { s.Issue(time.Duration(s.Rand.Int64N(int64(limit)))) }
	for n := cmp.Or(s.Kills, 100); n > 0; n-- {
		if n%2 == 1 {
			issue(30 * time.Millisecond)
			s.kill()
			s.must(s.prepare())
			s.start()
			continue
		}
		s.must(s.prepare())
		issue(100 * time.Millisecond)
		s.Restart(nil)
	}
	s.goOn(after)
}

// The stop is longer than the default window of a lease in a directory, which is 3 s.
const stopFor = 3500 * time.Millisecond

// stopped stops all processes, which is no stall of a subject. Those that share their state get a second
// one meanwhile, which takes over if it can.
func stopped(s *Stage) {
	s.Issue(before)
	s.Mark()
	from := s.now()
	s.signal(syscall.SIGSTOP)
	s.Beside()
	s.Issue(stopFor)
	to, number := s.now(), s.number()
	s.each(func(l *record, _ time.Duration) { l.check.Stopped(from, to, number) })
	s.signal(syscall.SIGCONT)
	s.Issue(after)
}

// ExecWindow is the grant of lease exec in its fault, and execStep goes past its end.
const (
	ExecWindow = 2 * time.Second
	execStep   = 4 * time.Second
)

// execFaults are for a program that lease exec runs: the steps end it, and the next one begins above the times to which the
// clock comes back.
func execFaults() []Fault {
	return []Fault{{
		Name: "step-ahead-back-4s", About: "CLOCK_REALTIME steps ahead 4 s, past the end of a grant of 2 s, and back half a second later, three times",
		Kind: Clocks, Window: ExecWindow, Run: func(s *Stage) {
			s.Issue(before)
			s.Mark()
			for range 3 {
				s.Step(execStep)
				s.Issue(500 * time.Millisecond)
				s.Step(-execStep)
				s.Issue(execStep + 2*ExecWindow) // until the next one has begun
			}
			s.goOn(after)
		},
	}}
}

// Bounds of the faults that stop or copy the machine.
const (
	suspended = 5 * time.Second
	stopTime  = 10 * time.Second
	// copyWindow is the length of a lease's grant, so short that its end is seen.
	copyWindow = 3 * time.Second
	// aside is how long an original and its copy issue beside each other: more than a
	// window, so that all that can come twice does, and than the copy takes to find that its
	// connections to the store are dead, about 4 s on a busy host.
	aside = copyWindow + 5*time.Second
	// revived is how long a copy may take to find that its connections are dead, and to claim, on a busy host.
	revived = time.Minute
)

// copies is how often a machine with VMClock is copied, unless the run says otherwise.
const copies = 6

func copyFaults() []Fault {
	all := []Fault{
		{
			Name: "suspend-5s", Kind: Copies, About: "the machine is suspended to RAM for 5 s", Right: true,
			Run: suspend,
		},
		{
			Name: "pause-10s", Kind: Copies, About: "the host stops the machine's processors for 10 s",
			Run: func(s *Stage) {
				s.Issue(time.Second)
				s.Mark()
				s.Ask(fmt.Sprint("pause ", stopTime))
				s.Issue(2 * time.Second)
			},
		},
	}
	for _, store := range []struct {
		name, about string
		shared      bool
	}{{"shared", "the store is a server on the host", true}, {"cloned", "the stores are on its disk, which is copied too", false}} {
		for _, call := range []struct {
			name, about string
			told        bool
		}{{"", "no process calls Restored", false}, {"-told", "the copy calls Restored before its next ID", true}} {
			all = append(all, Fault{
				Name: "copy-" + store.name + call.name, Kind: Copies,
				About: "a snapshot of the machine is restored beside its original: " + store.about + ", and " + call.about,
				Limit: 2 * DefaultLimit, Window: copyWindow, Network: true, Shared: store.shared, Told: call.told,
				Run: func(s *Stage) { twins(s, call.told) },
			})
		}
		all = append(all, Fault{
			Name: "copy-" + store.name + "-vmclock", Kind: Copies,
			About: "snapshots of a machine with the device VMClock, amid calls, are restored beside their original and in its place: " + store.about,
			Limit: 4 * DefaultLimit, Window: copyWindow, Network: true, Shared: store.shared, VMClock: true, Modules: []string{"ptp_vmclock"}, Run: often,
		})
	}
	return all
}

// often goes on in many machines, one after the other, amid calls. A copy keeps only IDs that were returned
// after the snapshot: subjects tell the marker that the device had then.
func often(s *Stage) {
	s.Issue(time.Second)
	s.each(func(l *record, _ time.Duration) { l.keep = true })
	s.Mark()
	for i := range cmp.Or(s.Kills, copies) {
		s.Issue(time.Duration(s.Rand.Int64N(int64(200 * time.Millisecond))))
		before := subject.Marker()
		if s.Ask([]string{Copy, Rollback}[i%2]) == Copied {
			s.each(func(l *record, _ time.Duration) { l.ids, l.before = nil, before })
			s.await(revived, false, func(l *record) bool { return len(l.ids) > 0 })
			break
		}
	}
	s.Issue(time.Second)
}

// twins goes on in two machines.
func twins(s *Stage, told bool) {
	s.Issue(time.Second)
	s.Hold()
	s.each(func(l *record, _ time.Duration) { l.keep = true })
	which := s.Ask(Copy)
	s.Mark()
	s.Release(told && which == Copied)
	s.Issue(aside)
}

// suspend suspends the machine to RAM. The host wakes it: an alarm of the hardware clock
// may come before a slow machine sleeps, and would be lost.
func suspend(s *Stage) {
	s.Issue(time.Second)
	if err := os.WriteFile("/sys/power/mem_sleep", []byte("deep"), 0); err != nil {
		s.must(fmt.Errorf("prepare to suspend: %w", err))
	}
	s.Mark()
	s.Ask(fmt.Sprint("wake ", suspended))
	if err := os.WriteFile("/sys/power/state", []byte("mem"), 0); err != nil {
		s.must(fmt.Errorf("suspend to RAM: %w", err))
	}
	s.settle()
}
