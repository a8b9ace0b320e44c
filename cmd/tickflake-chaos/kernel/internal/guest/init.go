//go:build linux

package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/machine"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
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
		os.Exit(subject.Serve(places, startControl().stood))
	}
	// The kernel gives its process 1 the variables of its command line. Process 1 of a
	// container has not this one.
	if os.Getpid() != 1 || os.Getenv(machine.InitVariable) == "" {
		return
	}
	fmt.Fprintln(os.Stderr, "tickflake: process 1 ends:", processOne()) // on the kernel's console
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // the power is off in a moment; process 1 must not end before
}

func processOne() error {
	failed := setUp()
	port, err := openPort()
	if err != nil {
		return errors.Join(failed, err)
	}
	h := &host{port: port, in: json.NewDecoder(port), control: startControl()}
	if failed != nil {
		h.send(Message{Failed: failed.Error()})
		return failed
	}
	return h.serve()
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
	if err != nil {
		return err
	}
	for _, path := range strings.Fields(string(paths)) {
		f, err := os.Open(path)
		if err == nil {
			if err = unix.FinitModule(int(f.Fd()), "", 0); errors.Is(err, unix.EEXIST) {
				err = nil
			}
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("load %s: %w", path, err)
		}
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

// host is the connection with the host.
type host struct {
	port    *os.File
	in      *json.Decoder // requests; while a fault runs, only answers to it
	mu      sync.Mutex    // of writing
	control *control
}

func (h *host) send(m Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = json.NewEncoder(h.port).Encode(m) // a host that is gone ends the machine
}

// serve does what the host requests, one fault after another, until the line ends.
func (h *host) serve() error {
	h.send(Message{Ready: kernelName(), Uptime: read(unix.CLOCK_MONOTONIC)})
	for {
		var r Request
		if err := h.in.Decode(&r); err != nil {
			return err
		}
		if err := runFault(h, r); err != nil {
			h.send(Message{Failed: err.Error()})
			continue
		}
		h.send(Message{Done: r.Run})
	}
}

func readLine(path string) string {
	b, _ := os.ReadFile(path) // nothing, if there is none
	return strings.TrimSpace(string(b))
}

// kernelName is "Linux 6.1.0-56-cloud-amd64 (Debian 6.1.187-1)".
func kernelName() string {
	text := readLine("/proc/version")
	if words := regexp.MustCompile(`version (\S+).* (Debian \S+)`).FindStringSubmatch(text); words != nil {
		return fmt.Sprintf("Linux %s (%s)", words[1], words[2])
	}
	return text
}
