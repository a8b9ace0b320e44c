//go:build linux

package guest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// Bounds of a subject.
const (
	// linesPerRound lines of one process are read in each round: a program that prints
	// without a pause waits for its pipe, and leaves the processors to the others.
	linesPerRound = 40
	round         = 20 * time.Millisecond
	lineLength    = 4096
	stderrKept    = 2000
	// again is the pause before a process that ended by itself is started again.
	again = 500 * time.Millisecond
	// drain is how long the pipe of a dead process may stay open: a child of it has it.
	drain = time.Second
	// kept is how many IDs of one subject go to the host.
	kept = 1 << 17
	// idsPerMessage keeps messages short.
	idsPerMessage = 500
)

// runner is one process of a subject at a time: the one that it has now.
type runner struct {
	stage *Stage
	name  string
	dir   string
	argv  []string // of the user's program
	store string   // URL of the store; "": in dir
	other bool     // a generator that is not ours

	*ledger
	child  *child // the process that runs; this and all below belong to mu of the ledger
	next   *child // the process that waits to run: see Stage.Prepare
	number int    // of the process that runs
	held   bool

	quit chan struct{} // closed by stop; nil: not started
	done chan struct{}
}

// ledger is what all processes of a subject have printed.
type ledger struct {
	mu     sync.Mutex // of all below
	check  *check.Checker
	lines  int
	keep   bool // all IDs from now on
	ids    []string
	stderr []byte // the end of the log
	named  bool   // an error or the log had one of the causes of the fault
	starts int
	// crashed is how a process ended that nothing here has killed, and that did not end as
	// subject.Serve does: a panic.
	crashed string
}

// start starts the goroutine that keeps a process running.
func (r *runner) start() {
	if r.quit != nil {
		return
	}
	r.quit, r.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(r.done)
		for {
			err := r.process()
			select {
			case <-r.quit:
				return
			default:
			}
			r.add(check.ID{Err: "the process ended by itself: " + err.Error() + r.lastWords(), Start: r.running()})
			select {
			case <-r.quit:
				return
			case <-time.After(again):
			}
		}
	}()
}

// lastWords is the last line of standard error, after a colon.
func (r *runner) lastWords() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(r.stderr), "")), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + last
	}
	return ""
}

// kill kills the processes of the runners, and reads what they had printed. All hear of
// it before the first is killed, since the runners may share a process.
func kill(runners []*runner) {
	var started []*runner
	for _, r := range runners {
		if r.quit != nil {
			close(r.quit)
			started = append(started, r)
		}
	}
	for _, r := range started {
		r.signal(syscall.SIGKILL)
	}
	for _, r := range started {
		<-r.done
		r.quit = nil
	}
}

// locked reads what belongs to mu.
func locked[T any](r *runner, read func() T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return read()
}

func (r *runner) running() int { return locked(r, func() int { return r.number }) }

// count returns how many lines its processes have printed.
func (r *runner) count() int { return locked(r, func() int { return r.lines }) }

func (r *runner) recovers() bool { return locked(r, func() bool { return r.check.Recovers() }) }

func (r *runner) signal(n syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.child != nil {
		r.child.signal(n)
	}
}

func (r *runner) command(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.child != nil {
		_ = r.child.command(line) // to a program that has ended, or reads nothing
	}
}

// process runs one process until it ends, or the subject ends in it. Its error says how.
func (r *runner) process() error {
	c, err := r.launch()
	if err != nil {
		return err
	}
	read, logged := make(chan error, 1), make(chan struct{})
	go func() { read <- r.read(c) }()
	go func() { defer close(logged); r.readLog(c.log) }()
	var readError error
	alone := false // the subject has ended, and its process goes on
	select {
	case <-c.ended:
	case readError = <-read:
		if alone = r.name != Program; !alone { // a program may close its output before its end
			<-c.ended
		}
		read <- readError
	}
	end := r.stage.now()
	r.mu.Lock()
	r.child = nil
	_ = c.in.Close()
	r.mu.Unlock()
	if !alone {
		c.signal(syscall.SIGKILL) // its children
	}
	deadline := time.Now().Add(drain)
	_, _ = c.out.SetReadDeadline(deadline), c.log.SetReadDeadline(deadline)
	readError = <-read
	<-logged
	_, _ = c.out.Close(), c.log.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check.Ended(end, r.number)
	switch {
	case readError != nil:
		return readError
	case alone:
		return errors.New("its generator has ended")
	case c.err != nil:
		return c.err
	}
	return errors.New("exit status 0")
}

// launch makes the process that waits run, or starts one.
func (r *runner) launch() (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number = r.starts
	r.starts++
	select {
	case <-r.quit:
		return nil, errors.New("stopped before its start")
	default:
	}
	c := r.next
	r.next = nil
	if c != nil && c.command(subject.Go) != nil {
		c.end()
		c = nil
	}
	if c == nil {
		var err error
		if c, err = r.spawn(); err != nil {
			return nil, err
		}
	}
	r.check.Started(r.stage.now(), r.number)
	r.held = false
	r.child = c
	return c, nil
}

// spawn starts a process for this subject alone.
func (r *runner) spawn() (*child, error) {
	all, err := spawn([]*runner{r}, false)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// readLog keeps the end of the log.
func (r *runner) readLog(log io.Reader) {
	b := make([]byte, 4096)
	for {
		n, err := log.Read(b)
		r.mu.Lock()
		t := append(r.stderr, b[:n]...)
		r.look(string(t))
		r.stderr = append([]byte(nil), t[max(0, len(t)-stderrKept):]...)
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// read reads all lines of a process, at a bounded rate while it runs.
func (r *runner) read(c *child) error {
	lines := bufio.NewReaderSize(c.out, lineLength)
	number := r.running()
	begin, n := time.Now(), 0
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			r.signal(syscall.SIGKILL)
			_, _ = io.Copy(io.Discard, c.out)
			return fmt.Errorf("it printed a line of more than %d bytes", lineLength)
		}
		if err != nil { // the rest of a line without its end is no ID: the process was killed
			return nil
		}
		switch text := strings.TrimSpace(string(line)); text {
		case "":
		case subject.Held:
			r.hold(true)
		case subject.Made:
			r.made()
		default:
			id := subject.Parse(text)
			id.Start = number
			r.add(id)
		}
		n++
		if time.Since(begin) > round {
			begin, n = time.Now(), 0
		}
		if n < linesPerRound {
			continue
		}
		select {
		case <-r.quit: // what is left in the pipe is read at once
		case <-c.ended:
		case <-time.After(round - time.Since(begin)):
		}
		begin, n = time.Now(), 0
	}
}

func (r *runner) add(id check.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check.Add(r.stage.now(), id)
	r.look(id.Err)
	r.lines++
	if r.keep && id.Err == "" && len(r.ids) < kept {
		r.ids = append(r.ids, id.Text)
	}
}

// made notes that the process has made its generator.
func (r *runner) made() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check.Made(r.stage.now(), r.number)
}

// hold notes that the process begins or ends to wait for a command. This wait is no call.
func (r *runner) hold(held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check.Idle(r.stage.now(), r.number)
	r.held = held
}

// holds reports whether the subject issues nothing: it holds, or has no process.
func (r *runner) holds() bool { return locked(r, func() bool { return r.held || r.child == nil }) }

// keepFromNow keeps the IDs that are issued from now on, for the host.
func (r *runner) keepFromNow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep = true
}

// send sends the results, after the end of all processes.
func (r *runner) send(control time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.ids) > 0 {
		n := min(len(r.ids), idsPerMessage)
		r.stage.link.send(Message{Result: &Result{Subject: r.name, IDs: r.ids[:n]}})
		r.ids = r.ids[n:]
	}
	result := Result{Subject: r.name, Verdict: r.check.Verdict(control), Crashed: r.crashed}
	result.Verdict.Named = r.named
	if result.Verdict.Failed > 0 || r.keep {
		result.Stderr = strings.ToValidUTF8(string(r.stderr), "")
	}
	r.stage.link.send(Message{Result: &result})
}
