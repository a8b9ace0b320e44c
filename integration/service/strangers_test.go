//go:build unix

package service

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
)

const (
	readTimeout = 400 * time.Millisecond
	poll        = 10 * time.Millisecond // the pause of a loop that looks for a change
	mostMemory  = 192 << 20             // bytes that Go has ever had from the system: 40 MB, and twice the 64 MiB of replies that are kept for all
)

// Strangers ask for much and read nothing, or come, ask and go, again and again, while a client of each protocol works. None of
// its calls fails, the memory of the server is bounded, and no connection or goroutine is left. Package service's tests have
// strangers that send nothing, or too much, or come as a web page.
func TestStrangers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := fleet.For(t, fleet.Config{Store: servers.For(t, servers.Directory), Servers: 1, Strict: true, Rate: 50,
		Each: func(_ int, c *program.ServeConfig) {
			// A request may wait for a slow disk.
			c.Args = append(c.Args, "--layout", "41/4/18", "--read-timeout", readTimeout.String(), "--request-timeout", "10s")
		}})
	s := f.Members[0].Server
	require.NoError(t, f.More(ctx, 10), "before the strangers come")
	before := s.Size(ctx)
	for name, attack := range map[string]func(*testing.T, context.Context, *program.Server){"read nothing": neverRead, "come and go": comeAndGo} {
		attack(t, ctx, s)
		require.NoError(t, f.More(ctx, 10), "after those who %s", name)
		f.Recovered() // new clients are served
		require.NoError(t, eventually(ctx, func() error {
			now := s.Size(ctx)
			if now.Goroutines == 0 || now.Goroutines > before.Goroutines+8 || now.Files > before.Files+4 {
				return fmt.Errorf("those who %s: the server has grown from %+v to %+v", name, before, now)
			}
			return nil
		}))
	}
	is, err := s.Metrics(ctx)
	require.NoError(t, err)
	memory := is["go_memstats_sys_bytes"] // never falls
	t.Logf("%.0f MiB", memory/(1<<20))
	assert.Positive(t, memory)
	assert.Less(t, memory, float64(mostMemory))
	f.Verify(t)
}

// comeAndGo asks with clients of all protocols that come and go, again and again.
func comeAndGo(t *testing.T, ctx context.Context, s *program.Server) {
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

// neverRead sends many requests for many IDs each, and reads no answer.
func neverRead(t *testing.T, ctx context.Context, a *program.Server) {
	var all sync.WaitGroup
	for addr, text := range map[string]string{
		a.RESP: "*2\r\n$3\r\nIDS\r\n$5\r\n10000\r\n",
		a.HTTP: "POST /v1/ids?n=10000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
	} {
		for range 8 {
			all.Go(func() {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
				if err != nil {
					return // the server refuses it
				}
				defer func() { _ = conn.Close() }()
				_ = conn.(*net.TCPConn).SetReadBuffer(4096)
				// A request of HTTP has 10 seconds, and its answer a read timeout. To one that was cut off the kernel would
				// offer the rest for two minutes.
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				for requests := strings.Repeat(text, 100); err == nil; {
					_, err = io.WriteString(conn, requests)
				}
				if timeout, ok := err.(net.Error); ok && timeout.Timeout() { // else the server has closed the connection
					t.Errorf("%.9q: the server keeps a client that reads nothing", text)
				}
			})
		}
	}
	all.Wait()
}

// eventually calls f until it returns nil.
func eventually(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, fleet.Patience)
	defer cancel()
	for {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		fleet.Pause(ctx, poll)
	}
}
