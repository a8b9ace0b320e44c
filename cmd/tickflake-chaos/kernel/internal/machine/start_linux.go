package machine

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// start starts a program, which ends with this one, however that ends. The channel has the error
// of cmd.Wait.
func start(cmd *exec.Cmd) (ended <-chan error, err error) {
	// The kernel kills the program when the thread that started it ends. That thread
	// therefore stays in Wait, and ends only with this program.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, done := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	return done, <-started
}

// pair returns two connected sockets.
func pair() (ours, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetNonblock(fds[0], true)
	}
	return os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "machine"), err
}
