//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/internal/rig/servertest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// program is the service, as a process.
type program struct {
	*exampletest.Program
	addr string
}

func start(t *testing.T, path string, args ...string) program {
	t.Helper()
	p := exampletest.Start(t, path, append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	return program{p, p.Await(`serving address=(\S+)`)[1]}
}

func (p program) do(t *testing.T, method, path, body string) (int, http.Header, answer) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.addr+path, strings.NewReader(body))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // it was only read
	return res.StatusCode, res.Header, read(t, res)
}

// ids asks for n IDs.
func (p program) ids(t *testing.T, n int) []snowflake.ID {
	t.Helper()
	status, _, a := p.do(t, "POST", "/ids", fmt.Sprintf(`{"count":%d}`, n))
	require.Equal(t, http.StatusOK, status, "%+v", a)
	return parse(t, a.IDs)
}

func parse(t *testing.T, texts []string) []snowflake.ID {
	t.Helper()
	ids := make([]snowflake.ID, len(texts))
	for i, text := range texts {
		id, err := snowflake.Parse(text)
		require.NoError(t, err)
		ids[i] = id
	}
	return ids
}

// state returns what a directory tells about its only node number.
func state(t *testing.T, dir string) lease.State {
	t.Helper()
	store, err := stores.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { assert.NoError(t, store.Close()) }()
	holdings, err := lease.List(t.Context(), store)
	require.NoError(t, err)
	require.Len(t, holdings, 1)
	return holdings[0].State
}

// Many clients, a restart in good order, and one after a crash.
func TestMain(m *testing.M) { exampletest.Main(m) }

func TestService(t *testing.T) {
	t.Parallel()
	path, dir := exampletest.Build(t, "./httpservice"), t.TempDir()
	seen := make(map[snowflake.ID]bool)
	last := snowflake.ID(0)
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL, syscall.SIGTERM} {
		// It borrows, or else it would not be ready at once after the crash.
		p := start(t, path, "--store", "file:"+dir, "--node", "7", "--owner", "somebody", "--strategy", "borrow:1m")
		status, _, ready := p.do(t, "GET", "/readyz", "")
		require.Equal(t, http.StatusOK, status)
		require.True(t, ready.Ready)
		require.EqualValues(t, 7, ready.Node)
		status, _, live := p.do(t, "GET", "/livez", "")
		require.Equal(t, http.StatusOK, status)
		require.True(t, live.Live)
		require.Greater(t, p.ids(t, 1)[0], last, "it went back when it was restarted")

		answers := make([][]snowflake.ID, 8)
		var clients sync.WaitGroup
		for i := range answers {
			clients.Go(func() {
				for n := range 10 {
					answers[i] = append(answers[i], p.ids(t, 1+n)...)
				}
			})
		}
		clients.Wait()
		require.False(t, t.Failed())
		for _, ids := range answers {
			for _, id := range ids {
				require.False(t, seen[id], "ID %d came twice", id)
				seen[id] = true
				last = max(last, id)
			}
		}

		require.Equal(t, lease.Held, state(t, dir))
		p.Signal(end)
		if end == syscall.SIGKILL {
			assert.Equal(t, -1, p.Wait())
			assert.Equal(t, lease.Expired, state(t, dir))
			continue
		}
		assert.Equal(t, 0, p.Wait())
		assert.Equal(t, lease.Released, state(t, dir))
	}
}

// The commands of the README.
func TestREADME(t *testing.T) {
	addr := "127.0.0.1:" + strconv.Itoa(servertest.Port(t))
	servertest.Find(t, "curl", "curl")
	out := exampletest.RunREADME(t, "An HTTP service", "127.0.0.1:8080", addr)
	assert.Regexp(t, `\{"id":"\d+"\}\n`, out)
	assert.Regexp(t, `\{"ids":\["\d+","\d+","\d+"\]\}\n`, out)
	assert.Contains(t, out, `{"ready":true,"node":0,"granted":"`)
	assert.Contains(t, out, "lease: released node=0")
	assert.NotContains(t, out, "curl: (7)", "as if it had failed, while it waits for the service")
}

func TestREADMEMakesAnImage(t *testing.T) {
	out := exampletest.RunREADME(t, "Kubernetes")
	assert.Regexp(t, `(?m)^Dockerfile\nhttpservice$`, out)
}

// A request that is under way on SIGTERM gets its IDs, and only then is the node
// number given back.
func TestRequestsEndBeforeTheService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, exampletest.Build(t, "./httpservice"), "--store", "file:"+dir, "--grace", "1m")
	const body = `{"count":3}`
	conn, r := hold(t, p.addr, body)
	p.Signal(syscall.SIGTERM)
	refused(t, p.addr)
	require.Equal(t, lease.Held, state(t, dir))

	_, err := fmt.Fprint(conn, body)
	require.NoError(t, err)
	res, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Len(t, parse(t, read(t, res).IDs), 3)
	assert.Equal(t, 0, p.Wait())
	assert.Equal(t, lease.Released, state(t, dir))
}

// hold sends a request of which the body is missing, and returns when it has reached
// the handler, which waits for the body.
func hold(t *testing.T, addr, body string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /ids HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", addr, len(body))
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, line)
	}
	return conn, r
}

// refused waits until the service takes no new connection.
func refused(t *testing.T, addr string) {
	t.Helper()
	exampletest.Until(t, func() error {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return nil
		}
		return fmt.Errorf("it still listens (%v)", conn.Close())
	})
}
