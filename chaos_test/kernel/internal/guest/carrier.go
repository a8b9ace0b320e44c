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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

const (
	// linesPerRound lines of a program are read in each round: one that prints without a
	// pause waits for its pipe, and leaves the processors to the others.
	linesPerRound = 40
	round         = 20 * time.Millisecond
	lineLength    = 4096
	// drain is how long the pipe of a dead process may stay open: a child of it has it.
	drain = time.Second
)

// carrier runs one process after another. Each has all subjects of the fault, or is the program
// of a user, which has one ledger.
type carrier struct {
	stage   *Stage
	ledgers []*ledger
	argv    []string // of the user's program

	mu   sync.Mutex // of child
	run  *child     // the process that runs
	next *child     // the one that waits to run: see Stage.Prepare

	quit chan struct{} // closed by kill; nil: not started
	done chan struct{}
}

// child is a process. Each subject has an output of its own: one that is read slowly must not
// hold up the others.
type child struct {
	number int // in the fault
	pid    int
	in     io.WriteCloser
	out    []*os.File // by ledger
	ended  chan struct{}
	err    error // how it ended; set before ended is closed
}

// signal sends a signal to the process and its children. They may have ended.
func (c *child) signal(n syscall.Signal) { _ = syscall.Kill(-c.pid, n) }

// end kills a process that has no reader.
func (c *child) end() {
	c.signal(syscall.SIGKILL)
	<-c.ended
	closeAll(c.out)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// number is that of the process that runs.
func (c *carrier) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil {
		return 0
	}
	return c.run.number
}

// signal sends a signal to the process that runs.
func (c *carrier) signal(n syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil {
		c.run.signal(n)
	}
}

// command sends a command to the process that runs. It reports whether there is one.
func (c *carrier) command(line string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil {
		_, _ = io.WriteString(c.run.in, line+"\n") // to a process that may have ended
	}
	return c.run != nil
}

// spawn starts a process. If wait is set, its subjects wait for subject.Go before they make
// their generators.
func (c *carrier) spawn(wait bool) (*child, error) {
	var cmd *exec.Cmd
	if c.argv != nil {
		cmd = exec.Command(c.argv[0], c.argv[1:]...)
		cmd.Dir, cmd.Stderr, cmd.WaitDelay = c.ledgers[0].place.Dir, c.ledgers[0], drain
	} else {
		var places []subject.Place
		for _, l := range c.ledgers {
			place := l.place
			place.Wait = wait
			places = append(places, place)
		}
		text, err := json.Marshal(places)
		if err != nil {
			return nil, err
		}
		cmd = exec.Command("/proc/self/exe")
		cmd.Env, cmd.Stderr = append(os.Environ(), subjectsEnv+"="+string(text)), os.Stderr // a panic goes to the console
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var ours, theirs []*os.File
	defer func() { closeAll(theirs) }()
	for range c.ledgers {
		out, their, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			return nil, errors.Join(err, in.Close())
		}
		ours, theirs = append(ours, out), append(theirs, their)
	}
	if c.argv != nil {
		cmd.Stdout = theirs[0]
	} else {
		cmd.ExtraFiles = theirs
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		closeAll(ours)
		return nil, errors.Join(err, in.Close())
	}
	n := &child{number: int(c.stage.spawned.Add(1)), pid: cmd.Process.Pid, in: in, out: ours, ended: make(chan struct{})}
	go func() { // ends with the process, which its stage kills
		n.err = cmd.Wait()
		close(n.ended)
	}()
	return n, nil
}

// prepare starts the process that the next start runs, and waits until its subjects are about
// to make their generators.
func (c *carrier) prepare() error {
	if c.argv != nil || c.next != nil {
		return nil
	}
	n, err := c.spawn(true)
	if err != nil {
		return fmt.Errorf("start the subjects: %w", err)
	}
	for i, out := range n.out {
		_ = out.SetReadDeadline(time.Now().Add(startLimit))
		if _, err := io.ReadFull(out, make([]byte, len(subject.Held+"\n"))); err != nil {
			n.end()
			return fmt.Errorf("start %s: it does not wait for a command: %w", c.ledgers[i].place.Subject, err)
		}
		_ = out.SetReadDeadline(time.Time{})
	}
	c.next = n
	return nil
}

// start starts the goroutine that keeps a process running.
func (c *carrier) start() {
	if c.quit != nil {
		return
	}
	first := c.next
	c.next = nil
	c.quit, c.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(c.done)
		for {
			c.process(first)
			first = nil
			select {
			case <-c.quit:
				return
			case <-time.After(subject.Again):
			}
		}
	}()
}

// kill kills the process that runs, and reads what it had printed.
func (c *carrier) kill() {
	if c.quit == nil {
		return
	}
	close(c.quit)
	c.signal(syscall.SIGKILL)
	<-c.done
	c.quit = nil
}

// process runs the process that was prepared, or a new one, until it ends.
func (c *carrier) process(n *child) {
	c.mu.Lock()
	select {
	case <-c.quit: // before its start
		c.mu.Unlock()
		if n != nil {
			n.end()
		}
		return
	default:
	}
	if n != nil {
		_, _ = io.WriteString(n.in, subject.Go+"\n")
	} else {
		var err error
		if n, err = c.spawn(false); err != nil {
			c.mu.Unlock()
			for _, l := range c.ledgers {
				l.ended(c.stage.now(), 0, err.Error())
			}
			return
		}
	}
	for _, l := range c.ledgers {
		l.do(func(now time.Duration) {
			l.check.Started(now, n.number)
			l.held = false
		})
	}
	c.run = n
	c.mu.Unlock()
	var reading sync.WaitGroup
	failed := make([]error, len(n.out))
	for i, l := range c.ledgers {
		reading.Go(func() { failed[i] = c.read(n, l, n.out[i]) })
	}
	<-n.ended
	end := c.stage.now()
	c.mu.Lock()
	c.run = nil
	c.mu.Unlock()
	n.signal(syscall.SIGKILL) // its children
	for _, out := range n.out {
		_ = out.SetReadDeadline(time.Now().Add(drain))
	}
	reading.Wait()
	closeAll(n.out)
	err := errors.Join(failed...)
	how := ""
	select {
	case <-c.quit:
	default:
		if how = "exit status 0"; err != nil || n.err != nil {
			how = errors.Join(err, n.err).Error()
		}
	}
	for _, l := range c.ledgers {
		l.ended(end, n.number, how)
		if how != "" {
			l.do(func(time.Duration) { l.crashed = how })
		}
	}
}

// read reads all lines of a subject, those of a program at a bounded rate while it runs.
func (c *carrier) read(n *child, l *ledger, out io.Reader) error {
	lines := bufio.NewReaderSize(out, lineLength)
	begin, count := time.Now(), 0
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			n.signal(syscall.SIGKILL)
			_, _ = io.Copy(io.Discard, out)
			return fmt.Errorf("it printed a line of more than %d bytes", lineLength)
		}
		if err != nil { // the rest of a line without its end is no ID: the process was killed
			return nil
		}
		text := strings.TrimSpace(string(line))
		if log, ok := strings.CutPrefix(text, subject.Log); ok && c.argv == nil {
			_, _ = l.Write([]byte(log + "\n"))
			continue
		}
		l.line(n.number, text)
		if c.argv == nil {
			continue
		}
		count++
		if time.Since(begin) > round {
			begin, count = time.Now(), 0
		}
		if count < linesPerRound {
			continue
		}
		select {
		case <-c.quit: // what is left in the pipe is read at once
		case <-n.ended:
		case <-time.After(round - time.Since(begin)):
		}
		begin, count = time.Now(), 0
	}
}
