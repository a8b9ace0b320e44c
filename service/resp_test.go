package service_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
)

// exchange sends a text and the end of the stream on a new connection, and returns the replies.
func (r *running) exchange(in string) string {
	r.t.Helper()
	c, err := r.dial(r.t.Context(), resp)
	require.NoError(r.t, err)
	defer c.Close()
	go func() {
		if _, err := io.WriteString(c, in); err == nil {
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}()
	out, err := io.ReadAll(c)
	assert.NoError(r.t, err)
	return string(out)
}

// A client that sends what no client should has its error although it still sends, and nothing after
// it is carried out. Another client is answered. A pipeline may be longer than all buffers.
func TestRESPBytes(t *testing.T) {
	t.Parallel()
	r := start(t, listen, nil)
	const incr = "*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n"
	for _, c := range []struct{ in, want string }{
		{strings.Repeat("*1\r\n", 100_000), "-ERR Protocol error: expected '$', got \"*\"\r\n"},
		{"PING\r\n*2147483648\r\n" + incr, "+PONG\r\n-ERR Protocol error: \"*2147483648\\r\\n\": want a number of arguments up to 64, and CRLF\r\n"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\nINCR orders\r\n" + incr, "-ERR Protocol error: this is the port of the Redis protocol, not of HTTP\r\n"},
		{strings.Repeat("PING\r\n", 200_000), strings.Repeat("+PONG\r\n", 200_000)},
	} {
		got := r.exchange(c.in)
		assert.True(t, got == c.want, "%.200q: %d bytes of replies: %.200q", c.in, len(got), got)
	}
	last, err := r.caller(resp, "").Numbers(t.Context(), "orders", 1)
	require.NoError(t, err)
	assert.EqualValues(t, 1, last)
}

// A drain that cuts a client off loses no answer of a command that was carried out, although the
// client reads slowly.
func TestDrainLosesNoAnswer(t *testing.T) {
	t.Parallel()
	r := start(t, listen, func(c *service.Config) { c.Create[0].Definition.Mode = sequence.Ordered })    // the store knows what was issued
	c := r.connect(resp, strings.Repeat("INCR orders\r\nECHO "+strings.Repeat("x", 400)+"\r\n", 40_000)) // more than the kernel keeps
	in := bufio.NewReader(c)
	answered := int64(0)
	var err error
	for lines := 0; err == nil; lines++ {
		var line string
		if line, err = in.ReadString('\n'); strings.HasPrefix(line, ":") {
			answered++
		}
		if lines == 100 {
			r.stop()
			time.Sleep(100 * time.Millisecond) // the client is slow
		}
	}
	assert.ErrorIs(t, err, io.EOF)
	require.NoError(t, <-r.ended)
	info, err := sequence.Inspect(t.Context(), r.store, "orders")
	require.NoError(t, err)
	assert.Equal(t, answered, info.Last)
}

// A client that reads no reply, and has nothing on its way that the server has not read, is told at once that its
// connection has ended: the kernel does not keep its replies. If the server ends before that, it does.
func TestUnreadRepliesAreDropped(t *testing.T) {
	t.Parallel()
	for _, drains := range []bool{false, true} {
		r := start(t, listen, func(c *service.Config) {
			c.ReadTimeout, c.DrainTimeout = 50*time.Millisecond, 300*time.Millisecond
			if drains {
				c.ReadTimeout = time.Minute
			}
		})
		c := r.connect(resp, strings.Repeat("IDS 10000\r\n", 90))
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
		if drains {
			_, err := c.Read(make([]byte, 1))
			require.NoError(t, err)
			r.stop()
			assert.ErrorContains(t, <-r.ended, "resp")
		} else {
			require.Eventually(t, func() bool { return strings.Contains(r.log(), "did not read its replies") }, 10*time.Second, time.Millisecond)
		}
		_, err := io.Copy(io.Discard, c)
		assert.Equal(t, !drains, errors.Is(err, syscall.ECONNRESET), "%v", err)
	}
}

// TestMemory: a connection that waits costs at most 20 KiB, with all of it that is in this
// process: the client's end as well.
func TestMemory(t *testing.T) {
	const connections, most = 500, 20 << 10
	r := start(t, listen, nil)
	used := func() uint64 {
		runtime.GC()
		runtime.GC() // empties the pool of buffers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	open := func() {
		c := r.connect(resp, "")
		_, err := io.WriteString(c, "IDS 100\r\nINCR orders\r\nINFO\r\nECHO theend\r\n")
		require.NoError(t, err)
		for in := ""; !strings.HasSuffix(in, "theend\r\n"); {
			b := make([]byte, 8192)
			n, err := c.Read(b)
			require.NoError(t, err)
			in += string(b[:n])
		}
	}
	open()
	before := used()
	for range connections {
		open()
	}
	each := (int64(used()) - int64(before)) / connections
	t.Logf("%d bytes for each connection", each)
	assert.Less(t, each, int64(most))
	assert.Positive(t, each)
}
