package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
)

const (
	// leftovers is how long what CMD has left may take to end after SIGTERM.
	leftovers = 5 * time.Second
	// overrun is the same for all, after the grant has ended by a step of the clock or a sleep of the machine.
	overrun = time.Second
)

// supervision is CMD as it runs.
type supervision struct {
	*execution
	*held
	cmd    *exec.Cmd
	group  bool // CMD has a group of its own
	window time.Duration
	every  time.Duration // a look

	exited  time.Time // when CMD had ended, or zero
	why     error     // why CMD must end before it does by itself, or nil
	stepped bool      // why is a step or a sleep
	killAt  time.Time // SIGKILL follows SIGTERM then; zero: none was sent
	killed  time.Time // or zero
	said    chan struct{}

	seen  time.Time // above all times that CMD can have put into IDs
	reach time.Time // the limit that the keeper is asked for, or zero
}

// supervise runs CMD until it ends, or must.
func (e *execution) supervise(cmd *exec.Cmd, h *held, signals <-chan os.Signal) error {
	// On a terminal CMD stays in our group, or it could not read. Ctrl-C then reaches it without us.
	s := &supervision{execution: e, held: h, cmd: cmd, group: !command.IsTerminal(e.In), window: h.keeper.Stats().Window, said: make(chan struct{})}
	s.every = min(s.window/60, 250*time.Millisecond)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // what loses its parent becomes a child of this one, so that living finds it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: s.group, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // CMD dies with the thread that starts it
	defer runtime.UnlockOSThread()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // what we ignore, CMD would ignore
	h.keeper.IssueApart(h.floor)                            // before CMD can issue an ID
	if err := cmd.Start(); err != nil {
		h.keeper.IssueApart(time.Time{})
		e.Complain(err)
		return cli.Exit(exitCannotRun)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state says more
		close(ended)
	}()
	steps, stop := clockSteps()
	defer stop()
	children, orphans := make(chan os.Signal, 1), false
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for !s.look() {
		select {
		case got := <-signals:
			s.pass(got.(syscall.Signal))
		case <-steps:
		case <-children:
			orphans = true
		case <-ticker.C:
			if orphans { // at most so often, as this reads /proc
				orphans = false
				s.kill(0)
			}
		case <-ended:
			s.exited, ended = time.Now(), nil
			ticker.Reset(min(s.every, 20*time.Millisecond))
		}
	}
	return s.end()
}

// pass passes a signal on.
func (s *supervision) pass(got syscall.Signal) {
	switch pid := s.cmd.Process.Pid; {
	case s.group:
		_ = syscall.Kill(-pid, got) // it may have ended
	case s.exited.IsZero() && got != syscall.SIGINT && got != syscall.SIGQUIT:
		_ = s.cmd.Process.Signal(got)
	}
}

// kill sends a signal to all processes of CMD that live, and returns how many targets of kill(2) these are. Signal 0
// asks only.
func (s *supervision) kill(with syscall.Signal) int {
	all, more := living(s.cmd.Process.Pid, s.group, s.exited.IsZero())
	for _, pid := range all {
		_ = syscall.Kill(pid, with)
	}
	if more {
		return len(all) + 1
	}
	return len(all)
}

// look does what the clock, the grant and the processes ask for, and reports whether all is over.
func (s *supervision) look() bool {
	wall, front, step, slept := s.clock.look()
	at, now := latest(wall, front), time.Now()
	left, why := s.left(at)
	exited, late, last := !s.exited.IsZero(), s.window/4, s.window/12
	switch {
	case !s.killAt.IsZero():
	case exited:
		s.tell(now.Add(min(leftovers, left-last)))
	case left <= late:
		patience := left - last
		switch sure := errors.Is(why, errCopied) || errors.Is(why, stores.ErrWentBack); {
		case !sure && step >= s.every && left+step > late:
			s.stepped, why = true, fmt.Errorf("the clock was set ahead by %s", step.Round(time.Millisecond))
		case !sure && slept >= s.every && left+step+slept > late:
			s.stepped, why = true, fmt.Errorf("the machine slept for %s", slept.Round(time.Millisecond))
		}
		if s.stepped {
			patience = overrun
		}
		s.why = why
		s.tell(now.Add(patience))
	}
	if s.killed.IsZero() && !s.killAt.IsZero() && (!now.Before(s.killAt) || !s.stepped && left <= last) {
		s.killed = now
	}
	with := syscall.Signal(0)
	if !s.killed.IsZero() {
		with = syscall.SIGKILL // again and again: they may have started others
	}
	remain := 0
	if with != 0 || exited {
		remain = s.kill(with)
	}
	if exited && remain > 0 && with != 0 && now.Sub(s.killed) > overrun {
		s.Complain(fmt.Errorf("%d processes of the program are not to be ended: see that none issues IDs with node number %d", remain, s.node))
		remain = 0
	}
	if remain > 0 || !exited {
		s.seen = latest(s.seen, at.Add(s.every))
		if need := front.Add(s.every); need.After(s.limit) && need.After(s.reach) {
			s.reach = need.Add(overrun)
		}
	}
	if s.reach.After(s.limit) && s.ours {
		s.keeper.IssueApart(s.reach)
	}
	return exited && remain == 0 && (!s.reach.After(s.limit) || errors.Is(s.keeper.Err(), lease.ErrLost) || now.Sub(s.exited) > lease.DefaultTimeout)
}

// tell has all processes of CMD end, by that time.
func (s *supervision) tell(by time.Time) {
	s.killAt = by
	s.kill(syscall.SIGTERM)
	if s.why == nil {
		close(s.said)
		return
	}
	complaint := fmt.Errorf("node number %d is granted until %s and was not extended: %w; the program is ended", s.node, s.limit.UTC().Format(time.RFC3339Nano), s.why)
	go func() { // standard error may be a pipe that is full, and SIGKILL must not wait for its reader
		defer close(s.said)
		s.Complain(complaint)
	}()
}

// end says what is to be known after the end, and how it was.
func (s *supervision) end() error {
	select {
	case <-s.said:
	case <-time.After(time.Second):
	}
	if s.seen.After(s.limit) {
		logger(s.Err).Error("lease exec: IDs of these times may come twice: the program ran past its grant, and the store has no longer one",
			"node", s.node, "from", s.limit.UTC(), "to", s.seen.UTC(), "err", s.keeper.Err())
	}
	if s.why != nil {
		return cli.Exit(exitNotExtended)
	}
	return exitOf(s.cmd.ProcessState)
}

// left is how much longer CMD may run at that time of its clock, and why it is not longer.
func (h *held) left(at time.Time) (time.Duration, error) {
	floor, limit := h.keeper.Granted()
	h.ours = floor.Equal(h.floor) && h.keeper.Node() == h.node // in this order: if the number changes in between, it shows
	if h.ours {
		h.limit = limit
	}
	err := h.keeper.Err()
	switch { // another process may have the number
	case h.keeper.Stats().Copies > 0:
		return 0, errCopied
	case errors.Is(err, stores.ErrWentBack):
		return 0, err
	}
	return h.limit.Sub(at), cmp.Or(err, errLate)
}

var (
	errLate   = errors.New("another process took it, or this process or its store came too late")
	errCopied = errors.New("this machine's memory is a copy, and its original has the number")
)

// exitOf is the end of a program as a shell reports it.
func exitOf(state *os.ProcessState) error {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return cli.Exit(exitSignaled + int(status.Signal()))
	}
	if code := state.ExitCode(); code != 0 {
		return cli.Exit(code)
	}
	return nil
}

// living is what kill(2) takes to reach all processes below this one that live: those of a group that has none but these
// are one, so that none escapes by a fork. After the end of CMD more says that there are others, which forked meanwhile.
// It also waits for the orphans that have ended.
func living(cmd int, group, runs bool) (all []int, more bool) {
	type process struct {
		pid, group, session int
		ended               bool
	}
	own, children := os.Getpid(), make(map[int][]process)
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, true // no file can be opened at the moment, so the next look tells
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + name + "/stat") // it may have ended
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 18 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		g, _ := strconv.Atoi(string(fields[2]))
		session, _ := strconv.Atoi(string(fields[3]))
		// The first thread of a process may have ended before the others.
		ended := fields[0][0] == 'Z' && string(fields[17]) <= "1" || fields[0][0] == 'X'
		children[parent] = append(children[parent], process{pid, g, session, ended})
	}
	ours, _ := unix.Getsid(0)
	groups := make(map[int]bool)
	var below func(int)
	below = func(parent int) {
		for _, p := range children[parent] {
			switch {
			case p.ended && parent == own && p.pid != cmd:
				_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
			case p.ended:
			case p.session != ours || group && p.group == cmd:
				groups[p.group] = true
			default:
				all = append(all, p.pid)
			}
			below(p.pid)
		}
	}
	below(own)
	for g := range groups {
		all = append(all, -g)
	}
	// Only the kernel knows: one that forks and ends again and again is never where /proc is read. What loses its
	// parent is a child of this process.
	more = !runs && len(all) == 0 && unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != unix.ECHILD
	return all, more
}
