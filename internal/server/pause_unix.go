//go:build unix

package server

import (
	"errors"
	"fmt"
	"syscall"
)

// Pause stops the process and those that it has started, until Continue. The system still
// accepts connections and data for them.
func (p *Process) Pause() error {
	// First the parents, so that there are no new children.
	return p.signal(syscall.SIGSTOP)
}

// Continue lets a process that Pause has stopped go on.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

// signal sends a signal to the process and its descendants.
func (p *Process) signal(s syscall.Signal) error {
	pid := p.PID()
	if pid == 0 {
		return fmt.Errorf("%s does not run", p.config.Path)
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("signal %v to %s: %w", s, p.config.Path, err)
	}
	for _, child := range descendants(pid) {
		if err := syscall.Kill(child, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal %v to a child of %s: %w", s, p.config.Path, err)
		}
	}
	return nil
}
