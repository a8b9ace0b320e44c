package exampletest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds each wait of a test. It is long, since only failed tests reach it.
const patience = 60 * time.Second

// built has the programs of this process's tests, which Main removes.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]string // by package
}

// Main runs the tests of a package, and removes the programs that [Build] has built for
// them. Call it in TestMain.
func Main(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built.dir) // of no program, it is ""
	os.Exit(code)
}

// Build builds the program of a package of this module, such as "./httpservice", and returns
// its path. The program has the race detector if the test has it. Tests of one package share
// it, since to link one takes seconds; the package calls [Main]. With -short it skips the test.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short builds no program")
	}
	built.Lock()
	defer built.Unlock()
	if path := built.paths[pkg]; path != "" {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "tickflake-example-*")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.paths = dir, make(map[string]string)
	}
	path := filepath.Join(built.dir, filepath.Base(pkg))
	// "go run" keeps the linked program in the build cache, and "go build" links it each time.
	args := []string{"run", "-exec", "cp"}
	if Race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, pkg, path)...)
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go run -exec cp %s: %v\n%s", pkg, err, out)
	}
	built.paths[pkg] = path
	return path
}

// Root returns the directory of this module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Program is a program that runs for a test.
type Program struct {
	t              testing.TB
	cmd            *exec.Cmd
	ended          chan struct{} // closed when it has ended
	stdout, stderr output
}

// Start starts a program. It is killed when the test ends, if it still runs then. If the test
// fails, the log shows the program's output.
func Start(t testing.TB, path string, args ...string) *Program {
	t.Helper()
	p, err := StartCommand(t, exec.Command(path, args...))
	if err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return p
}

// StartCommand is [Start] for a command that the caller has prepared. The error is that of
// its start.
func StartCommand(t testing.TB, cmd *exec.Cmd) (*Program, error) {
	t.Helper()
	p := &Program{t: t, cmd: cmd, ended: make(chan struct{})}
	p.stdout.changed, p.stderr.changed = make(chan struct{}), make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ProcessState tells
	}()
	t.Cleanup(func() {
		p.Signal(os.Kill)
		<-p.ended
		if t.Failed() {
			t.Logf("%s printed:\n%s\n%s", cmd.Path, p.Stdout(), p.Stderr())
		}
	})
	return p, nil
}

// Signal sends a signal to the program, unless it has ended.
func (p *Program) Signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %v to %s: %v", sig, p.cmd.Path, err)
	}
}

// Wait waits until the program has ended and returns its exit code, or -1 if a signal ended
// it.
func (p *Program) Wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s has not ended after %v", p.cmd.Path, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Ended reports whether the program has ended.
func (p *Program) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Await waits until the standard error of the program matches pattern, and returns the match
// and its groups.
func (p *Program) Await(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.After(patience)
	for {
		text, changed := p.stderr.read()
		if match := re.FindStringSubmatch(text); match != nil {
			return match
		}
		select {
		case <-changed:
		case <-p.ended:
			if match := re.FindStringSubmatch(p.Stderr()); match != nil {
				return match
			}
			p.t.Fatalf("%s has ended with code %d, and printed nothing that matches %s", p.cmd.Path, p.cmd.ProcessState.ExitCode(), pattern)
		case <-timeout:
			p.t.Fatalf("%s has printed nothing in %v that matches %s", p.cmd.Path, patience, pattern)
		}
	}
}

// Stdout returns the standard output of the program so far.
func (p *Program) Stdout() string {
	text, _ := p.stdout.read()
	return text
}

// Stderr returns the standard error of the program so far.
func (p *Program) Stderr() string {
	text, _ := p.stderr.read()
	return text
}

// output stores what a program writes.
type output struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed when the text grows, and then replaced
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(b)
}

func (o *output) read() (text string, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.changed
}

// Until calls try until it returns nil, and fails the test with the last error after a minute.
func Until(t testing.TB, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still after %v: %v", patience, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
