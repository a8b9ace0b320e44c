//go:build unix

package servertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
)

// The test binary is the server, too: it counts its runs in a file, and tells whoever
// connects.
func TestMain(m *testing.M) {
	if addr := os.Getenv("SERVERTEST_ADDR"); addr != "" {
		if err := serve(addr); err != nil {
			fmt.Println("server:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(addr string) error {
	old, _ := os.ReadFile("runs")
	if err := os.WriteFile("runs", append(old, 'x'), 0o600); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("run", len(old)+1, "listens")
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprint(conn, len(old)+1)
		_ = conn.Close()
	}
}

func ask(ctx context.Context, addr string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func config(t *testing.T, user string) (servertest.Config, string) {
	self, err := os.Executable()
	require.NoError(t, err)
	// Another user may not enter the directory in which it was built.
	dir := servertest.Dir(t, user)
	binary, err := os.ReadFile(self)
	require.NoError(t, err)
	path := filepath.Join(dir, "server")
	require.NoError(t, os.WriteFile(path, binary, 0o755))
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(servertest.Port(t)))
	return servertest.Config{
		Path: path,
		Dir:  dir,
		Env:  []string{"SERVERTEST_ADDR=" + addr},
		User: user,
		Ready: func(ctx context.Context) error {
			_, err := ask(ctx, addr)
			return err
		},
	}, addr
}

func TestKilledAndStartedOnTheSameData(t *testing.T) {
	c, addr := config(t, "nobody")
	var p *servertest.Process
	t.Run("while the test runs", func(t *testing.T) {
		p = servertest.Start(t, c)
		for run := 1; run <= 3; run++ {
			answer, err := ask(t.Context(), addr)
			require.NoError(t, err)
			assert.Equal(t, strconv.Itoa(run), answer)
			assert.NotZero(t, p.PID())
			assert.ErrorContains(t, p.Start(), "runs already")

			require.NoError(t, p.Kill())
			require.NoError(t, p.Kill(), "which does nothing")
			assert.Zero(t, p.PID())
			_, err = ask(t.Context(), addr)
			assert.Error(t, err, "nobody is there")
			require.NoError(t, p.Start())
		}
		assert.Contains(t, p.Output(), "run 1 listens\n")
		assert.Contains(t, p.Output(), "run 4 listens\n")
	})
	assert.Zero(t, p.PID())
	_, err := ask(t.Context(), addr)
	assert.Error(t, err, "it has ended with its test")
	info, err := os.Stat(filepath.Join(c.Dir, "runs"))
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		assert.NotZero(t, info.Sys().(*syscall.Stat_t).Uid, "it did not run as root")
	}
}

// A server that ends at its restart, because something of its predecessor is still
// there, is started until it stays.
func TestRestartedUntilItStays(t *testing.T) {
	c, addr := config(t, "")
	p := servertest.Start(t, c)
	require.NoError(t, p.Kill())
	blocker, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	go func() {
		for !strings.Contains(p.Output(), "server: ") { // it has ended
			time.Sleep(time.Millisecond)
		}
		_ = blocker.Close()
	}()
	require.NoError(t, p.Start())
}

// testing.TB that fails and skips into a string.
type fakeTB struct {
	testing.TB
	said *string
}

type stopped struct{}

func (f fakeTB) stop(how, format string, args ...any) {
	*f.said = how + fmt.Sprintf(format, args...)
	panic(stopped{})
}

func (f fakeTB) Fatalf(format string, args ...any) { f.stop("fatal: ", format, args...) }
func (f fakeTB) Skipf(format string, args ...any)  { f.stop("skip: ", format, args...) }
func (f fakeTB) Fatal(args ...any)                 { f.stop("fatal: ", "%s", fmt.Sprint(args...)) }

// stops returns what f says by Fatal or Skip.
func stops(t *testing.T, f func(testing.TB)) (said string) {
	defer func() {
		if r := recover(); r != nil && r != (stopped{}) {
			panic(r)
		}
	}()
	f(fakeTB{t, &said})
	return "nothing"
}

func TestServerThatIsNeverReady(t *testing.T) {
	c, _ := config(t, "")
	c.Env = []string{"SERVERTEST_ADDR=nonsense"}
	said := stops(t, func(t testing.TB) { servertest.Start(t, c) })
	assert.Contains(t, said, "has ended before it was ready: exit status 1")
	assert.Contains(t, said, "server: listen tcp: address nonsense", "what it has printed is shown")

	c, addr := config(t, "")
	c.Wait = 100 * time.Millisecond
	c.Ready = func(context.Context) error {
		for _, err := ask(t.Context(), addr); err != nil; _, err = ask(t.Context(), addr) {
			time.Sleep(time.Millisecond) // until it has printed that it listens
		}
		return errors.New("it is warming up")
	}
	said = stops(t, func(t testing.TB) { servertest.Start(t, c) })
	assert.Contains(t, said, "is not ready after 100ms: it is warming up")
	assert.Contains(t, said, "run 1 listens")
}

func TestRun(t *testing.T) {
	sh := servertest.Find(t, "sh", "dash")
	out := servertest.Run(t, servertest.Config{Path: sh, Args: []string{"-c", "echo $WHAT; pwd >&2"}, Dir: "/", Env: []string{"WHAT=this"}})
	assert.Equal(t, "this\n/\n", out)
	said := stops(t, func(t testing.TB) {
		servertest.Run(t, servertest.Config{Path: sh, Args: []string{"-c", "echo because; exit 3"}})
	})
	assert.Contains(t, said, "exit status 3\nbecause\n")
	said = stops(t, func(t testing.TB) {
		servertest.Run(t, servertest.Config{Path: sh, Args: []string{"-c", "sleep 600"}, Wait: 50 * time.Millisecond})
	})
	assert.Contains(t, said, "has not ended after 50ms")
}

// A child that has left its parent's group and session is killed as well.
func TestKillFindsChildren(t *testing.T) {
	sh, _ := servertest.Find(t, "sh", "dash"), servertest.Find(t, "setsid", "util-linux")
	ready := func(out func() string) string {
		for {
			if line, _, ok := strings.Cut(out(), "\n"); ok {
				return line
			}
			time.Sleep(time.Millisecond)
		}
	}
	p := servertest.Start(t, servertest.Config{Path: sh, Args: []string{"-c", "setsid sh -c 'echo $$; sleep 600' & wait"}})
	child, err := strconv.Atoi(ready(p.Output))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(child, 0), "it lives")
	require.NoError(t, p.Kill())
	assert.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, time.Millisecond)
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"14", "15"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, version, "bin"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "bin", "sh"), []byte("#!/bin/sh\n"), 0o755))
	}
	pattern := filepath.Join(dir, "*", "bin")
	assert.Equal(t, filepath.Join(dir, "15", "bin", "sh"), servertest.Find(t, "sh", "dash", "/nowhere", pattern))
	assert.NotEmpty(t, servertest.Find(t, "sh", "dash", "/nowhere"))

	find := func(t testing.TB) { servertest.Find(t, "no-such-server", "its-package", pattern) }
	t.Setenv(servertest.RequireEnv, "")
	assert.Equal(t, "skip: no-such-server is not installed; on Debian or Ubuntu: apt-get install its-package", stops(t, find))
	t.Setenv(servertest.RequireEnv, "1")
	assert.Contains(t, stops(t, find), "fatal: no-such-server is not installed")
}
