//go:build unix

package service

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/snowflake"
)

// Limits of the server that strangers meet.
const (
	mostConnections = 24
	readTimeout     = 400 * time.Millisecond
	mostMemory      = 96 << 20 // bytes of the heap, of strangers and server together
)

// wide is a layout whose sequence is never used up.
func wide() snowflake.Layout {
	l := snowflake.Default()
	l.NodeBits, l.SequenceBits = 4, 18
	return l
}

// Strangers do their worst, each alone, while a client of each protocol works. None of its
// calls fails, the memory of the server is bounded, and once the strangers have gone, the
// server is as it was.
func TestStrangers(t *testing.T) {
	for name, attack := range map[string]func(*testing.T, context.Context, addresses){
		"flood of connections":     flood,
		"slow writers":             slowWriters,
		"clients that do not read": neverRead,
		"a web page posts":         webPage,
		"half-closed":              halfClosed,
	} {
		t.Run(name, func(t *testing.T) { // one after the other: each looks at the memory
			g, err := generator.New(generator.WithNode(1), generator.WithLayout(wide()))
			require.NoError(t, err)
			s := serveHere(t, service.Config{Generator: g, MaxConnections: mostConnections, ReadTimeout: readTimeout, Timeout: time.Second})
			l := &ledger{}
			done := make(chan struct{})
			var working sync.WaitGroup
			stop := sync.OnceFunc(func() { close(done); working.Wait() })
			defer stop()
			var workers []*worker
			for name, open := range callers {
				w := &worker{name: name, ledger: l}
				workers = append(workers, w)
				c := open(s.addresses)
				working.Go(func() { w.only(t, c, done) })
			}
			for _, w := range workers {
				require.NoError(t, w.more(t.Context(), 10), "before the strangers come")
			}
			before := settled()
			attack(t, t.Context(), s.addresses)
			for _, w := range workers {
				require.NoError(t, w.more(t.Context(), 10), "after the strangers")
				assert.Zero(t, w.failed.Load(), w.name)
			}
			for name, open := range callers { // new clients are served
				c := open(s.addresses)
				require.NoError(t, eventually(t.Context(), func() error { _, err := c.ids(t.Context(), 1); return err }), name)
				c.close()
			}
			require.NoError(t, eventually(t.Context(), func() error { return before.grown(4<<20, 8) }))
			stop()
			l.check(t, 40)
		})
	}
}

// only is a worker that takes IDs, and whose calls may not fail.
func (w *worker) only(t testing.TB, c caller, done <-chan struct{}) {
	defer c.close()
	for {
		select {
		case <-done:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		ids, err := c.ids(ctx, 1)
		cancel()
		if err != nil {
			w.failed.Add(1)
			t.Errorf("%s: a call failed: %v", w.name, err)
			return
		}
		w.ledger.addIDs(ids...)
		w.served.Add(1)
		time.Sleep(100 * time.Microsecond) // leave the strangers a processor
	}
}

// each calls f n times at once for each address, with a connection that is closed afterwards.
func each(t testing.TB, ctx context.Context, n int, addrs []string, f func(net.Conn)) {
	var all sync.WaitGroup
	for _, addr := range addrs {
		for range n {
			all.Go(func() {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
				if err != nil {
					return // the server refuses it
				}
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(patience))
				f(conn)
			})
		}
	}
	all.Wait()
}

func (a addresses) all() []string { return []string{a.RESP, a.GRPC, a.HTTP} }

// ends reads until the server closes the connection.
func ends(t testing.TB, conn net.Conn) {
	_, err := io.Copy(io.Discard, conn)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Errorf("the server does not close the connection from %s to %s", conn.LocalAddr(), conn.RemoteAddr())
	}
}

// flood opens far more connections than the server accepts. Those beyond the limit are closed.
func flood(t *testing.T, ctx context.Context, a addresses) {
	for _, addr := range a.all() {
		const n = 10 * mostConnections
		var conns []net.Conn
		for range n {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			require.NoError(t, err)
			conns = append(conns, conn)
		}
		closed := make(chan struct{}, n)
		for _, conn := range conns {
			go func() {
				_, _ = io.Copy(io.Discard, conn) // until either side closes it
				closed <- struct{}{}
			}()
		}
		for range n - mostConnections {
			select {
			case <-closed:
			case <-time.After(patience):
				t.Errorf("%s holds more connections than the limit", addr)
			}
		}
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

// slowWriters send the beginning of a request, and no more.
func slowWriters(t *testing.T, ctx context.Context, a addresses) {
	var all sync.WaitGroup
	for addr, text := range map[string]string{
		a.RESP: "*2\r\n$3\r\nIDS\r\n$10000",
		a.HTTP: "POST /v1/ids?n=1 HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		a.GRPC: "PRI * HTTP/2.0\r\n\r\nSM",
	} {
		all.Go(func() {
			each(t, ctx, mostConnections/2, []string{addr}, func(conn net.Conn) {
				if _, err := io.WriteString(conn, text); err == nil {
					ends(t, conn)
				}
			})
		})
	}
	all.Wait()
}

// neverRead sends many requests for many IDs each, and reads no answer.
func neverRead(t *testing.T, ctx context.Context, a addresses) {
	var all sync.WaitGroup
	for addr, text := range map[string]string{
		a.RESP: "*2\r\n$3\r\nIDS\r\n$5\r\n10000\r\n",
		a.HTTP: "POST /v1/ids?n=10000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
	} {
		all.Go(func() {
			each(t, ctx, mostConnections/3, []string{addr}, func(conn net.Conn) {
				_ = conn.(*net.TCPConn).SetReadBuffer(4096)
				requests := strings.Repeat(text, 100)
				for {
					// It fails when the server has closed the connection.
					if _, err := io.WriteString(conn, requests); err != nil {
						if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
							t.Errorf("%s keeps a client that reads nothing", addr)
						}
						return
					}
				}
			})
		})
	}
	for range mostConnections / 4 {
		all.Go(func() { neverReceive(t, ctx, a.GRPC) })
	}
	high := uint64(0)
	finished := make(chan struct{})
	go func() { all.Wait(); close(finished) }()
	for {
		select {
		case <-finished:
			t.Logf("at most %d MiB of the heap", high>>20)
			assert.Less(t, high, uint64(mostMemory))
			return
		case <-time.After(5 * time.Millisecond):
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			high = max(high, m.HeapInuse)
		}
	}
}

// neverReceive gives a stream much credit, and receives nothing.
func neverReceive(t testing.TB, ctx context.Context, addr string) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if !assert.NoError(t, err) {
		return
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 2*readTimeout)
	defer cancel()
	s, err := tickflakev1.NewTickflakeClient(conn).Stream(ctx)
	if err != nil {
		return // beyond the limit of connections
	}
	for s.Send(&tickflakev1.StreamRequest{Credit: 10_000}) == nil {
	}
}

// webPage posts commands to the RESP port, as a browser can be made to. None is executed, and
// the connection is closed.
func webPage(t *testing.T, ctx context.Context, a addresses) {
	const body = "INCR invoices\r\nID\r\nPING\r\n"
	for range 10 {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.RESP+"/", strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "text/plain")
		_, err = http.DefaultClient.Do(request) //nolint:bodyclose // there is none
		require.Error(t, err, "the answer is no HTTP")
	}
	each(t, ctx, 5, []string{a.RESP}, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: "+a.RESP+"\r\n\r\n"+body)
		answer, _ := io.ReadAll(bufio.NewReader(conn)) // a reset is as good as an end
		for line := range strings.Lines(string(answer)) {
			assert.True(t, strings.HasPrefix(line, "-"), "the RESP port answers a web page: %q", answer)
		}
	})
	// A page of another site, and one whose name was made to point here.
	for header, value := range map[string]string{"Origin": "https://evil.example", "Host": "evil.example"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.HTTP+"/v1/ids", nil)
		require.NoError(t, err)
		if header == "Host" {
			request.Host = value
		} else {
			request.Header.Set(header, value)
		}
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		got, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.GreaterOrEqual(t, answer.StatusCode, 400, "%s: %s", header, got)
		assert.NotContains(t, string(got), `"ids"`)
	}
	http.DefaultClient.CloseIdleConnections()
}

// halfClosed sends a request, closes its side, and still gets the answer.
func halfClosed(t *testing.T, ctx context.Context, a addresses) {
	each(t, ctx, mostConnections/2, []string{a.RESP}, func(conn net.Conn) {
		_, err := io.WriteString(conn, "*1\r\n$2\r\nID\r\n")
		assert.NoError(t, err)
		assert.NoError(t, conn.(*net.TCPConn).CloseWrite())
		answer, err := io.ReadAll(conn)
		assert.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(answer), "$"), "the answer is %q", answer)
	})
}
