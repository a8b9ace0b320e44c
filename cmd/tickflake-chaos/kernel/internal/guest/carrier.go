//go:build linux

package guest

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
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
	pipe   *os.File      // its standard output
	lines  *bufio.Reader // of it
	told   *gob.Decoder  // of lines, unless it is the program of a user
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
	p.told = gob.NewDecoder(p.lines)
	go func() { // ends with the process, which its stage kills
		p.err = cmd.Wait()
		close(p.ended)
	}()
	if c.program != nil {
		return p, nil
	}
	_ = p.pipe.SetReadDeadline(time.Now().Add(startLimit))
	for range c.records {
		if err := p.told.Decode(new(subject.Told)); err != nil {
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

// read reads all that a process tells.
func (c *carrier) read(p *process) error {
	if c.program != nil {
		return c.readLines(p)
	}
	for {
		var told subject.Told
		err := p.told.Decode(&told)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrDeadlineExceeded): // the process was killed
			return nil
		case err != nil:
			return fmt.Errorf("what the subjects tell is damaged: %w", err)
		}
		c.records[told.Subject].take(p.number, told)
	}
}

// readLines reads all lines of a program, at a bounded rate while it runs. Each is an ID.
func (c *carrier) readLines(p *process) error {
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
		call := check.ID{Took: -1, Text: text}
		if strings.ContainsAny(text, " \t") || !utf8.ValidString(text) {
			call = check.ID{Took: -1, Err: fmt.Sprintf("a line is no ID: %.100q", text)}
		}
		if text != "" {
			c.records[0].take(p.number, subject.Told{Calls: []check.ID{call}})
		}
		select {
		case <-c.quit: // what is left in the pipe is read at once
		case <-p.ended:
		case <-time.After(lineEvery):
		}
	}
}

const (
	logKept = 2000
	// kept is how many IDs of one subject go to the host.
	kept = 1 << 17
)

// record is what all processes of a subject have printed.
type record struct {
	stage  *Stage
	place  subject.Place
	other  bool // nobody waits for it: a generator that is not ours, or need not issue again
	shares bool // it may share its state with a second process
	drifts bool // its keeper hears of a clock that was wrong

	mu    sync.Mutex // of all below
	check *check.Checker
	lines int
	held  bool // it waits for a command
	keep  bool // all IDs from now on
	ids   []string
	// before is the marker of VMClock up to which IDs are not kept: see often. 0: all are.
	before uint64
	log    []byte // its end
	cause  bool   // an error or the log had one of the causes of the fault
	// crashed is how a process ended that nothing here has killed: a panic.
	crashed string
}

// do changes what belongs to mu, at an instant of the stage.
func (l *record) do(change func(now time.Duration)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.stage.now())
}

// take takes what the process with this number tells.
func (l *record) take(number int, told subject.Told) {
	if told.Log != "" {
		_, _ = l.Write([]byte(told.Log))
	}
	l.do(func(now time.Duration) {
		if told.Made || told.Held {
			l.check.Made(now, number)
			l.held = told.Held
		}
		for _, id := range told.Calls {
			id.Start = number
			for id.Text = range strings.SplitSeq(id.Text, subject.And) {
				l.add(now, id)
			}
		}
	})
}

// add counts an ID or a failed call. The caller has locked mu.
func (l *record) add(now time.Duration, id check.ID) {
	l.check.Add(now, id)
	l.look(id.Err)
	l.lines++
	if l.keep && id.Err == "" && (l.before == 0 || id.Marker > l.before) && len(l.ids) < kept {
		l.ids = append(l.ids, id.Text)
	}
}

// Write keeps the end of the log.
func (l *record) Write(text []byte) (int, error) {
	l.do(func(time.Duration) {
		all := append(l.log, text...)
		l.look(string(all))
		l.log = append([]byte(nil), all[max(0, len(all)-logKept):]...)
	})
	return len(text), nil
}

// look notes whether a text names a cause of the fault. The caller has locked mu.
func (l *record) look(text string) {
	l.cause = l.cause || slices.ContainsFunc(l.stage.causes, func(c string) bool { return strings.Contains(text, c) })
}

// ended notes the end of a process that was killed, or how it ended by itself.
func (l *record) ended(at time.Duration, number int, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check.Ended(at, number)
	if how == "" {
		return
	}
	l.crashed = how
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(l.log), "")), "\n")
	said := lines[len(lines)-1]
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "panic: ") }); i >= 0 {
		said = lines[i] // the last line is one of the stack
	}
	if said != "" {
		how += ": " + said
	}
	l.add(at, check.ID{Err: "the process ended by itself: " + how, Start: number})
}

// is reports whether something holds of what belongs to mu.
func (l *record) is(done func(*record) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return done(l)
}

// What a stage waits for: an ID or an error, the end of its calls, and an ID after the fault.
func issued(l *record) bool   { return l.lines > 0 || l.place.Wait }
func holds(l *record) bool    { return l.held }
func recovers(l *record) bool { return l.check.Recovers() }
func warned(l *record) bool   { return l.cause || !l.drifts }

// result is what there is to tell after the end of all processes.
func (l *record) result() *Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &Result{Subject: l.place.Subject, Verdict: l.check.Verdict(), IDs: l.ids, Crashed: l.crashed}
	r.Verdict.Named = l.cause
	if r.Verdict.Failed > 0 || l.keep {
		r.Stderr = strings.ToValidUTF8(string(l.log), "")
	}
	return r
}
