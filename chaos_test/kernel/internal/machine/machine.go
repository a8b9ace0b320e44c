// Package machine boots a virtual machine with a real kernel, and does to it what happens
// to machines: it is paused, copied with its memory, or loses its power.
package machine

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Config is a machine to boot.
type Config struct {
	Kernel  Kernel
	Files   map[string]string // further files of the initramfs: path in the machine, path on the host
	Modules []string          // kernel modules that process 1 loads; /modules lists their files, dependencies first
	Disks   []Disk            // /dev/vda, /dev/vdb, ...; their modules are in /modules
	NoRTC   bool              // boots at 1970
	Network bool              // eth0, where the host is 10.0.2.2; its modules are in /modules
	Saved   string            // a file of Save: the machine continues there instead of booting
	Log     io.Writer         // what the kernel prints
}

// Disk is a disk of the machine: a raw image, or an NBD server on a Unix socket.
type Disk struct{ Image, NBD string }

// Bounds of a machine.
const (
	maxLine   = 64 << 20         // bytes of a line from the guest
	tailLines = 80               // of the kernel, that an error shows; a panic has about 60
	qmpLimit  = 30 * time.Second // for an answer of QEMU
	saveLimit = 2 * time.Minute  // for writing or reading the memory
)

// Machine is a running machine. Its console /dev/ttyS1 is connected to Send and Lines.
// Kill must be called in the end, also if the machine has ended by itself.
type Machine struct {
	cmd     *exec.Cmd
	console net.Conn
	qmp     *qmp
	lines   chan []byte
	killed  chan struct{} // closed by Kill
	once    sync.Once
	done    chan struct{} // closed when QEMU has ended and its output has been read
	err     error         // of Wait; set before done closes

	sending sync.Mutex
	tail    tail
}

// Boot starts a machine. It ends when ctx ends, by Kill, or when its guest turns it off.
// It also ends with this program, however that ends.
func Boot(ctx context.Context, c Config) (*Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	program, err := find()
	if err != nil {
		return nil, err
	}
	p, err := start(program, c)
	if err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	m := &Machine{
		cmd: p.cmd, console: p.console, qmp: newQMP(p.qmp),
		lines: make(chan []byte, 64), killed: make(chan struct{}), done: make(chan struct{}),
		tail: tail{out: c.Log},
	}
	var readers sync.WaitGroup
	readers.Go(func() { io.Copy(&m.tail, p.serial) })
	readers.Go(func() { io.Copy(&m.tail, p.stderr) })
	readers.Go(m.qmp.read)
	go m.readLines()
	stop := context.AfterFunc(ctx, m.kill)
	go func() {
		err := <-p.ended
		readers.Wait()
		stop()
		for _, c := range []io.Closer{p.serial, p.stderr, p.qmp} {
			c.Close()
		}
		m.tail.flush()
		m.err = m.verdict(ctx, err)
		close(m.done)
	}()
	if err := m.begin(c); err != nil {
		if !errors.Is(err, errGone) { // Otherwise Wait knows more.
			m.Kill()
		}
		return nil, cmp.Or(m.Wait(), fmt.Errorf("machine: %w", err))
	}
	return m, nil
}

// begin greets QEMU, and loads a saved machine.
func (m *Machine) begin(c Config) error {
	if _, err := m.qmp.execute("qmp_capabilities", nil); err != nil {
		return err
	}
	if c.Saved == "" {
		return nil
	}
	// QEMU would wait for ever for a file that cannot be read.
	f, err := os.Open(c.Saved)
	if err != nil {
		return err
	}
	defer f.Close()
	if s, err := f.Stat(); err != nil || s.Size() == 0 {
		return fmt.Errorf("%s is empty: nothing was saved there", c.Saved)
	}
	if err := m.migrate("migrate-incoming", "exec:cat "+quote(c.Saved)); err != nil {
		return fmt.Errorf("continue from %s: %w", c.Saved, err)
	}
	return m.Resume()
}

// readLines gives the lines of the guest to the channel. Lines that were sent before the
// machine ended are still delivered, until Kill.
func (m *Machine) readLines() {
	defer close(m.lines)
	defer m.console.Close()
	r := bufio.NewScanner(m.console)
	r.Buffer(make([]byte, 64<<10), maxLine)
	for r.Scan() {
		line := append([]byte(nil), r.Bytes()...)
		select {
		case m.lines <- line:
		case <-m.killed:
			return
		}
	}
	if errors.Is(r.Err(), bufio.ErrTooLong) {
		fmt.Fprintf(&m.tail, "machine: a line of the guest is longer than %d bytes; the machine is killed\n", maxLine)
		m.kill()
	}
}

// verdict is how the machine ended, given the error of the process.
func (m *Machine) verdict(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-m.killed:
		return nil
	default:
	}
	if err == nil {
		reason := m.qmp.shutdown()
		if reason == "guest-shutdown" {
			return nil
		}
		err = fmt.Errorf("QEMU ended by itself (%s)", reason)
		if reason == "guest-reset" {
			err = errors.New("the kernel panicked or rebooted")
		}
	}
	return fmt.Errorf("machine: %w; the last lines were:\n%s", err, m.tail.last())
}

// Send writes one line to the guest. It waits while the guest does not read, until Kill.
func (m *Machine) Send(line []byte) error {
	m.sending.Lock()
	defer m.sending.Unlock()
	_, err := m.console.Write(append(line[:len(line):len(line)], '\n'))
	if err != nil {
		return fmt.Errorf("machine: a line cannot be sent to the guest: %w; the last lines were:\n%s", err, m.tail.last())
	}
	return nil
}

// Lines returns the lines of the guest. The channel closes when the machine has ended.
func (m *Machine) Lines() <-chan []byte { return m.lines }

// Pause stops the processors.
func (m *Machine) Pause() error {
	_, err := m.qmp.execute("stop", nil)
	return err
}

// Resume lets a paused or saved machine go on.
func (m *Machine) Resume() error {
	_, err := m.qmp.execute("cont", nil)
	return err
}

// Save writes the memory and the devices to a file, but not the disks. The machine is
// paused then, and a copy can be booted with [Config.Saved] and the same Config.
func (m *Machine) Save(file string) error {
	if err := m.Pause(); err != nil {
		return err
	}
	// The file is of the caller, so QEMU's errors about it would be those of cat.
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("machine: save: %w", err)
	}
	f.Close()
	if err := m.migrate("migrate", "exec:cat >"+quote(file)); err != nil {
		return fmt.Errorf("machine: save to %s: %w", file, err)
	}
	// QEMU says that it has written the memory shortly before it can go on, and says
	// nothing when it can.
	for end := time.Now().Add(qmpLimit); ; time.Sleep(time.Millisecond) {
		s, err := m.qmp.execute("query-status", nil)
		if err != nil {
			return fmt.Errorf("machine: save to %s: %w", file, err)
		}
		if strings.Contains(string(s), `"postmigrate"`) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("machine: save to %s: QEMU did not end it in %v: %s", file, qmpLimit, s)
		}
	}
}

// migrate writes or reads the memory, and waits until that has ended.
func (m *Machine) migrate(command, uri string) error {
	events := map[string]any{"capabilities": []any{map[string]any{"capability": "events", "state": true}}}
	if _, err := m.qmp.execute("migrate-set-capabilities", events); err != nil {
		return err
	}
	if command == "migrate" {
		// QEMU's default is 128 MiB/s, which is for networks.
		if _, err := m.qmp.execute("migrate-set-parameters", map[string]any{"max-bandwidth": int64(16 << 30)}); err != nil {
			return err
		}
	}
	n := m.qmp.seen()
	if _, err := m.qmp.execute(command, map[string]any{"uri": uri}); err != nil {
		return err
	}
	var outcome string
	err := m.qmp.await(saveLimit, func(events []event) bool {
		outcome = last(events[n:], "MIGRATION").Data.Status
		return outcome == "completed" || outcome == "failed"
	})
	if err == nil && outcome == "failed" {
		if command == "migrate-incoming" {
			return errGone // QEMU ends then, and says why.
		}
		err = fmt.Errorf("QEMU failed; the last lines were:\n%s", m.tail.last())
	}
	return err
}

// Wake ends suspend to RAM. It waits until the machine is suspended, and then for d.
func (m *Machine) Wake(d time.Duration) error {
	err := m.qmp.await(qmpLimit, func(events []event) bool {
		return last(events, "SUSPEND", "WAKEUP").Event == "SUSPEND"
	})
	if err != nil {
		return fmt.Errorf("machine: the guest did not suspend: %w", err)
	}
	select {
	case <-m.done:
	case <-time.After(d):
	}
	_, err = m.qmp.execute("system_wakeup", nil)
	return err
}

// State returns where the processors are, and the last lines of the kernel: for an error
// about a machine that hangs.
func (m *Machine) State() string {
	answer, err := m.qmp.execute("human-monitor-command", map[string]any{"command-line": "info registers -a"})
	var registers string
	if err == nil {
		err = json.Unmarshal(answer, &registers)
	}
	if err != nil {
		return err.Error() + "\n" + m.tail.last()
	}
	var lines []string
	for line := range strings.Lines(registers) {
		if strings.HasPrefix(line, "CPU#") || strings.Contains(line, "IP=") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(append(lines, m.tail.last()), "\n")
}

// kill kills QEMU, and lets go of lines that are not read.
func (m *Machine) kill() {
	m.once.Do(func() {
		close(m.killed)
		m.cmd.Process.Kill()
		m.console.Close()
	})
}

// Kill ends the machine as a power cut does: QEMU is killed, and has ended when Kill returns.
func (m *Machine) Kill() error {
	m.kill()
	<-m.done
	return nil
}

// Wait returns when the machine has ended: nil if the guest turned it off or Kill was
// called, the cause if ctx of Boot ended, and otherwise an error with the last lines of the kernel.
func (m *Machine) Wait() error {
	<-m.done
	return m.err
}

// tail copies what the kernel and QEMU print, and keeps the last lines.
type tail struct {
	mu    sync.Mutex
	out   io.Writer
	lines []string
	part  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out != nil {
		t.out.Write(p) // A log that fails is no reason to stop the machine.
	}
	for line := range strings.SplitAfterSeq(string(p), "\n") {
		t.part = append(t.part, line...)
		if strings.HasSuffix(line, "\n") || len(t.part) > 4<<10 {
			t.add()
		}
	}
	return len(p), nil
}

func (t *tail) add() {
	if line := strings.TrimSpace(string(t.part)); line != "" {
		t.lines = append(t.lines, line)
		t.lines = t.lines[max(0, len(t.lines)-tailLines):]
	}
	t.part = t.part[:0]
}

// flush takes a last line that has no end.
func (t *tail) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add()
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// quote makes a path one word of a shell.
func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
