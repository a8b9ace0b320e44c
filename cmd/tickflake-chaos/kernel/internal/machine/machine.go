// Package machine boots a virtual machine with a real kernel, and does to it what happens
// to machines: it is paused, copied with its memory, or loses its power.
package machine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config is a machine to boot.
type Config struct {
	Kernel  Kernel
	Program string   // of the host, /program of the machine; "": none
	Modules []string // kernel modules that process 1 loads; /modules lists their files, dependencies first
	Disks   []Disk   // /dev/vda, /dev/vdb, ...; their modules are in /modules
	NoRTC   bool     // boots at 1970
	VMClock bool     // has the device /dev/vmclock0; it needs the module ptp_vmclock
	Network bool     // eth0, where the host is 10.0.2.2; its modules are in /modules
	Saved   string   // a file of Save: the machine continues there instead of booting
}

// Disk is a disk of the machine: a raw image, and the log that QEMU makes of its writes and
// flushes, an empty file; "": none.
type Disk struct{ Image, Log string }

// Bounds of a machine.
const (
	tailSize  = 8 << 10          // bytes of the kernel that an error shows; a panic has about half of it
	qmpLimit  = 30 * time.Second // for an answer of QEMU
	saveLimit = 2 * time.Minute  // for writing or reading the memory
)

// Machine is a running machine. Its console /dev/ttyS1 is connected to Send and Next.
// Kill must be called in the end, also if the machine has ended by itself.
type Machine struct {
	cmd     *exec.Cmd
	console *os.File
	lines   *bufio.Reader // of the console
	control control
	killed  atomic.Bool
	done    chan struct{} // closed when QEMU has ended and its output has been read
	err     error         // how it ended; set before done closes
	tail    tail
}

// Boot starts a machine. It ends when ctx ends, by Kill, or when its guest turns it off.
// It also ends with this program, however that ends.
func Boot(ctx context.Context, c Config) (_ *Machine, err error) {
	program := c.Kernel.QEMU
	if program == "" {
		if program, err = find(); err != nil {
			return nil, err
		}
	}
	m := &Machine{done: make(chan struct{})}
	var image string
	if c.Saved == "" {
		if image, err = initramfs(c); err != nil {
			return nil, fmt.Errorf("machine: initramfs: %w", err)
		}
		defer func() { _ = os.Remove(image) }() // QEMU has read it when it answers
	}
	m.cmd = exec.Command(program, arguments(c, image)...)
	m.cmd.Stderr = &m.tail        // QEMU writes what the kernel prints there, too
	m.cmd.WaitDelay = time.Second // for a child that keeps standard error open
	console, theirConsole, err := pair()
	if err != nil {
		return nil, err
	}
	conn, theirControl, err := pair()
	if err != nil {
		return nil, errors.Join(err, console.Close(), theirConsole.Close())
	}
	m.console, m.lines, m.control = console, bufio.NewReader(console), control{conn: conn, values: json.NewDecoder(conn)}
	m.cmd.ExtraFiles = []*os.File{theirConsole, theirControl}
	ended, err := start(m.cmd)
	_, _ = theirConsole.Close(), theirControl.Close()
	if err != nil {
		return nil, fmt.Errorf("machine: %w", errors.Join(err, console.Close(), conn.Close()))
	}
	stop := context.AfterFunc(ctx, m.kill)
	go func() {
		err := <-ended
		stop()
		m.err = m.verdict(ctx, err)
		close(m.done)
	}()
	if err := m.begin(c); err != nil {
		m.Kill()
		return nil, fmt.Errorf("machine: %w; the last lines were:\n%s", err, m.tail.last())
	}
	return m, nil
}

// begin greets QEMU, and loads a saved machine.
func (m *Machine) begin(c Config) error {
	if err := m.control.execute("qmp_capabilities", nil, nil); err != nil || c.Saved == "" {
		return err
	}
	if err := m.migrate("migrate-incoming", "exec:cat "+quote(c.Saved)); err != nil {
		return fmt.Errorf("continue from %s: %w", c.Saved, err)
	}
	return m.Resume()
}

// verdict is how the machine ended, given the error of the process: nil after Kill, the cause if ctx of Boot
// ended, and otherwise an error with the last lines of the kernel.
func (m *Machine) verdict(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if m.killed.Load() {
		return nil
	}
	return fmt.Errorf("machine: it was turned off, or its kernel panicked (%v); the last lines were:\n%s", err, m.tail.last())
}

// Send writes one line to the guest. It waits while the guest does not read, until Kill.
func (m *Machine) Send(line []byte) error {
	_, err := m.console.Write(append(line[:len(line):len(line)], '\n'))
	if err != nil {
		return fmt.Errorf("machine: a line cannot be sent to the guest: %w; the last lines were:\n%s", err, m.tail.last())
	}
	return nil
}

// Next returns the next line of the guest. If none comes before the deadline, the error is
// [os.ErrDeadlineExceeded]; the zero deadline is none. A part of a line is lost with an error.
func (m *Machine) Next(deadline time.Time) ([]byte, error) {
	_ = m.console.SetReadDeadline(deadline) // it fails if the console is closed, as the read does
	line, err := m.lines.ReadBytes('\n')
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return line, err
	}
	<-m.done
	return nil, errors.Join(errors.New("the machine has ended"), m.err)
}

// Pause stops the processors.
func (m *Machine) Pause() error { return m.control.execute("stop", nil, nil) }

// Resume lets a paused or saved machine go on.
func (m *Machine) Resume() error { return m.control.execute("cont", nil, nil) }

// Save writes the memory and the devices to a file, but not the disks. The machine is
// paused then, and a copy can be booted with [Config.Saved] and the same Config.
func (m *Machine) Save(file string) error {
	err := m.Pause()
	if err == nil {
		err = m.migrate("migrate", "exec:cat >"+quote(file))
	}
	if err == nil {
		// QEMU says that it has written the memory shortly before it can go on.
		err = m.control.await("query-status", qmpLimit, "postmigrate")
	}
	if err != nil {
		return fmt.Errorf("machine: save to %s: %w; the last lines were:\n%s", file, err, m.tail.last())
	}
	return nil
}

// migrate writes or reads the memory, and waits until that has ended.
func (m *Machine) migrate(command, uri string) error {
	// QEMU's default is 128 MiB/s, which is for networks.
	if err := m.control.execute("migrate-set-parameters", map[string]any{"max-bandwidth": int64(16 << 30)}, nil); err != nil {
		return err
	}
	if err := m.control.execute(command, map[string]any{"uri": uri}, nil); err != nil {
		return err
	}
	return m.control.await("query-migrate", saveLimit, "completed")
}

// Suspended waits until the guest has suspended the machine to RAM.
func (m *Machine) Suspended() error {
	if err := m.control.await("query-status", qmpLimit, "suspended"); err != nil {
		return fmt.Errorf("machine: the guest did not suspend: %w", err)
	}
	return nil
}

// Wake ends suspend to RAM.
func (m *Machine) Wake() error { return m.control.execute("system_wakeup", nil, nil) }

// Tail returns the last lines of the kernel: for an error about a machine that hangs.
func (m *Machine) Tail() string { return m.tail.last() }

// kill kills QEMU.
func (m *Machine) kill() {
	if !m.killed.Swap(true) {
		_ = m.cmd.Process.Kill()
		_, _ = m.console.Close(), m.control.conn.Close()
	}
}

// Kill ends the machine as a power cut does: QEMU is killed, and has ended when Kill returns.
func (m *Machine) Kill() {
	m.kill()
	<-m.done
}

// control speaks QEMU's control protocol: JSON answers in the order of the commands, and
// events between them, which nothing here needs.
type control struct {
	mu     sync.Mutex
	conn   *os.File
	values *json.Decoder
}

// execute runs a command. answer may be nil.
func (c *control) execute(command string, arguments, answer any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := json.NewEncoder(c.conn).Encode(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments})
	_ = c.conn.SetReadDeadline(time.Now().Add(qmpLimit)) // a late answer is never read: the decoder keeps its error
	for err == nil {
		var is struct {
			Return json.RawMessage
			Error  struct{ Desc string }
		}
		if err = c.values.Decode(&is); err != nil {
			break
		}
		if is.Error.Desc != "" {
			return fmt.Errorf("QEMU: %s: %s", command, is.Error.Desc)
		}
		if is.Return != nil && answer != nil {
			err = json.Unmarshal(is.Return, answer)
		}
		if is.Return != nil {
			return err
		}
	}
	return fmt.Errorf("QEMU: %s: no answer: %w", command, err)
}

// await returns when a query tells of a status.
func (c *control) await(query string, limit time.Duration, wanted string) error {
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		var is struct{ Status string }
		if err := c.execute(query, nil, &is); err != nil {
			return err
		}
		switch {
		case is.Status == wanted:
			return nil
		case is.Status == "failed" || time.Now().After(end):
			return fmt.Errorf("QEMU: %s: %q, want %q within %v", query, is.Status, wanted, limit)
		}
	}
}

// tail keeps the end of what the kernel and QEMU print.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(p), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ReplaceAll(strings.TrimSpace(string(t.text)), "\r", "")
}

// quote makes a path one word of a shell.
func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
