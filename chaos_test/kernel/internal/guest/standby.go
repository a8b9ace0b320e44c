//go:build linux

package guest

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// Prepare starts the process of each subject that the next Start runs, and waits until all
// are about to make their generator. A start takes up to some seconds under emulation: a
// step of the clock by a second would be over before the generator reads the clock. A
// program of a user is not prepared.
func (s *Stage) Prepare() error { return prepare(s.runners) }

func prepare(runners []*runner) error {
	var idle []*runner
	for _, r := range runners {
		if r.name != Program && r.next == nil {
			idle = append(idle, r)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	all, err := spawn(idle, true)
	if err != nil {
		return fmt.Errorf("start the subjects: %w", err)
	}
	for i, c := range all {
		_ = c.out.SetReadDeadline(time.Now().Add(startLimit))
		if _, err := io.ReadFull(c.out, make([]byte, len(subject.Held+"\n"))); err != nil {
			for _, c := range all {
				c.end()
			}
			return fmt.Errorf("start %s: it does not wait for a command: %w", idle[i].name, err)
		}
		_ = c.out.SetReadDeadline(time.Time{})
	}
	for i, c := range all {
		idle[i].next = c
	}
	return nil
}

// Beside starts a second process of each subject that can share its state, beside the
// first. It runs until the end of the fault. Signals, Kill and Start are for the first.
func (s *Stage) Beside() error {
	for _, r := range s.runners {
		if sub, ok := subject.Find(r.name); ok && sub.Shares {
			s.second = append(s.second, &runner{stage: s, name: r.name, dir: r.dir, argv: r.argv, store: r.store, ledger: r.ledger})
		}
	}
	if err := prepare(s.second); err != nil {
		return err
	}
	for _, r := range s.second {
		r.start()
	}
	return nil
}

// stop ends all processes.
func (s *Stage) stop() {
	all := slices.Concat(s.runners, s.second)
	kill(all)
	for _, r := range all {
		if r.next != nil {
			r.next.end()
			r.next = nil
		}
	}
}
