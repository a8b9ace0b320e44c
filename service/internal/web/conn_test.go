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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

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

// h2c returns a client that speaks HTTP/2 without TLS.
func h2c(t testing.TB) *http.Client {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &p}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
