package resp

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

// TestDeadlines: a connection that is believed to be empty waits for a second, and one that is
// known to be empty for the idle timeout. Else it would read again and again.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	nc, err := l.Accept()
	require.NoError(t, err)
	defer nc.Close()
	b := newBed(t, nil)
	c := newConn(b.Server, nc)
	c.raw = rawOf(nc)
	turn := func() {
		require.NoError(t, c.raw.conn.Control(func(fd uintptr) {
			c.raw.fd = fd
			assert.False(t, c.raw.turn(c))
		}))
		assert.Nil(t, c.buffer, "a connection that waits has no buffer")
	}
	turn()
	assert.Equal(t, c.last.Add(b.limits.IdleTimeout), c.due)
	for range steady {
		c.raw.short = steady
		write(t, client, "PING\r\n")
		for begun := c.last; c.last.Equal(begun); {
			turn() // the bytes may still be on their way
		}
		assert.False(t, c.due.After(c.last.Add(recheck)))
		read(t, client, 7)
		turn()
		assert.False(t, c.due.After(c.last.Add(recheck)), "the deadline stays")
		require.True(t, c.extend())
		assert.Equal(t, c.last.Add(b.limits.IdleTimeout), c.due)
		turn()
		assert.Equal(t, c.last.Add(b.limits.IdleTimeout), c.due, "and it is not shortened")
	}
	write(t, client, "PI")
	for c.begun.IsZero() {
		require.NoError(t, c.raw.conn.Control(func(fd uintptr) { c.raw.turn(c) }))
	}
	assert.NotNil(t, c.buffer)
	require.True(t, c.extend())
	assert.Equal(t, c.begun.Add(b.limits.ReadTimeout), c.due)
	assert.Equal(t, time.Duration(0), c.begun.Sub(c.last))
}

// TestTimeoutsOfDescriptors is TestTimeouts for TCP, where only the machine's time exists.
func TestTimeoutsOfDescriptors(t *testing.T) {
	t.Parallel()
	dial := newBed(t, func(_ *issuer.Config, l *Limits) {
		l.IdleTimeout, l.ReadTimeout, l.WriteTimeout = 20*time.Millisecond, 10*time.Millisecond, 30*time.Millisecond
	}).listen(t)
	c := dial()
	ended(t, c)
	c = dial()
	write(t, c, "PIN")
	ended(t, c)
	c = dial()
	write(t, c, strings.Repeat("PING\r\n", steady+1)+"P")
	assert.Contains(t, "+PONG\r\n", read(t, c, 7))
	rest, err := io.ReadAll(c)
	assert.True(t, err == nil && len(rest) == 7*steady || errors.Is(err, syscall.ECONNRESET), "%q %v", rest, err)

	// A client that never reads ends when the kernel's buffers are full, and with it the
	// memory that its replies take.
	c = dial()
	ask := strings.Repeat(array("IDS", "10000"), 100)
	for err = nil; err == nil; {
		_, err = io.WriteString(c, ask)
	}
}

// TestSteadyEnd closes the client's side together with the last bytes, when the server has
// come to believe that a short read empties the socket.
func TestSteadyEnd(t *testing.T) {
	t.Parallel()
	c := newBed(t, nil).listen(t)()
	for range 2 * steady {
		write(t, c, "PING\r\n")
		read(t, c, 7)
	}
	// With these options the kernel sends both in one segment.
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		assert.NoError(t, syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, 3, 1)) // TCP_CORK
	}))
	write(t, c, "PING\r\n")
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	assert.Equal(t, "+PONG\r\n", read(t, c, 7))
	ended(t, c)
}
