//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/snowflake"
)

// process starts the command; the test must wait for it.
func process(t *testing.T, stdin io.Reader, stdout io.Writer, args ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(binary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // of a test that failed
	return cmd, &stderr
}

// exitCode waits for the end; it is -1 if a signal killed the process.
func exitCode(cmd *exec.Cmd) int {
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// pipe returns a pipe whose ends are closed at the end of the test.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestSignalEndsGenerateWithCompleteLines(t *testing.T) {
	for _, tt := range []struct {
		signal syscall.Signal
		code   int
		word   string
	}{{syscall.SIGINT, 130, "interrupted"}, {syscall.SIGTERM, 143, "terminated"}} {
		for _, format := range []string{"dec", "json"} {
			t.Run(tt.word+" "+format, func(t *testing.T) {
				r, w := pipe(t)
				cmd, stderr := process(t, nil, w, "generate", "--count", "1000000000000", "--node", "3", "--format", format)
				w.Close()
				out := bufio.NewReader(r)
				first, err := out.ReadString('\n')
				require.NoError(t, err)
				require.NoError(t, cmd.Process.Signal(tt.signal))
				rest, err := io.ReadAll(out)
				require.NoError(t, err)
				assert.Equal(t, tt.code, exitCode(cmd))

				all := first + string(rest)
				require.True(t, strings.HasSuffix(all, "\n"))
				lines := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
				note := regexp.MustCompile(`^tickflake: (\w+); (\d+) of 1000000000000 IDs written\n$`).FindStringSubmatch(stderr.String())
				require.Lenf(t, note, 3, "stderr is %q", stderr)
				assert.Equal(t, tt.word, note[1])
				assert.Equal(t, strconv.Itoa(len(lines)), note[2])
				if format == "dec" {
					last := snowflake.ID(-1)
					for _, line := range lines {
						id, err := snowflake.Parse(line)
						require.NoError(t, err)
						require.Greater(t, id, last)
						last = id
					}
				} else {
					assert.Regexp(t, `^\{"id":.*"sequence":\d+\}$`, lines[len(lines)-1])
				}
			})
		}
	}
}

// A signal that comes while the store is opened or the number claimed is told as such.
func TestSignalEndsAClaim(t *testing.T) {
	for _, scheme := range []string{"etcd", "nats", "redis"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		cmd, stderr := process(t, nil, io.Discard, "generate", "--store", scheme+"://"+l.Addr().String(), "--timeout", "1m")
		conn, err := l.Accept() // so it waits for the store
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		assert.Equal(t, 130, exitCode(cmd), scheme)
		assert.Equal(t, "tickflake: interrupted; 0 of 1 IDs written\n", stderr.String())
		_, _ = conn.Close(), l.Close()
	}
}

// A writer that is stuck in a full pipe cannot stop cleanly, but it can be killed.
func TestSecondSignalKills(t *testing.T) {
	r, w := pipe(t)
	cmd, stderr := process(t, nil, w, "generate", "--count", "1000000000000")
	w.Close()
	_, err := r.Read(make([]byte, 1))
	require.NoError(t, err)
	ended := make(chan int)
	go func() { ended <- exitCode(cmd) }()
	// Nothing tells when the first signal has been noted, so there are more than
	// two. They come slowly, for a flood can crash the runtime's own handler.
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		_ = cmd.Process.Signal(syscall.SIGINT)
		select {
		case code := <-ended:
			assert.Equal(t, -1, code)
			assert.Equal(t, syscall.SIGINT, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
			assert.Empty(t, stderr.String())
			return
		case <-again.C:
		}
	}
}

// As a shell starts it with "&" in a script.
func TestIgnoredSignalStaysIgnored(t *testing.T) {
	r, w := pipe(t)
	cmd := exec.Command("/bin/sh", "-c", `trap "" INT; exec "$0" "$@"`,
		binary, "generate", "--count", "3", "--layout", "41/10/0,tick=250ms")
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	w.Close()
	out := bufio.NewReader(r)
	_, err := out.ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	assert.Equal(t, 0, exitCode(cmd))
	assert.Equal(t, 2, strings.Count(string(rest), "\n"))
}

// A signal ends an import that waits for the writer of a named pipe.
func TestImportOfAPipeInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cli.Interruption{Signal: syscall.SIGINT})
	assert.Equal(t, 130, run(ctx, []string{"sequence", "import", path, "--store", "new"}, nil, io.Discard, io.Discard))
	w, err := os.OpenFile(path, os.O_RDWR, 0) // the command stops to wait
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func TestPipeClosedFromTheStart(t *testing.T) {
	for _, line := range []string{"generate", "decode 7", "layout list", "layout show twitter", "lease list", "sequence list", "serve --print-config", "serve token", "--help", "completion bash"} {
		t.Run(line, func(t *testing.T) {
			r, w := pipe(t)
			r.Close()
			cmd, stderr := process(t, nil, w, strings.Fields(line)...)
			assert.Equal(t, 0, exitCode(cmd))
			assert.Empty(t, stderr.String())
		})
	}
}

// A process without standard output would lose its IDs, so it issues none; and so on. A
// reader of the null device gets no IDs either, but the user asked for that.
func TestClosedOutput(t *testing.T) {
	state := t.TempDir()
	require.Zero(t, on(state)("sequence create orders").code)
	require.Zero(t, on(state)("sequence create moved").code)
	fleet := t.TempDir()
	require.Zero(t, on(fleet)("generate").code)
	for command, things := range map[string]string{
		"lease export --to new --yes --running --store " + fleet: "floors", "sequence export moved --to new --yes": "floors",
		"generate --count 5": "IDs", "decode 1": "decoded IDs", "lease list": "node numbers",
		"sequence next orders": "numbers", "sequence list": "sequences", "sequence show orders": "facts",
	} {
		for redirect, want := range map[string]struct {
			code int
			err  string
		}{
			">&-":         {1, "tickflake: standard output is closed, so the " + things + " would be lost; to discard them, use > /dev/null\n"},
			"> /dev/null": {0, ""},
		} {
			if !strings.HasPrefix(command, "decode ") && !strings.Contains(command, "--store") {
				redirect = `--store "$1" ` + redirect
			}
			cmd := exec.Command("/bin/sh", "-c", `exec "$0" `+command+" "+redirect, binary, state)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			assert.Equal(t, want.code, exitCode(cmd), command)
			assert.Equal(t, want.err, stderr.String(), command)
		}
	}
}
