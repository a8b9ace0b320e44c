//go:build linux

package guest

import (
	"cmp"
	"errors"
	"syscall"
	"time"
)

func processFaults() []Fault {
	return []Fault{
		{Name: "sigkill", About: "SIGKILL at random instants and start, many times", Kind: "process", Restarts: true, Limit: 10 * time.Minute, Run: kills},
		{Name: "sigstop", About: "SIGSTOP for longer than a window, then SIGCONT", Kind: "process", Run: stopped},
	}
}

// kills kills processes at random instants: after they have issued for a while, and soon
// after they began to make their generators.
func kills(s *Stage) error {
	s.Mark()
	for n := cmp.Or(s.Kills, 100); n > 0; n -= 2 {
		if err := s.killTwice(n > 1); err != nil {
			return err
		}
	}
	return s.Issue(after)
}

func (s *Stage) killTwice(twice bool) error {
	issue := func(limit time.Duration) error { return s.Issue(time.Duration(s.Rand.Int64N(int64(limit)))) }
	if err := errors.Join(s.Prepare(), issue(100*time.Millisecond), s.Restart(nil)); err != nil || !twice {
		return err
	}
	err := issue(30 * time.Millisecond)
	s.Kill()
	if err = errors.Join(err, s.Prepare()); err != nil {
		return err
	}
	s.Start()
	return nil
}

// The stop is longer than the default window of a lease in a directory, which is 3 s.
const stopFor = 3500 * time.Millisecond

// stopped stops all processes. Those that share their state get a second one meanwhile,
// which takes over if it can.
func stopped(s *Stage) error {
	if err := s.Issue(before); err != nil {
		return err
	}
	s.Mark()
	s.Signal(syscall.SIGSTOP)
	err := s.Beside()
	if err == nil {
		err = s.Issue(stopFor)
	}
	s.Signal(syscall.SIGCONT)
	if err != nil {
		return err
	}
	return s.Issue(after)
}
