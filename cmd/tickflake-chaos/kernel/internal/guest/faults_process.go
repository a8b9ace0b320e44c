//go:build linux

package guest

import (
	"cmp"
	"slices"
	"syscall"
	"time"
)

// List returns all faults of the report, in its order. Each group stands in a file of its own.
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

// stopped stops all processes. Those that share their state get a second one meanwhile,
// which takes over if it can.
func stopped(s *Stage) {
	s.Issue(before)
	s.Mark()
	s.Signal(syscall.SIGSTOP)
	s.Beside()
	s.Issue(stopFor)
	s.Signal(syscall.SIGCONT)
	s.Issue(after)
}
