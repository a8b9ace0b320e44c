package service_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/stores/storetest"
)

// log collects lines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newGenerator(t *testing.T) *generator.Generator {
	t.Helper()
	g, err := generator.New(generator.WithNode(1))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// running is a server under test.
type running struct {
	*service.Server
	log                      *logs
	resp, grpc, http, probes string // addresses
	stop                     context.CancelFunc
	ended                    chan error
}

// start runs a server of all three protocols with a sequence "orders". The test fails if Run
// returns an error, unless the test takes it from ended.
func start(t *testing.T, change func(*service.Config)) *running {
	t.Helper()
	r := &running{log: &logs{}, ended: make(chan error, 1)}
	c := service.Config{
		Generator: newGenerator(t), Store: storetest.NewMemory(), RESP: listen(t), GRPC: listen(t), HTTP: listen(t),
		Create: []service.Create{{Prefix: "orders", Definition: sequence.Definition{Start: 1}}}, Logger: r.log.logger(),
	}
	if change != nil {
		change(&c)
	}
	var err error
	r.Server, err = service.New(c)
	require.NoError(t, err)
	for _, l := range []struct {
		l net.Listener
		a *string
	}{{c.RESP, &r.resp}, {c.GRPC, &r.grpc}, {c.HTTP, &r.http}, {c.Probes, &r.probes}} {
		if l.l != nil {
			*l.a = l.l.Addr().String()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.ended <- r.Run(ctx); close(r.ended) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-r.ended)
	})
	return r
}

// line is a connection to the Redis protocol.
type line struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, address string) *line {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	return lineOf(t, c)
}

func lineOf(t *testing.T, c net.Conn) *line {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return &line{c, bufio.NewReader(c)}
}

// ask sends a command and returns the first line of its answer, and that of a bulk string.
func (l *line) ask(t *testing.T, command string) string {
	t.Helper()
	_, err := io.WriteString(l, command+"\r\n")
	require.NoError(t, err)
	return l.read(t)
}

func (l *line) read(t *testing.T) string {
	t.Helper()
	text, err := l.r.ReadString('\n')
	require.NoError(t, err)
	if strings.HasPrefix(text, "$") {
		text, err = l.r.ReadString('\n')
		require.NoError(t, err)
	}
	return strings.TrimSpace(text)
}

// call makes a request of HTTP and returns the code and the body.
func call(t *testing.T, client *http.Client, method, url, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// client returns a client of HTTP whose connections end with the test.
func client(t *testing.T, c *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// goroutines returns the stacks of goroutines that run code of the service or its servers.
func goroutines() (found []string) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "tickflake/service/internal") || strings.Contains(stack, "tickflake/service.(") || strings.Contains(stack, "grpc/internal/transport") {
			found = append(found, stack)
		}
	}
	return found
}

// noGoroutine fails unless all goroutines of the service end soon: some have done their work
// and not returned, and connections of clients end.
func noGoroutine(t *testing.T) {
	t.Helper()
	var left []string
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if left = goroutines(); len(left) == 0 || time.Now().After(until) {
			break
		}
	}
	require.Empty(t, strings.Join(left, "\n\n"))
}
