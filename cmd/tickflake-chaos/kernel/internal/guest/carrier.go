//go:build linux

package guest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
)

const (
	// lineEvery is the pace at which the lines of a program are read: one that prints without a
	// pause waits for its pipe, and leaves the processors to the others.
	lineEvery  = 500 * time.Microsecond
	lineLength = 4096
	// pipeSize holds what all subjects print in more than a second: one that waits to print
	// looks as one whose call takes long.
	pipeSize = 2 << 20
	// drain is how long the pipe of a dead process may stay open: a child of it has it.
	drain = time.Second
)

// carrier keeps one process running. Each has all subjects of the fault, or is the program of a
// user, which has one record.
type carrier struct {
	stage   *Stage
	records []*record
	program []string // of a user, with its arguments

	// run is the process that runs, or nil. Who starts it looks at quit after it is stored, and kill looks
	// at it after quit is closed: so one of them kills it.
	run  atomic.Pointer[process]
	next *process // the one that waits to run: see prepare

	quit chan struct{} // closed by kill; nil: not started
	done chan struct{}
}

// process is one of a carrier.
type process struct {
	number int // in the fault
	pid    int
	in     io.WriteCloser
	pipe   *os.File // its standard output
	lines  *bufio.Reader
	ended  chan struct{}
	err    error // how it ended; set before ended is closed
}

// signal sends a signal to the process and its children. They may have ended.
func (p *process) signal(n syscall.Signal) { _ = syscall.Kill(-p.pid, n) }

// end kills a process that has no reader.
func (p *process) end() {
	p.signal(syscall.SIGKILL)
	<-p.ended
	_ = p.pipe.Close()
}

// number is that of the process that runs, from 0 on, or -1 if none does.
func (c *carrier) number() int {
	if p := c.run.Load(); p != nil {
		return p.number
	}
	return -1
}

// signal sends a signal to the process that runs.
func (c *carrier) signal(n syscall.Signal) {
	if p := c.run.Load(); p != nil {
		p.signal(n)
	}
}

// command sends a command to the process that runs. It reports whether there is one.
func (c *carrier) command(line string) bool {
	p := c.run.Load()
	if p != nil {
		_, _ = io.WriteString(p.in, line+"\n") // to a process that may have ended
	}
	return p != nil
}

// spawn starts a process, and waits until its subjects are about to make their generators: they
// do that at [subject.Go]. A program of a user does not wait.
func (c *carrier) spawn() (*process, error) {
	cmd := exec.Command("/proc/self/exe")
	if c.program != nil {
		cmd = exec.Command(c.program[0], c.program[1:]...)
		cmd.Dir, cmd.Stderr, cmd.WaitDelay = c.records[0].place.Dir, c.records[0], drain
	} else {
		places := make([]subject.Place, len(c.records))
		for i, l := range c.records {
			places[i] = l.place
		}
		text, err := json.Marshal(places)
		if err != nil {
			return nil, err
		}
		cmd.Env, cmd.Stderr = append(os.Environ(), subjectsEnv+"="+string(text)), os.Stderr // a panic goes to the console
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	pipe, theirs, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	_, _ = unix.FcntlInt(theirs.Fd(), unix.F_SETPIPE_SZ, pipeSize) // less is fine, too
	cmd.Stdout = theirs
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return nil, errors.Join(err, in.Close(), pipe.Close())
	}
	p := &process{number: int(c.stage.spawned.Add(1)) - 1, pid: cmd.Process.Pid, in: in, pipe: pipe, lines: bufio.NewReaderSize(pipe, lineLength), ended: make(chan struct{})}
	go func() { // ends with the process, which its stage kills
		p.err = cmd.Wait()
		close(p.ended)
	}()
	if c.program != nil {
		return p, nil
	}
	_ = p.pipe.SetReadDeadline(time.Now().Add(startLimit))
	for range c.records {
		if _, err := p.lines.ReadSlice('\n'); err != nil {
			p.end()
			return nil, fmt.Errorf("one does not wait for a command: %w", err)
		}
	}
	return p, p.pipe.SetReadDeadline(time.Time{})
}

// prepare starts the process that the next start runs. A start takes up to some seconds under emulation: a step of the
// clock by a second would be over before the generator reads the clock. A program of a user is
// not prepared.
func (c *carrier) prepare() error {
	if c.program != nil || c.next != nil {
		return nil
	}
	p, err := c.spawn()
	if err != nil {
		return fmt.Errorf("start the subjects: %w", err)
	}
	c.next = p
	return nil
}

// start starts a process for the subjects, unless they have one, and keeps one running.
func (c *carrier) start() {
	if c.quit != nil {
		return
	}
	_ = c.prepare() // else carry tries again, and tells the error
	first := c.next
	c.next = nil
	c.quit, c.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(c.done)
		for {
			c.carry(first)
			first = nil
			select {
			case <-c.quit:
				return
			case <-time.After(subject.Again):
			}
		}
	}()
}

// kill kills the process that runs with SIGKILL, and reads what it had printed. None is started
// before start.
func (c *carrier) kill() {
	if c.quit == nil {
		return
	}
	close(c.quit)
	c.signal(syscall.SIGKILL)
	<-c.done
	c.quit = nil
}

// stop ends all processes.
func (c *carrier) stop() {
	c.kill()
	if c.next != nil {
		c.next.end()
		c.next = nil
	}
}

// carry runs the process that was prepared, or a new one, until it ends.
func (c *carrier) carry(p *process) {
	if p == nil {
		var err error
		if p, err = c.spawn(); err != nil {
			for _, l := range c.records {
				l.ended(c.stage.now(), 0, err.Error())
			}
			return
		}
	}
	if c.program == nil {
		_, _ = io.WriteString(p.in, subject.Go+"\n")
	}
	for _, l := range c.records {
		l.do(func(now time.Duration) {
			l.check.Started(now, p.number)
			l.held = false
		})
	}
	c.run.Store(p)
	select {
	case <-c.quit:
		p.signal(syscall.SIGKILL)
	default:
	}
	read := make(chan error, 1)
	go func() { read <- c.read(p) }()
	<-p.ended
	end := c.stage.now()
	c.run.Store(nil)
	p.signal(syscall.SIGKILL) // its children
	_ = p.pipe.SetReadDeadline(time.Now().Add(drain))
	err := <-read
	_ = p.pipe.Close()
	how := ""
	select {
	case <-c.quit:
	default:
		if how = "exit status 0"; err != nil || p.err != nil {
			how = errors.Join(err, p.err).Error()
		}
	}
	for _, l := range c.records {
		l.ended(end, p.number, how)
	}
}

// read reads all lines of a process, those of a program at a bounded rate while it runs.
func (c *carrier) read(p *process) error {
	for {
		line, err := p.lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			p.signal(syscall.SIGKILL)
			_, _ = io.Copy(io.Discard, p.pipe)
			return fmt.Errorf("it printed a line of more than %d bytes", lineLength)
		}
		if err != nil { // the rest of a line without its end is no ID: the process was killed
			return nil
		}
		text := strings.TrimSpace(string(line))
		if c.program == nil {
			number, rest, _ := strings.Cut(text, " ")
			i, err := strconv.Atoi(number)
			if err != nil || i >= len(c.records) {
				return fmt.Errorf("a line of the subjects is damaged: %.100q", text)
			}
			c.records[i].line(p.number, rest)
			continue
		}
		c.records[0].line(p.number, text)
		select {
		case <-c.quit: // what is left in the pipe is read at once
		case <-p.ended:
		case <-time.After(lineEvery):
		}
	}
}
