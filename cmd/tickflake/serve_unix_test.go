//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/snowflake"
)

// served is a "tickflake serve" that runs.
type served struct {
	t        *testing.T
	cmd      *exec.Cmd
	greeting []string
	stderr   *strings.Builder // read it after the end
	state    string           // its XDG_STATE_HOME
}

// anyPorts make serve listen where it is free.
var anyPorts = []string{"--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"}

// startServe starts the command, and returns when it has said how to call it.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	cmd := exec.Command(binary, append(append([]string{"serve"}, anyPorts...), args...)...)
	cmd.Env = os.Environ()
	return startServing(t, cmd, t.TempDir())
}

// startServing starts a command that is serve, with its state in a directory.
func startServing(t *testing.T, cmd *exec.Cmd, state string) *served {
	t.Helper()
	s := &served{t: t, cmd: cmd, stderr: &strings.Builder{}, state: state}
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+s.state)
	r, w := pipe(t)
	cmd.Stdout, cmd.Stderr = w, s.stderr
	require.NoError(t, cmd.Start())
	w.Close()
	t.Cleanup(func() {
		if cmd.ProcessState == nil { // of a test that failed
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Log(s.stderr)
		}
	})
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		s.greeting = append(s.greeting, lines.Text())
		if strings.HasSuffix(lines.Text(), "Ctrl-C ends the server.") {
			return s
		}
	}
	code := exitCode(cmd)
	require.FailNow(t, "it ended before it served", "exit code %d\n%s", code, s.stderr)
	return nil
}

// line returns the line of the greeting that matches.
func (s *served) line(pattern string) string {
	s.t.Helper()
	for _, line := range s.greeting {
		if regexp.MustCompile(pattern).MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	require.FailNow(s.t, "the greeting has no line like "+pattern, strings.Join(s.greeting, "\n"))
	return ""
}

// paste runs the line of the greeting that matches in a shell, and returns what it prints.
func (s *served) paste(pattern string) string {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", s.line(pattern))
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+s.state)
	out, err := cmd.Output()
	require.NoError(s.t, err, "%s: %s", s.line(pattern), out)
	return strings.TrimSpace(string(out))
}

// http returns the address of HTTP.
func (s *served) http() string {
	return regexp.MustCompile(`https?://[^/]+`).FindString(s.line(`v1/ids`))
}

// end sends SIGTERM, and returns the exit code.
func (s *served) end() int {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	return exitCode(s.cmd)
}

// grpcCall is a line for grpcurl.
var grpcCall = regexp.MustCompile(`^grpcurl -plaintext -d '(.*)' (\S+) tickflake\.v1\.(\S+)$`)

// The lines of the greeting work when they are pasted, and the numbers are those of
// "tickflake sequence".
func TestServeGreeting(t *testing.T) {
	servertest.Find(t, "curl", "curl")
	servertest.Find(t, "redis-cli", "redis-tools")
	s := startServe(t)

	layout := snowflake.Default()
	seen := make(map[snowflake.ID]bool)
	issued := func(id snowflake.ID) {
		d, err := layout.Decode(id)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), d.Time, time.Minute)
		assert.False(t, seen[id], id)
		seen[id] = true
	}
	var ids struct{ IDs []snowflake.ID }
	require.NoError(t, json.Unmarshal([]byte(s.paste(`curl.*v1/ids`)), &ids))
	require.Len(t, ids.IDs, 3)
	for _, id := range ids.IDs {
		issued(id)
	}
	id, err := snowflake.Parse(s.paste(`redis-cli.* ID$`))
	require.NoError(t, err)
	issued(id)

	call := func(pattern string, request, answer proto.Message) {
		t.Helper()
		parts := grpcCall.FindStringSubmatch(s.line(pattern))
		require.NotNil(t, parts, s.line(pattern))
		require.NoError(t, protojson.Unmarshal([]byte(parts[1]), request))
		conn, err := grpc.NewClient(parts[2], grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.Invoke(t.Context(), "/tickflake.v1."+parts[3], request, answer))
	}
	var taken tickflakev1.TakeResponse
	call(`grpcurl.*Take`, &tickflakev1.TakeRequest{}, &taken)
	count := 0
	for _, run := range taken.Runs {
		for i := range run.Count {
			issued(snowflake.ID(run.First + i*run.Stride))
			count++
		}
	}
	assert.Equal(t, 3, count)

	assert.Contains(t, s.paste(`sequence create`), `sequence "orders" is created`)
	var number struct{ First string }
	require.NoError(t, json.Unmarshal([]byte(s.paste(`curl.*sequences`)), &number))
	assert.Equal(t, "1", number.First)
	assert.Equal(t, "2", s.paste(`redis-cli.* INCR`))
	var numbers tickflakev1.NumberResponse
	call(`grpcurl.*Number`, &tickflakev1.NumberRequest{}, &numbers)
	assert.EqualValues(t, 3, numbers.First)

	page, err := http.Get(regexp.MustCompile(`^http://\S+/`).FindString(s.greeting[len(s.greeting)-1]))
	require.NoError(t, err)
	defer page.Body.Close()
	assert.Equal(t, http.StatusOK, page.StatusCode)

	assert.Equal(t, 0, s.end(), s.stderr)
	t.Setenv("XDG_STATE_HOME", s.state)
	assert.Equal(t, result{0, "4\n", ""}, tickflake("sequence", "next", "orders"), "the server gave back what it had reserved")
	assert.Regexp(t, `(?m)^\d+ +released `, tickflake("lease", "list").out)
	assert.Regexp(t, `level=INFO msg=serving resp=127\.0\.0\.1:\d+ http=127\.0\.0\.1:\d+ grpc=127\.0\.0\.1:\d+\n`, s.stderr)
}

// The IDs and the sequences of a store that the user names are both in it.
func TestServeStore(t *testing.T) {
	servertest.Find(t, "redis-cli", "redis-tools")
	dir := t.TempDir()
	path := configFile(t, "create: [{prefix: order-, mode: ordered, start: 100, max: 101}]")
	s := startServe(t, "--store", dir, "--config", path, "--layout", "twitter", "--node", "5", "--http", "off", "--grpc", "off")
	assert.NotContains(t, strings.Join(s.greeting, "\n"), "curl")
	assert.Contains(t, s.line(`sequence create`), " --store "+dir)
	redis := strings.TrimSuffix(s.line(`redis-cli.* ID$`), "ID")
	ask := func(command string) string {
		out, err := exec.Command("/bin/sh", "-c", redis+command).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	id, err := snowflake.Parse(ask("ID"))
	require.NoError(t, err)
	twitter := snowflake.Twitter()
	d, err := twitter.Decode(id)
	require.NoError(t, err)
	assert.EqualValues(t, 5, d.Node)
	assert.Equal(t, "100", ask("INCR order-7"))
	assert.Equal(t, "101", ask("INCR order-7"))
	assert.Contains(t, ask("INCR order-7"), "ERR ")
	assert.Contains(t, ask("INCR invoices"), "tickflake sequence create invoices")
	assert.Equal(t, 0, s.end(), s.stderr)
	assert.Regexp(t, `order-7 +used up +ordered`, tickflake("sequence", "list", "--store", dir).out)
	assert.Regexp(t, `(?m)^5 +released `, tickflake("lease", "list", "--store", dir).out)
}

// Somebody else's port is an error that names the setting, wherever it came from.
func TestServePortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().String()
	want := ": cannot listen at " + taken + ": another program listens there: choose another address, port 0, or off\n"
	assert.Equal(t, result{1, "", "tickflake: --http" + want}, tickflake("serve", "--resp", "127.0.0.1:0", "--http", taken))
	path := configFile(t, "resp: 127.0.0.1:0\n\ngrpc: "+taken+"\nhttp: off\n")
	assert.Equal(t, result{1, "", "tickflake: " + path + ":3: grpc" + want}, tickflake("serve", "--config", path))
	t.Setenv("TICKFLAKE_RESP", taken)
	assert.Equal(t, result{1, "", "tickflake: $TICKFLAKE_RESP" + want}, tickflake("serve"))
}

// With JSON there are no lines for people.
func TestServeLogsJSON(t *testing.T) {
	r, w := pipe(t)
	dir := t.TempDir()
	cmd := exec.Command(binary, append(append([]string{"serve"}, anyPorts...), "--log-format", "json", "--store", dir)...)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, w
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	w.Close()
	var messages []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var line struct{ Msg, HTTP string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
		messages = append(messages, line.Msg)
		if line.Msg == "serving" {
			assert.NotEmpty(t, line.HTTP)
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		}
	}
	assert.Equal(t, 0, exitCode(cmd))
	assert.Equal(t, []string{"lease: claimed", "serving", "lease: released"}, messages)
	printed, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Empty(t, printed)
}

// A second signal ends the drain, and the node number is released all the same.
func TestServeSecondSignal(t *testing.T) {
	s := startServe(t, "--unready-for", "1h")
	ready := func() int {
		res, err := http.Get(s.http() + "/readyz")
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res.StatusCode
	}
	assert.Equal(t, http.StatusOK, ready())
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGINT))
	require.Eventually(t, func() bool { return ready() == http.StatusServiceUnavailable }, 10*time.Second, time.Millisecond)
	time.Sleep(300 * time.Millisecond) // at once it would be the same signal
	assert.Equal(t, 1, s.end())
	assert.Contains(t, s.stderr.String(), "tickflake: service: the drain was cut short")
	assert.Contains(t, s.stderr.String(), `msg="lease: released"`)
}

// A signal to the process and one to its group are one.
func TestCutDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		signals, ended, aborts := make(chan os.Signal, 1), make(chan struct{}), 0
		defer close(ended)
		go cutDrain(ctx, signals, func() { aborts++ }, ended)
		cancel(cli.Interruption{Signal: syscall.SIGTERM})
		for range 2 {
			signals <- syscall.SIGTERM
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		assert.Zero(t, aborts)
		signals <- syscall.SIGTERM
		synctest.Wait()
		assert.Equal(t, 1, aborts)
	})
}

// A server that cannot get a further grant, ever, ends with an error.
func TestServeLosesItsNode(t *testing.T) {
	url := natsURL(t)
	s := startServe(t, "--layout", "41/10/6", "--window", "300ms", "--node", "7", "--store", url)
	got := tickflake("lease", "release", "7", "--yes", "--store", url)
	require.Zero(t, got.code, got.err)
	assert.Equal(t, 1, exitCode(s.cmd))
	assert.Regexp(t, `\ntickflake: the node number is lost: node number 7 is held by another process: .*\n$`, s.stderr)
}

// Tokens are needed if there are clients, each may do what it may, and no output shows them.
func TestServeClients(t *testing.T) {
	made := strings.Fields(tickflake("serve", "token").out)
	token, hash := made[1], made[3]
	tokenFile := filepath.Join(t.TempDir(), "token")
	const second = "another-token-of-a-client"
	require.NoError(t, os.WriteFile(tokenFile, []byte(second+"\n"), 0o600))
	require.NoError(t, os.Chmod(tokenFile, 0o604))
	path := configFile(t, "access-log: 1\nclients:\n  - name: shop\n    token-hash: "+hash+"\n  - {name: web, token-file: "+tokenFile+", ids: false, sequences: ['order-*']}\ncreate: [{prefix: order-}]\n")
	s := startServe(t, "--config", path)

	post := func(token, path string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http()+path, nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res.StatusCode
	}
	assert.Equal(t, 401, post("", "/v1/ids"))
	assert.Equal(t, 401, post("guess-guess-guess-guess", "/v1/ids"))
	assert.Equal(t, 200, post(token, "/v1/ids"))
	assert.Equal(t, 403, post(token, "/v1/sequences/order-1"))
	assert.Equal(t, 403, post(second, "/v1/ids"))
	assert.Equal(t, 200, post(second, "/v1/sequences/order-1"))

	servertest.Find(t, "redis-cli", "redis-tools")
	t.Setenv("TOKEN", token)
	_, err := snowflake.Parse(s.paste(`redis-cli.* ID$`))
	require.NoError(t, err)
	assert.Contains(t, s.line(`grpcurl.*Take`), `-H "Authorization: Bearer $TOKEN"`)

	assert.Equal(t, 0, s.end(), s.stderr)
	shown := s.stderr.String() + strings.Join(s.greeting, "\n")
	for _, secret := range []string{token, second, "guess-guess"} {
		assert.NotContains(t, shown, secret)
	}
	assert.Contains(t, shown, "every user can read "+tokenFile+", and it holds a token")
	assert.Contains(t, shown, "client=web")
}
