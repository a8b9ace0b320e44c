//go:build linux

package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// subjectsEnv has the subjects that a process runs.
const subjectsEnv = "TICKFLAKE_KERNEL_SUBJECTS"

// The first disk of the machine is that of the subjects.
const (
	stateDisk = "/dev/vda"
	stateDir  = "/state"
)

// Main does the work of process 1 or of a subject inside of the machine, and never
// returns there. Elsewhere it does nothing.
func Main() {
	if places := os.Getenv(subjectsEnv); places != "" {
		os.Exit(subject.Serve(places))
	}
	if what := os.Getenv(writerEnv); what != "" {
		os.Exit(serveWriter(what))
	}
	// The kernel gives its process 1 the variables of its command line. Process 1 of a
	// container has not this one.
	if os.Getpid() != 1 || os.Getenv(machine.InitVariable) == "" {
		return
	}
	err := processOne()
	fmt.Fprintln(os.Stderr, "tickflake: process 1 ends:", err)
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // the power is off in a moment; process 1 must not end before
}

func processOne() (err error) {
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "tickflake:", err) // on the kernel's console, if there is one
		if port, e := openPort(); e == nil {
			(&link{out: port}).send(Message{Failed: err.Error()})
		}
		return err
	}
	port, err := openPort()
	if err != nil {
		return err
	}
	return serve(context.Background(), port, port, stateDir, true)
}

// openPort opens the serial line to the host, without echo and line editing.
func openPort() (*os.File, error) {
	fd, err := unix.Open("/dev/ttyS1", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/ttyS1: %w", err)
	}
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		err = unix.IoctlSetTermios(fd, unix.TCSETS, t)
	}
	if err != nil {
		return nil, fmt.Errorf("set the modes of /dev/ttyS1: %w", err)
	}
	return os.NewFile(uintptr(fd), "/dev/ttyS1"), nil
}

func setUp() error {
	for _, m := range []struct{ from, to, kind string }{
		{"devtmpfs", "/dev", "devtmpfs"},
		{"proc", "/proc", "proc"},
		{"sysfs", "/sys", "sysfs"},
		{"tmpfs", "/tmp", "tmpfs"},
	} {
		if err := mount(m.from, m.to, m.kind); err != nil {
			return err
		}
	}
	if console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0); err == nil {
		_ = unix.Dup2(int(console.Fd()), 1)
		_ = unix.Dup2(int(console.Fd()), 2)
	}
	for key, value := range map[string]string{"PATH": "/bin:/sbin:/usr/bin", "HOME": "/tmp", "TMPDIR": "/tmp"} {
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	_ = unix.Sethostname([]byte("tickflake"))
	files := unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("raise the limit of open files: %w", err)
	}
	core := unix.Rlimit{}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &core)
	if err := loadModules("/modules"); err != nil {
		return err
	}
	if err := networkUp(); err != nil {
		return err
	}
	return mount(stateDisk, stateDir, "ext4")
}

func mount(from, to, kind string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	err := unix.Mount(from, to, kind, 0, "")
	if err != nil && !(errors.Is(err, unix.EBUSY) && kind == "devtmpfs") { // the kernel mounts it by itself
		return fmt.Errorf("mount %s of type %s on %s: %w", from, kind, to, err)
	}
	return nil
}

// loadModules loads the modules that a file lists, dependencies first.
func loadModules(list string) error {
	paths, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, path := range strings.Fields(string(paths)) {
		if err := loadModule(path); err != nil {
			return fmt.Errorf("load %s: %w", path, err)
		}
	}
	return nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// networkUp brings up the loopback interface and, if there is one, that to the host.
func networkUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring up the network: %w", err)
	}
	defer unix.Close(fd)
	if err := interfaceUp(fd, "lo", nil); err != nil {
		return err
	}
	if err := interfaceUp(fd, "eth0", []byte{10, 0, 2, 15}); !errors.Is(err, unix.ENODEV) {
		return err
	}
	return nil
}

// interfaceUp is "ip address add ADDRESS dev NAME; ip link set NAME up".
func interfaceUp(fd int, name string, address []byte) error {
	r, err := unix.NewIfreq(name)
	if err == nil && address != nil {
		if err = r.SetInet4Addr(address); err == nil {
			err = unix.IoctlIfreq(fd, unix.SIOCSIFADDR, r)
		}
	}
	if err == nil {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
	}
	if err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	return nil
}

// link is the connection with the host.
type link struct {
	mu      sync.Mutex
	out     io.Writer
	answers chan Answer
}

func (l *link) send(m Message) {
	line, err := json.Marshal(m)
	if err != nil { // of a RawMessage that is no JSON
		line, _ = json.Marshal(Message{Failed: fmt.Sprintf("a message cannot be encoded: %v", err)})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A host that is gone ends the machine.
	_, _ = l.out.Write(append(line, '\n'))
}

// serve does what the host requests, one fault after another, until in ends or a request
// says PowerOff.
func serve(ctx context.Context, in io.Reader, out io.Writer, dir string, alone bool) error {
	l := &link{out: out, answers: make(chan Answer, 1)}
	requests := make(chan Request, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(requests)
		defer cancel()
		lines := bufio.NewReaderSize(in, 1<<16)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var r Request
			if err := json.Unmarshal(line, &r); err != nil {
				l.send(Message{Failed: fmt.Sprintf("a request is damaged: %v: %.100q", err, line)})
				continue
			}
			if r.PowerOff {
				return
			}
			if r.Answer != nil {
				select {
				case l.answers <- *r.Answer:
				default: // to no question
				}
				continue
			}
			select {
			case requests <- r:
			default:
				l.send(Message{Failed: "a fault is running already"})
			}
		}
	}()
	l.send(Message{Ready: &Ready{Kernel: kernelName()}})
	for r := range requests {
		if err := runFault(ctx, l, r, dir, alone); err != nil {
			l.send(Message{Failed: fmt.Sprintf("%s: %v", r.Run, err)})
			continue
		}
		l.send(Message{Done: r.Run})
	}
	return ctx.Err()
}

func readLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// kernelName is "Linux 6.1.0-56-cloud-amd64 (Debian 6.1.187-1)", from /proc/version.
func kernelName() string {
	name := "Linux " + readLine("/proc/sys/kernel/osrelease")
	for _, word := range strings.Split(readLine("/proc/sys/kernel/version"), " (") {
		if i := strings.Index(word, "Debian "); i >= 0 {
			rest := strings.Fields(word[i:])
			if len(rest) > 1 {
				name += " (Debian " + rest[1] + ")"
			}
		}
	}
	return name
}

// runFault runs one fault on its subjects, and sends the results.
func runFault(ctx context.Context, l *link, r Request, dir string, alone bool) error {
	all := List()
	i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == r.Run })
	if i < 0 {
		return errors.New("there is no such fault")
	}
	s, err := newStage(ctx, l, r, all[i], filepath.Join(dir, r.Run), alone)
	if err != nil {
		return err
	}
	defer s.close()
	return s.run(all[i])
}
