//go:build unix

// Package orders tests the two services of this directory, and the code in docs/service.md,
// against the command "tickflake serve".
package orders

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig/server"
	"github.com/tickflake/tickflake/internal/rig/servertest"
)

// once runs something for all tests of this package, in a directory that TestMain removes.
type once struct {
	sync.Once
	dir string
	err error
}

var binary, packages once

func (o *once) do(run func(dir string) error) error {
	o.Do(func() {
		if o.dir, o.err = os.MkdirTemp("", "tickflake-orders-"); o.err == nil {
			o.err = run(o.dir)
		}
	})
	return o.err
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range []string{binary.dir, packages.dir} {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func output(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return err
}

// tickflake returns the path of the command, which is built once.
func tickflake(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short builds no program")
	}
	require.NoError(t, binary.do(func(dir string) error {
		cmd := exec.Command("go", "run", "-exec", "cp", ".", dir) // "go build" links anew each time
		cmd.Dir = "../../cmd/tickflake"
		return output(cmd)
	}))
	return filepath.Join(binary.dir, "tickflake")
}

// modules returns a directory with the files of this one and the packages of npm that they
// import.
func modules(t *testing.T) string {
	t.Helper()
	npm := servertest.Find(t, "npm", "npm")
	err := packages.do(func(dir string) error {
		for _, name := range []string{"package.json", "package-lock.json", "orders.mjs", "orders.py"} {
			text, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
			}
			if err != nil {
				return err
			}
		}
		return output(exec.Command(npm, "ci", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"))
	})
	if err != nil && os.Getenv(servertest.RequireEnv) != "1" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return packages.dir
}

// interpreter returns the path of a language's command, if it has the library for which
// probe looks.
func interpreter(t *testing.T, name, debian, library string, probe ...string) string {
	t.Helper()
	path := servertest.Find(t, name, debian, "/usr/bin")
	if probe != nil && exec.Command(path, probe...).Run() != nil {
		servertest.Need(t, &server.MissingError{Name: "the Redis client of " + name, Package: library})
	}
	return path
}

func python(t *testing.T) string {
	return interpreter(t, "python3", "python3", "python3-redis", "-c", "import redis")
}

func node(t *testing.T) string { return interpreter(t, "node", "nodejs", "") }

// served is a "tickflake serve" with a state directory of its own.
type served struct {
	*servertest.Process
	state      string
	resp, http int
}

// environment returns what makes commands use the server's state.
func (s *served) environment() string { return "XDG_STATE_HOME=" + s.state }

// redis returns the URL of the server for Redis clients.
func (s *served) redis() string { return "redis://127.0.0.1:" + strconv.Itoa(s.resp) }

// serve starts a server with a sequence orders of the mode, or with none.
func serve(t *testing.T, mode string) *served {
	t.Helper()
	state := t.TempDir()
	if mode != "" {
		servertest.Run(t, servertest.Config{Path: tickflake(t), Args: []string{"sequence", "create", "orders", "--mode", mode}, Env: []string{"XDG_STATE_HOME=" + state}})
	}
	return serveFrom(t, state)
}

// serveFrom starts a server from a state directory, which other servers may use.
func serveFrom(t *testing.T, state string) *served {
	t.Helper()
	s := &served{state: state, resp: servertest.Port(t), http: servertest.Port(t)}
	local := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	s.Process = servertest.Start(t, servertest.Config{
		Path: tickflake(t), Env: []string{s.environment()}, Quit: syscall.SIGTERM,
		Args: []string{"serve", "--resp", local(s.resp), "--http", local(s.http), "--grpc", "off"},
		Ready: func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, "GET", "http://"+local(s.http)+"/readyz", nil)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("not ready: %s", answer.Status)
			}
			return nil
		},
	})
	return s
}
