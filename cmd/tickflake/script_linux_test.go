package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/internal/sim/disktest"
	"github.com/tickflake/tickflake/stores"
)

var update = flag.Bool("update", false, "write what the program prints into the files that it is compared with")

// TestMain makes the test binary the program, which is found on PATH.
func TestMain(m *testing.M) {
	for _, scheme := range []string{"", "file"} {
		var open stores.Opener
		open = stores.Register(scheme, func(ctx context.Context, url string) (stores.Store, error) {
			s, err := open(ctx, url)
			if err != nil {
				return nil, err
			}
			return onDisk{s}, nil
		})
	}
	_ = flag.Set("test.parallel", "8") // most of what runs waits
	testscript.Main(m, map[string]func(){"tickflake": func() { withEngines(); main() }, "tickflakes": func() { withEngines(); many() }})
}

// onDisk is a directory as on a disk of this host, wherever temporary files are, so that no warning comes of that. As the only one of
// its fleet it begins with the first node number, which the scripts know.
type onDisk struct{ stores.Store }

func (s onDisk) Traits() stores.Traits {
	t := s.Store.Traits()
	t.Scattered = false
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		t.Private = nil
	}
	t.Durability = func(context.Context) (stores.Durability, error) { return stores.Durability{}, nil }
	return t
}

// commands are those of the scripts beside the ones of testscript; see TestScripts.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"exits": exits, "fails": fails, "start": start, "signal": signalTo, "close": closePipe, "end": end, "until": until,
}

// TestScripts runs the stories in testdata with the program as a process of its own. They use the
// tools of GNU and the signals of Linux.
//
//	exits CODE PROGRAM ARGS...            run a program that ends with the code
//	fails CODE MESSAGE ARGS...            run tickflake, which says nothing but the message, in which
//	                                      * is anything on the line, and ends with the code
//	start NAME PATTERN PROGRAM ARGS...    start a program, and wait for a line of its output like PATTERN;
//	                                      $NAME is its process ID
//	signal SIGNAL NAME                    send it a signal
//	close NAME                            close the pipe of its output
//	end CODE NAME                         wait for its end; its output is that of this command
//	until PATTERN PROGRAM ARGS...         run a program until its output is like PATTERN
func TestScripts(t *testing.T) {
	if signal.Ignored(os.Interrupt) { // a shell does so for what runs in its background
		signal.Notify(make(chan os.Signal, 1), os.Interrupt) // the programs that are started do not ignore it
	}
	dockerfile, err := filepath.Abs("../../Dockerfile")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("endless", "1000000000000")
			e.Setenv("DOCKERFILE", dockerfile)
			e.Values["processes"] = make(map[string]*process)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "mounts" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return exec.Command("unshare", "--mount", "true").Run() == nil, nil
		},
		Cmds: commands,
	})
}

// withEngines gives tickflake a --timeout of a minute by default, and three more engines: broken://, silent://, and shared://DIR, a directory whose
// processes know nothing of each other's end, as in a store that hosts share. Its server is away while
// DIR/away exists, and hangs after the operations of the option after. The clocks of lease exec are off by what the
// file $STEP says: the wall clock, and how long the machine has slept.
func withEngines() {
	defaultTimeout = time.Minute
	if file, clocks := os.Getenv("STEP"), readClocks; file != "" {
		readClocks = func() reading {
			r := clocks()
			text, _ := os.ReadFile(file) // none yet
			for i, word := range strings.Fields(string(text)) {
				d, _ := time.ParseDuration(word)
				r.wall, r.slept = r.wall.Add(d*time.Duration(1-i)), r.slept+d*time.Duration(i)
			}
			return r
		}
	}
	stores.Register("broken", func(context.Context, string) (stores.Store, error) {
		return nil, fmt.Errorf("no answer: %w", syscall.EPIPE) // as of a connection, and not of the output
	})
	stores.Register("silent", func(ctx context.Context, _ string) (stores.Store, error) {
		fmt.Println("asked")
		<-ctx.Done()
		return nil, ctx.Err()
	})
	stores.Register("shared", func(ctx context.Context, rawURL string) (stores.Store, error) {
		u, err := url.Parse(rawURL)
		if err != nil {
			return nil, err
		}
		s := shared{away: filepath.Join(u.Path, "away"), left: new(atomic.Int64)}
		s.left.Store(math.MaxInt64)
		if after := u.Query().Get("after"); after != "" {
			left, err := strconv.ParseInt(after, 10, 64)
			if err != nil {
				return nil, err
			}
			s.left.Store(left)
		}
		s.Store, err = stores.Open(ctx, u.Path)
		return s, err
	})
}

// many is tickflake for each line of its input, in one process. Each has to end with the exit code that is
// the argument, or with any.
func many() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		code := strconv.Itoa(command.Run(context.Background(), newRoot, strings.Fields(lines.Text()), strings.NewReader(""), os.Stdout, os.Stderr))
		if code != os.Args[1] && os.Args[1] != "any" {
			fmt.Printf("exit code %s of: %s\n", code, lines.Text())
			os.Exit(1)
		}
	}
}

type shared struct {
	stores.Store
	away string
	left *atomic.Int64 // operations
}

// asked does an operation, unless the server hangs or is away.
func asked[T any](ctx context.Context, s shared, do func() (T, error)) (answer T, err error) {
	if s.left.Add(-1) < 0 {
		<-ctx.Done()
		return answer, ctx.Err()
	}
	if _, err := os.Stat(s.away); err == nil {
		return answer, errors.New("nobody answers")
	}
	return do()
}

// Traits has no locks.
func (shared) Traits() stores.Traits { return stores.Traits{} }

func (s shared) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	return asked(ctx, s, func() ([]stores.Cell, error) { return s.Store.List(ctx, from, to, limit) })
}

func (s shared) Read(ctx context.Context, key string) (stores.Cell, error) {
	return asked(ctx, s, func() (stores.Cell, error) { return s.Store.Read(ctx, key) })
}

func (s shared) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	return asked(ctx, s, func() (uint64, error) { return s.Store.Swap(ctx, key, version, value) })
}

// process is a program that runs, until a test lets it end.
type process struct {
	cmd    *exec.Cmd
	out    *bufio.Reader // of pipe
	pipe   *os.File
	seen   strings.Builder // the lines up to the first like the pattern
	stderr strings.Builder // to be read after the end
	ended  chan struct{}   // no more, and no zombie
}

// launch starts a program, and returns when a line of its output is like the pattern.
func launch(cmd *exec.Cmd, pattern string) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, out: bufio.NewReader(r), pipe: r, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = w, &p.stderr
	err = cmd.Start()
	w.Close()
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	for like := regexp.MustCompile(pattern); err == nil; {
		var line string
		line, err = p.out.ReadString('\n')
		p.seen.WriteString(line)
		if like.MatchString(line) {
			return p, nil
		}
	}
	p.kill()
	return nil, fmt.Errorf("%w before a line like %s:\n%s%s", err, pattern, &p.seen, &p.stderr)
}

// end waits for the end, and returns the exit code, or -1 after a signal, and all output.
func (p *process) end() (code int, out string) {
	rest, _ := io.ReadAll(p.out) // the pipe may be closed
	<-p.ended
	p.pipe.Close()
	return p.cmd.ProcessState.ExitCode(), p.seen.String() + string(rest)
}

// kill ends a process that a failed test has left.
func (p *process) kill() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
	}
	<-p.ended
	p.pipe.Close()
}

func processes(ts *testscript.TestScript) map[string]*process {
	return ts.Value("processes").(map[string]*process)
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d:\n%s%s", code, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func fails(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, append([]string{args[0], "tickflake"}, args[2:]...))
	want := "tickflake: " + strings.ReplaceAll(regexp.QuoteMeta(args[1]), `\*`, ".*") + "\n"
	if args[0] == strconv.Itoa(cli.Misuse) {
		want += "see 'tickflake( [a-z]+)* --help'\n"
	}
	if got := ts.ReadFile("stderr"); !regexp.MustCompile("^" + want + "$").MatchString(got) {
		ts.Fatalf("it says\n%s, want\n%s", got, want)
	}
	if got := ts.ReadFile("stdout"); got != "" {
		ts.Fatalf("it prints\n%s", got)
	}
}

func start(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), os.Environ()
	for _, variable := range []string{"XDG_STATE_HOME", "TICKFLAKE_STORE", "TOKEN", "STEP"} {
		cmd.Env = append(cmd.Env, variable+"="+ts.Getenv(variable))
	}
	p, err := launch(cmd, args[1])
	ts.Check(err)
	ts.Defer(p.kill)
	processes(ts)[args[0]] = p
	ts.Setenv(args[0], strconv.Itoa(p.cmd.Process.Pid))
	fmt.Fprint(ts.Stdout(), &p.seen)
}

func signalTo(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(processes(ts)[args[1]].cmd.Process.Signal(unix.SignalNum("SIG" + args[0])))
}

func closePipe(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(processes(ts)[args[0]].pipe.Close())
}

func end(ts *testscript.TestScript, _ bool, args []string) {
	p := processes(ts)[args[1]]
	code, out := p.end()
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s:\n%s", code, args[0], &p.stderr)
	}
	fmt.Fprint(ts.Stdout(), out)
	fmt.Fprint(ts.Stderr(), &p.stderr)
}

func until(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	deadline := time.Now().Add(time.Minute) // for a machine that is busy
	for {
		_ = ts.Exec(args[1], args[2:]...)
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not like %s within a minute:\n%s%s", want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// systemd is told when the server is ready and when it stops.
func TestServeSystemd(t *testing.T) {
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer told.Close()
	next := func() string {
		buffer := make([]byte, 100)
		require.NoError(t, told.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := told.Read(buffer)
		require.NoError(t, err)
		return string(buffer[:n])
	}
	cmd := exec.Command("tickflake", "serve", "--resp", "off", "--http", "127.0.0.1:0", "--grpc", "off")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "NOTIFY_SOCKET="+told.LocalAddr().String())
	p, err := launch(cmd, "Ctrl-C ends the server")
	require.NoError(t, err)
	t.Cleanup(p.kill)
	assert.Equal(t, "READY=1", next())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	code, _ := p.end()
	assert.Zero(t, code, &p.stderr)
	assert.Equal(t, "STOPPING=1", next())
}

// Every command gives up after --timeout while the disk hangs, and names the directory. The
// kernel keeps a process until its threads need a frozen disk no more, so the message counts.
func TestCommandsWhileADiskHangs(t *testing.T) {
	for kind, disk := range disktest.Disks {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir, hang := disk(t)
			path := filepath.Join(dir, "state")
			start := func(args, pattern string) *process {
				p, err := launch(exec.Command("sh", "-c", `echo started; tickflake `+args+` --store "$0" 2>&1`, path), pattern)
				require.NoError(t, err)
				t.Cleanup(p.kill)
				return p
			}
			require.NoError(t, exec.Command("tickflake", "sequence", "create", "orders", "--store", path).Run())
			back := hang()
			var hung []*process
			for _, args := range []string{
				"generate", "lease list", "lease list 0-3", "store check", "lease reserve 7 --until 2090-02-02",
				"sequence create invoices", "sequence next orders", "sequence list", "sequence list orders",
				"sequence set orders --next 100 --yes", "sequence delete orders --yes",
			} {
				hung = append(hung, start(args+" --timeout 500ms", "started"))
			}
			for _, p := range hung {
				said, err := p.out.ReadString('\n')
				require.NoError(t, err, p.cmd.Args)
				if strings.Contains(said, "(--timeout)") || kind == "silent FUSE" { // a frozen disk can be read
					assert.Contains(t, said, "gave up after 500ms (--timeout)", p.cmd.Args)
					assert.Contains(t, said, path)
				}
			}
			back()
			for _, p := range hung {
				p.end()
			}
			out, err := exec.Command("tickflake", "generate", "--store", path).CombinedOutput()
			assert.NoErrorf(t, err, "%s", out)
		})
	}
}

// TestWallClock checks the clock of lease exec after what happens to those of the machine between two looks.
func TestWallClock(t *testing.T) {
	for name, test := range map[string]struct {
		wall, awake, slept time.Duration // have gone on
		front, step        time.Duration // the clock, and a step ahead of it
		later              time.Duration // the clock at the next look, a minute later
	}{
		"nothing":             {time.Minute, time.Minute, 0, time.Minute, 0, 2 * time.Minute},
		"a step ahead":        {11 * time.Minute, time.Minute, 0, 11 * time.Minute, 10 * time.Minute, 12 * time.Minute},
		"a step too far":      {time.Minute + 1000*time.Hour, time.Minute, 0, time.Minute + time.Hour, 1000 * time.Hour, 2*time.Minute + time.Hour},
		"a step back":         {-9 * time.Minute, time.Minute, 0, 30 * time.Second, -10 * time.Minute, time.Minute},
		"a small step back":   {50 * time.Second, time.Minute, 0, 50 * time.Second, -10 * time.Second, 110 * time.Second},
		"a sleep":             {5 * time.Hour, time.Minute, 5*time.Hour - time.Minute, 5 * time.Hour, 0, 5*time.Hour + time.Minute},
		"a sleep nobody sees": {11 * time.Minute, time.Minute, 0, 11 * time.Minute, 10 * time.Minute, 12 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1e9, 0)
			now := reading{wall: start, awake: time.Hour, slept: time.Hour}
			real := readClocks
			t.Cleanup(func() { readClocks = real })
			readClocks = func() reading { return now }
			c := newWallClock()
			now = reading{start.Add(test.wall), now.awake + test.awake, now.slept + test.slept}
			assert.Equal(t, test.front, c.Now().Sub(start))
			wall, front, step, slept := c.look()
			assert.Equal(t, []time.Duration{test.wall, test.front, test.step, test.slept}, []time.Duration{wall.Sub(start), front.Sub(start), step, slept})
			now = reading{now.wall.Add(time.Minute), now.awake + time.Minute, now.slept}
			assert.Equal(t, test.later, c.Now().Sub(start))
		})
	}
}
