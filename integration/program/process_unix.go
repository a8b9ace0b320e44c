//go:build unix

package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// isolate gives a command its own process group, and another user's rights.
func isolate(cmd *exec.Cmd, name string) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithUs(cmd.SysProcAttr)
	uid, gid, ok, err := account(name)
	if ok {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return err
}

// give makes a user the owner of a directory.
func give(dir, name string) error {
	uid, gid, ok, err := account(name)
	if !ok {
		return err
	}
	return os.Chown(dir, int(uid), int(gid))
}

// account returns the ids of a user, if there is a name and we are root.
func account(name string) (uid, gid uint32, ok bool, err error) {
	if name == "" || os.Geteuid() != 0 {
		return 0, 0, false, nil
	}
	account, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, false, err
	}
	u, err := strconv.ParseUint(account.Uid, 10, 32)
	g, gerr := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(err, gerr); err != nil {
		return 0, 0, false, fmt.Errorf("ids of user %q: %w", name, err)
	}
	return uint32(u), uint32(g), true, nil
}

// kill kills a process, its group, and its children that have left the
// group, as children of PostgreSQL do.
func kill(p *os.Process) error {
	// A stopped process starts no more children. If it has ended, its id may be another's.
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	children := descendants(p.Pid)
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	err := p.Kill()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return err
}

// suspend stops or continues a process and its descendants.
func suspend(p *os.Process, yes bool) error {
	signal := syscall.SIGCONT
	if yes {
		signal = syscall.SIGSTOP
	}
	// The parent first: while it is stopped, it starts no more.
	if err := p.Signal(signal); err != nil {
		return err
	}
	pids := append([]int{p.Pid}, descendants(p.Pid)...)
	for _, pid := range pids[1:] {
		_ = syscall.Kill(pid, signal) // it may have ended
	}
	for _, pid := range pids {
		if yes {
			awaitStop(pid)
		}
	}
	return nil
}

const supported = true
