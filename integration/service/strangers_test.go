//go:build unix

package service

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
)

// Limits of the server that strangers meet.
const (
	mostConnections = 24
	readTimeout     = 400 * time.Millisecond
	mostMemory      = 128 << 20 // bytes of the server, 33 MB of which it has at rest
)

var soak = flag.Duration("service.soak", 0, "let clients come and go for so long; by default for some rounds")

// Strangers do their worst, each alone, while a client of each protocol works. None of its
// calls fails, the memory of the server is bounded, and once the strangers have gone, the
// server is as it was.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(*testing.T, context.Context, *fleet.Server){
		"flood of connections":     flood,
		"slow writers":             slowWriters,
		"clients that do not read": neverRead,
		"a web page posts":         webPage,
		"half-closed":              halfClosed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			besiege(t, mostConnections, attack)
		})
	}
}

// Connections of all protocols come, ask and go, again and again, and the server does not grow.
func TestNoGrowth(t *testing.T) {
	t.Parallel()
	besiege(t, 10_000, comeAndGo) // connections that are being closed count
}

func besiege(t *testing.T, connections int, attack func(*testing.T, context.Context, *fleet.Server)) {
	ctx := t.Context()
	f, err := fleet.StartFleet(ctx, fleet.FleetConfig{Store: servers.For(t, servers.Directory), Servers: 1, Strict: true, Rate: 50,
		Each: func(_ int, c *fleet.ServeConfig) {
			// A request may wait for a slow disk.
			c.Args = append(c.Args, "--layout", "41/4/18", "--max-connections", fmt.Sprint(connections), "--read-timeout", readTimeout.String(), "--request-timeout", "10s")
		}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	s := f.Members[0].Server
	require.NoError(t, f.More(ctx, 10), "before the strangers come")
	before := s.Size(ctx)
	attack(t, ctx, s)
	require.NoError(t, f.More(ctx, 10), "after the strangers")
	f.Recovered() // new clients are served
	require.NoError(t, eventually(ctx, func() error {
		now := s.Size(ctx)
		if now.RSS == 0 || now.RSS > mostMemory || now.Goroutines > before.Goroutines+8 || now.Files > before.Files+4 {
			return fmt.Errorf("the server has grown from %+v to %+v", before, now)
		}
		return nil
	}))
	f.Rest()
	f.Check()
	assert.Empty(t, f.Broken())
}

// comeAndGo asks with clients of all protocols that come and go, again and again.
func comeAndGo(t *testing.T, ctx context.Context, s *fleet.Server) {
	requests := 0
	for began := time.Now(); requests < fewer(2000) || time.Since(began) < *soak; {
		var all sync.WaitGroup
		for _, p := range fleet.Protocols {
			for range 4 {
				all.Go(func() {
					c := p.Open(p.At(s))
					defer c.Close() //nolint:errcheck // its answers were checked
					for range 5 {
						_, err := c.IDs(ctx, 100)
						assert.NoError(t, err, p.Name)
						_, err = c.Numbers(ctx, fleet.Segmented, 1)
						assert.NoError(t, err, p.Name)
						_, err = c.Numbers(ctx, "no-such-sequence", 1)
						assert.Error(t, err, p.Name)
					}
				})
				requests += 3 * 5
			}
		}
		all.Wait()
	}
	t.Logf("%d requests", requests)
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
				_ = conn.SetDeadline(time.Now().Add(fleet.Patience))
				f(conn)
			})
		}
	}
	all.Wait()
}

// ends reads until the server closes the connection.
func ends(t testing.TB, conn net.Conn) {
	_, err := io.Copy(io.Discard, conn)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Errorf("the server does not close the connection from %s to %s", conn.LocalAddr(), conn.RemoteAddr())
	}
}

// flood opens far more connections than the server accepts. Those beyond the limit are closed.
func flood(t *testing.T, ctx context.Context, a *fleet.Server) {
	for _, addr := range []string{a.RESP, a.GRPC, a.HTTP} {
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
			case <-time.After(fleet.Patience):
				t.Fatalf("%s holds more connections than the limit", addr)
			}
		}
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

// slowWriters send the beginning of a request, and no more.
func slowWriters(t *testing.T, ctx context.Context, a *fleet.Server) {
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
func neverRead(t *testing.T, ctx context.Context, a *fleet.Server) {
	var all sync.WaitGroup
	for addr, text := range map[string]string{
		a.RESP: "*2\r\n$3\r\nIDS\r\n$5\r\n10000\r\n",
		a.HTTP: "POST /v1/ids?n=10000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
	} {
		all.Go(func() {
			each(t, ctx, mostConnections/3, []string{addr}, func(conn net.Conn) {
				_ = conn.(*net.TCPConn).SetReadBuffer(4096)
				// One that goes on sending is cut off after four read timeouts of 10 seconds.
				_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
				requests := strings.Repeat(text, 100)
				for {
					// It fails when the server has closed the connection.
					if _, err := io.WriteString(conn, requests); err != nil {
						if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
							t.Errorf("%.9q: the server keeps a client that reads nothing", text)
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
	high := int64(0)
	finished := make(chan struct{})
	go func() { all.Wait(); close(finished) }()
	for {
		select {
		case <-finished:
			t.Logf("at most %d MiB", high>>20)
			assert.Less(t, high, int64(mostMemory))
			return
		case <-time.After(5 * poll):
			high = max(high, a.Size(ctx).RSS)
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
	s, err := tickflakev1.NewTickflakeServiceClient(conn).Stream(ctx)
	if err != nil {
		return // beyond the limit of connections
	}
	for s.Send(&tickflakev1.StreamRequest{Credit: 10_000}) == nil {
	}
}

// webPage posts commands to the RESP port, as a browser can be made to. None is executed, and
// the connection is closed.
func webPage(t *testing.T, ctx context.Context, a *fleet.Server) {
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
func halfClosed(t *testing.T, ctx context.Context, a *fleet.Server) {
	each(t, ctx, mostConnections/2, []string{a.RESP}, func(conn net.Conn) {
		_, err := io.WriteString(conn, "*1\r\n$2\r\nID\r\n")
		assert.NoError(t, err)
		assert.NoError(t, conn.(*net.TCPConn).CloseWrite())
		answer, err := io.ReadAll(conn)
		assert.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(answer), "$"), "the answer is %q", answer)
	})
}
