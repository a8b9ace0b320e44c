package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// pipes is a listener of connections in memory, whose deadlines are on the clock of synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// old is a layout whose epoch lies before the time at which synctest begins.
func old(t testing.TB) []generator.Option {
	l, err := snowflake.ParseLayout("41/10/12,epoch=1999-01-01")
	require.NoError(t, err)
	return []generator.Option{generator.WithLayout(l)}
}

// A client that sends too slowly, or does not read, loses its connection in a bounded time,
// and no goroutine stays behind: synctest fails if one does.
func TestSlowClients(t *testing.T) {
	const read, timeout = 10 * time.Second, 2 * time.Second
	for name, c := range map[string]struct {
		send string
		slow string // sent byte by byte, one in a second, from then on
		want string
		at   time.Duration
	}{
		"nothing":             {"", "", "", read},
		"headers stop":        {"POST /v1/ids HTTP/1.1\r\nHost: loc", "", "", read},
		"headers drip":        {"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\n", strings.Repeat("A: b\r\n", 100), "", read},
		"HTTP/2 stops":        {"PRI * HTTP/2.0\r\n\r\nSM", "", "", read},
		"body stops":          {"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "", "HTTP/1.1 400 ", read},
		"body drips":          {"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", strings.Repeat("0", 100), "HTTP/1.1 400 ", read},
		"a body that is huge": {"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n", strings.Repeat("x", 100), "HTTP/1.1 400 ", read},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, setup{generator: old(t), config: issuer.Config{Timeout: timeout, ReadTimeout: read}})
				l := &pipes{make(chan net.Conn), make(chan struct{})}
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				conn := l.dial()
				began := time.Now()
				dripped := make(chan struct{})
				go func() {
					defer close(dripped)
					io.WriteString(conn, c.send)
					for i := range len(c.slow) {
						time.Sleep(time.Second)
						if _, err := io.WriteString(conn, c.slow[i:i+1]); err != nil {
							return
						}
					}
				}()
				got, _ := io.ReadAll(conn)
				assert.Equal(t, c.want, string(got[:min(len(got), len(c.want))]))
				if c.want == "" {
					assert.NotContains(t, string(got), " 200 ")
				}
				took := time.Since(began)
				assert.GreaterOrEqual(t, took, c.at)
				assert.LessOrEqual(t, took, c.at+timeout, "the connection stays open")
				conn.Close()
				<-dripped
				assert.NoError(t, s.Shutdown(t.Context()))
				assert.NoError(t, <-served)
			})
		})
	}
}

// A client that does not read its answer holds a connection, or a stream of one, for a
// bounded time.
func TestClientDoesNotRead(t *testing.T) {
	const read, timeout = 10 * time.Second, 2 * time.Second
	const target = "/v1/ids?n=10000"
	// The client grants no window for the bodies of answers. The request is in HPACK.
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "\x00\x04\x00\x00\x00\x00") +
		frame(1, 5, 1, "\x83\x86\x04"+string(rune(len(target)))+target+"\x01\x09localhost")
	for name, c := range map[string]struct {
		send  string
		reads bool // all but the body
	}{
		"HTTP/1.1":                 {"POST " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n", false},
		"HTTP/2":                   {preface, true},
		"HTTP/2, not even a frame": {preface, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, setup{generator: old(t), config: issuer.Config{Timeout: timeout, ReadTimeout: read}, sample: 1})
				l := &pipes{make(chan net.Conn), make(chan struct{})}
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				conn := l.dial()
				began := time.Now()
				if c.reads {
					go io.Copy(io.Discard, conn)
				}
				_, err := io.WriteString(conn, c.send)
				require.NoError(t, err)
				s.log.wait(t, `method="POST /v1/ids"`, 1) // it is logged when the write has failed
				took := time.Since(began)
				assert.Positive(t, took, "the answer was written")
				assert.LessOrEqual(t, took, read+timeout)
				ctx, cancel := context.WithTimeout(t.Context(), read+timeout)
				defer cancel()
				assert.NoError(t, s.Shutdown(ctx), "the connection stays open")
				assert.NoError(t, <-served)
				conn.Close()
			})
		})
	}
}

// frame returns a frame of HTTP/2.
func frame(kind, flags, stream byte, body string) string {
	return string([]byte{0, 0, byte(len(body)), kind, flags, 0, 0, 0, stream}) + body
}

// Headers beyond the limit are refused while they come.
func TestLongHeaders(t *testing.T) {
	t.Parallel()
	address := newServer(t, setup{}).listen(t)
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"one header":    {"GET /livez HTTP/1.1\r\nHost: localhost\r\nA: " + strings.Repeat("a", 2*maxHeader), 431},
		"many headers":  {"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("A: b\r\n", maxHeader/4), 431},
		"the address":   {"GET /" + strings.Repeat("a", 2*maxHeader), 431},
		"within bounds": {"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nA: " + strings.Repeat("a", maxHeader/2) + "\r\n\r\n", 200},
	} {
		assert.Equal(t, c.status, raw(t, address, c.request).StatusCode, name)
	}
}

// slow is a generator that has one ID in an hour, and waits for the next.
func slow(t testing.TB) []generator.Option {
	l, err := snowflake.ParseLayout("time=41,node=10,sequence=0,tick=1h,epoch=2025-01-01")
	require.NoError(t, err)
	return []generator.Option{generator.WithLayout(l), generator.WithStrategy(strategies.Wait())}
}

// A client that goes away ends its request at once, and not at the timeout.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{generator: slow(t), config: issuer.Config{Timeout: time.Hour}, sample: 1})
	address := s.listen(t)
	const request = "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\n\r\n"

	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	first, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, first.StatusCode)
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	s.log.wait(t, "code=canceled", 1)

	ctx, cancel := context.WithCancel(t.Context())
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), "POST", "http://"+address+"/v1/ids", nil)
	require.NoError(t, err)
	_, err = h2c(t).Do(r)
	require.ErrorIs(t, err, context.Canceled)
	s.log.wait(t, "code=canceled", 2)
	require.Equal(t, uint64(1), s.observer.Items())
}

// A request that waits for longer than the timeout of a request is told when to repeat.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{generator: slow(t), config: issuer.Config{Timeout: time.Millisecond}})
	require.Equal(t, http.StatusOK, s.ask(t, "POST", "/v1/ids").StatusCode)
	p := refusal(t, s.ask(t, "POST", "/v1/ids"))
	assert.Equal(t, http.StatusServiceUnavailable, p.Status)
	assert.Contains(t, p.Detail, "not served within 1ms")
	assert.Equal(t, 1.0, p.RetryAfter)
}

// A bug cuts the connection of one request, is logged, and harms no other.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{sample: 1, options: Options{Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") })}})
	address := s.listen(t)
	_, err := http.Get("http://" + address + "/metrics")
	require.ErrorIs(t, err, io.EOF)
	s.log.wait(t, "code=internal", 1)
	assert.Contains(t, s.log.String(), `level=ERROR msg="a handler panicked: please report this" method="GET /metrics" panic="a bug"`)
	assert.NotContains(t, s.log.String(), "panic serving", "it is logged twice")
	got, err := http.Get("http://" + address + "/livez")
	require.NoError(t, err)
	got.Body.Close()
	assert.Equal(t, http.StatusOK, got.StatusCode)
}
