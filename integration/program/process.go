//go:build unix

package program

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const keptOutput = 64 << 10 // bytes of the last output of a process

// quitWait is how long a process may take to end when it is asked to.
var quitWait = 10 * time.Second

// Config says how to run a process.
type Config struct {
	Path string   // of the binary, see Find
	Args []string // without the name of the binary
	Env  []string // in addition to our own, "KEY=value"
	Dir  string   // in which it runs, or "" for ours

	// User is the user that it runs as if we are root, or "" for root. If there is no such
	// user, it runs as the user nobody. If we are not root, User is ignored.
	User string

	// Line gets each line of the standard output, without its end, one at a time. Output
	// does not have them. A process has ended when Line has returned from the last one. nil:
	// Output has them.
	Line func(line string)

	// Input is the standard input, or nil for none.
	Input *os.File

	// Ready returns nil once the server is ready, and an error until then. It is
	// called again and again, with a context of a few seconds. Run ignores it; with
	// nil, a process is ready at once.
	Ready func(context.Context) error

	// Wait is how long the process has to become ready or, with Run, to end. 0 is three
	// minutes, as a disk may be slow.
	Wait time.Duration

	// Quit is the signal for Stop: the process ends at once and cleans up. nil stands
	// for SIGKILL.
	Quit os.Signal
}

// Process is a server that runs. Start, Stop and Kill may be called from any
// goroutine, one at a time.
type Process struct {
	config Config
	output output
	run    atomic.Pointer[run] // the last one; nil until the first
}

// run is a process from its start on.
type run struct {
	*os.Process
	ended chan struct{} // closed when it has been waited for
	err   error         // of that; read after ended is closed
}

func (r *run) over() bool {
	if r == nil {
		return true
	}
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Start runs a server, and returns when it is ready. If it does not become ready, or
// ctx ends before, it is killed, and the error has its output. After Start has returned,
// ctx has no effect: the caller stops the process.
func Start(ctx context.Context, c Config) (*Process, error) {
	p := &Process{config: c}
	if err := p.start(ctx, false); err != nil {
		return nil, err
	}
	return p, nil
}

// Run runs a command until it ends and returns its output. If the command fails,
// or takes too long, or ctx ends before, it is killed, and the error has its
// output.
func Run(ctx context.Context, c Config) (string, error) {
	p := &Process{config: c}
	r, err := p.launch()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.wait(), fmt.Errorf("has not ended after %v", c.wait()))
	defer cancel()
	select {
	case <-r.ended:
		err = r.err
	case <-ctx.Done():
		err = errors.Join(context.Cause(ctx), p.Kill())
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", c.Path, err, p.Output())
	}
	return p.Output(), nil
}

// Start starts a stopped process again, with the same arguments, and
// returns when it is ready. If the process ends before it is ready, it is started again:
// remains of its predecessor may have disturbed it.
func (p *Process) Start() error { return p.start(context.Background(), true) }

// Stop ends the process, by the signal that it was configured with, and by Kill if there
// is no such signal or the process still runs after ten seconds. It returns when the process has
// gone. If it does not run, Stop does nothing.
func (p *Process) Stop() error {
	if r := p.run.Load(); !r.over() && p.config.Quit != nil && r.Signal(p.config.Quit) == nil {
		within(quitWait, r.ended)
	}
	return p.Kill()
}

// within waits until ended is closed, and reports whether it is.
func within(wait time.Duration, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-time.After(wait):
		return false
	}
}

// Kill ends the process, and those that it has started, with SIGKILL. It returns when
// the process has gone. If it does not run, Kill does nothing.
func (p *Process) Kill() error {
	r := p.run.Load()
	if r.over() {
		return nil
	}
	if err := kill(r.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.config.Path, err)
	}
	<-r.ended
	return nil
}

// End asks the process to end by the signal that it was configured with, waits until it has
// gone, and returns its error. It is killed, and the error says so, if it still runs after
// Config.Wait.
func (p *Process) End() error {
	r := p.run.Load()
	if r.over() {
		return fmt.Errorf("%s does not run", p.config.Path)
	}
	if err := r.Signal(p.config.Quit); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", p.config.Path, err)
	}
	return p.Wait()
}

// Wait waits until the process has ended by itself, and returns its error. It is killed, and
// the error says so, if it still runs after Config.Wait.
func (p *Process) Wait() error {
	var late error
	r := p.run.Load()
	if !within(p.config.wait(), r.ended) {
		late = fmt.Errorf("%s has not ended after %v", p.config.Path, p.config.wait())
	}
	killed := p.Kill()
	return errors.Join(late, killed, r.err)
}

// Ended returns a channel that is closed when the present run of the process has ended. The
// process was started.
func (p *Process) Ended() <-chan struct{} { return p.run.Load().ended }

// Running reports whether the process was started and has not ended.
func (p *Process) Running() bool { return !p.run.Load().over() }

// Suspend stops the process and those that it has started until Resume or Kill, as SIGSTOP
// does. The system still accepts connections for it.
func (p *Process) Suspend() error { return p.suspend(true) }

// Resume ends the effect of Suspend.
func (p *Process) Resume() error { return p.suspend(false) }

func (p *Process) suspend(yes bool) error {
	r := p.run.Load()
	if r.over() {
		return fmt.Errorf("%s does not run", p.config.Path)
	}
	if err := suspend(r.Process, yes); err != nil {
		return fmt.Errorf("suspend or resume %s: %w", p.config.Path, err)
	}
	return nil
}

// PID returns the process's id, or 0 if it does not run.
func (p *Process) PID() int {
	if r := p.run.Load(); !r.over() {
		return r.Pid
	}
	return 0
}

// Output returns the last 64 kB of the standard output and error of all runs of the
// process.
func (p *Process) Output() string { return p.output.String() }

func (c Config) wait() time.Duration { return cmp.Or(c.Wait, 3*time.Minute) }

func (p *Process) start(ctx context.Context, again bool) error {
	wait := p.config.wait()
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("is not ready after %v", wait))
	defer cancel()
	for {
		r, err := p.launch()
		if err != nil {
			return err
		}
		if err = p.ready(ctx, r); err == nil {
			return nil
		}
		again = again && r.over() && ctx.Err() == nil
		if stop := p.Kill(); stop != nil || !again {
			return fmt.Errorf("%s: %w\n%s", p.config.Path, errors.Join(err, stop), p.Output())
		}
		time.Sleep(poll)
	}
}

const poll = 20 * time.Millisecond

// ready waits until the server is ready.
func (p *Process) ready(ctx context.Context, r *run) error {
	if p.config.Ready == nil {
		return nil
	}
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := p.config.Ready(try)
		cancel()
		if r.over() { // another server has answered
			return fmt.Errorf("has ended before it was ready: %w", errors.Join(r.err, err))
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		time.Sleep(poll)
	}
}

// launch starts the process and does not wait for it.
func (p *Process) launch() (*run, error) {
	if pid := p.PID(); pid != 0 {
		return nil, fmt.Errorf("%s runs already, as process %d", p.config.Path, pid)
	}
	cmd := exec.Command(p.config.Path, p.config.Args...)
	cmd.Dir = p.config.Dir
	cmd.Env = append(os.Environ(), p.config.Env...)
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	cmd.WaitDelay = time.Second // for a child that outlives it and has its output
	if p.config.Line != nil {
		cmd.Stdout, cmd.WaitDelay = &lines{to: p.config.Line}, time.Minute // the reader may be slow
	}
	if p.config.Input != nil {
		cmd.Stdin = p.config.Input
	}
	if err := isolate(cmd, p.config.User); err != nil {
		return nil, fmt.Errorf("run %s as user %q: %w", p.config.Path, p.config.User, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.config.Path, err)
	}
	r := &run{Process: cmd.Process, ended: make(chan struct{})}
	p.run.Store(r)
	go func() {
		r.err = cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

// lines gives what is written to it on by the line.
type lines struct {
	to   func(string)
	part []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.part = append(l.part, b...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.part = rest
		l.to(string(line))
	}
}

// output keeps the last part of what is written to it. It is safe for use by several goroutines at once.
type output struct {
	mu   sync.Mutex
	kept []byte
}

// Write keeps the bytes. Its error is nil.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, b...)
	if len(o.kept) > 2*keptOutput {
		o.kept = slices.Clone(o.kept[len(o.kept)-keptOutput:])
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.kept[max(0, len(o.kept)-keptOutput):])
}

// loopback takes every certificate: the servers make their own.
var loopback = http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // see above

// Get asks for the page at the URL by a connection of its own, with a token unless it is empty. An answer
// other than 200 is an error.
func Get(ctx context.Context, url, token string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := loopback.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s: %s", url, answer.Status, text)
	}
	return string(text), err
}

// Answers is a [Config]'s Ready for a server that answers at the URL.
func Answers(url string) func(context.Context) error {
	return func(ctx context.Context) error { _, err := Get(ctx, url, ""); return err }
}

// isolate gives a command its own process group, and another user's rights.
func isolate(cmd *exec.Cmd, name string) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithUs(cmd.SysProcAttr)
	uid, gid, ok, err := account(name)
	if ok {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return err
}

// give makes a user the owner of a directory.
func give(dir, name string) error {
	uid, gid, ok, err := account(name)
	if !ok {
		return err
	}
	return os.Chown(dir, int(uid), int(gid))
}

// account returns the ids of a user, if there is a name and we are root.
func account(name string) (uid, gid uint32, ok bool, err error) {
	if name == "" || os.Geteuid() != 0 {
		return 0, 0, false, nil
	}
	account, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, false, err
	}
	if _, err := fmt.Sscan(account.Uid+" "+account.Gid, &uid, &gid); err != nil {
		return 0, 0, false, fmt.Errorf("ids of user %q: %w", name, err)
	}
	return uid, gid, true, nil
}

// kill kills a process, its group, and its children that have left the
// group, as children of PostgreSQL do.
func kill(p *os.Process) error {
	// A stopped process starts no more children. If it has ended, its id may be another's.
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	children := descendants(p.Pid)
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	err := p.Kill()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return err
}

// suspend stops or continues a process and its descendants.
func suspend(p *os.Process, yes bool) error {
	signal := syscall.SIGCONT
	if yes {
		signal = syscall.SIGSTOP
	}
	// The parent first: while it is stopped, it starts no more.
	if err := p.Signal(signal); err != nil {
		return err
	}
	pids := append([]int{p.Pid}, descendants(p.Pid)...)
	for _, pid := range pids[1:] {
		_ = syscall.Kill(pid, signal) // it may have ended
	}
	for _, pid := range pids {
		if yes {
			awaitStop(pid)
		}
	}
	return nil
}
