//go:build linux && amd64

package machine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a QEMU that runs.
type process struct {
	cmd            *exec.Cmd
	console, qmp   net.Conn
	serial, stderr *os.File
	ended          <-chan error
}

// start starts QEMU. All its channels are inherited, so nothing of it has a name in the
// file system.
func start(program string, c Config) (_ process, err error) {
	p := process{}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
		if err != nil {
			for _, f := range []*os.File{p.serial, p.stderr} {
				f.Close() // of nil: an error only
			}
			for _, c := range []net.Conn{p.console, p.qmp} {
				if c != nil {
					c.Close()
				}
			}
		}
	}()
	var f *os.File
	for _, conn := range []*net.Conn{&p.console, &p.qmp} {
		if *conn, f, err = pair(); err != nil {
			return p, err
		}
		theirs = append(theirs, f)
	}
	for _, r := range []**os.File{&p.serial, &p.stderr} {
		if *r, f, err = os.Pipe(); err != nil {
			return p, err
		}
		theirs = append(theirs, f)
	}
	stderr := theirs[3]
	args := arguments(c, 3, 4, "/dev/fd/5")
	files := []*os.File{theirs[0], theirs[1], theirs[2]}
	if c.Saved == "" {
		fd, err := unix.MemfdCreate("initramfs", unix.MFD_CLOEXEC)
		if err != nil {
			return p, fmt.Errorf("memory for the initramfs: %w", err)
		}
		f := os.NewFile(uintptr(fd), "initramfs")
		theirs = append(theirs, f)
		if err := initramfs(f, c); err != nil {
			return p, fmt.Errorf("initramfs: %w", err)
		}
		files = append(files, f)
		args = append(args, "-initrd", "/dev/fd/6")
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.ExtraFiles = files
	p.cmd.Stderr = stderr
	p.cmd.Stdout = stderr
	p.ended, err = Start(p.cmd)
	return p, err
}

// Start starts a program of the host, such as a server that machines use. It ends with
// this program, however that ends. The channel has the error of cmd.Wait.
func Start(cmd *exec.Cmd) (ended <-chan error, err error) {
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
func pair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "machine")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}
