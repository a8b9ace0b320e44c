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
