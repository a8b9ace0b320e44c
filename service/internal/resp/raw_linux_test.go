package resp

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// connect returns both ends of a connection.
func connect(t *testing.T) (client *net.TCPConn, server net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close(); server.Close() })
	return nc.(*net.TCPConn), server
}

// The end of the stream is seen soon although it came with the last bytes, and nothing announces it again.
func TestEndWithLastBytes(t *testing.T) {
	client, nc := connect(t)
	c := newConn(newBed(t, nil).Server, nc)
	c.pipelines = steady
	c.deadline(c.limit())
	_, err := io.WriteString(client, "PING\r\n")
	require.NoError(t, err)
	require.NoError(t, client.CloseWrite())
	turn := func() (leave bool, err error) {
		require.NoError(t, c.raw.Control(func(fd uintptr) { leave, err = c.turn(fd) }))
		return leave, err
	}
	for c.pipelines == steady { // the bytes may be on their way
		_, err = turn()
		require.NoError(t, err)
	}
	assert.Equal(t, c.last.Add(recheck), c.due)
	for err == nil {
		_, err = turn()
	}
	assert.ErrorIs(t, err, io.EOF)
}

// A client that reads late gets each reply once, whether it was begun within a turn or not.
func TestLateReader(t *testing.T) {
	client, nc := connect(t)
	newBed(t, nil).start(nc)
	const small, large = 6000, 100 // more than the kernel keeps
	_, err := io.WriteString(client, strings.Repeat("IDS 2000\r\nPING\r\n", large)+strings.Repeat("IDS 100\r\n", small))
	require.NoError(t, err)
	require.NoError(t, client.CloseWrite())
	in := bufio.NewScanner(client)
	lines, last := 0, ""
	for in.Scan() {
		if text := in.Text(); len(text) > len("$19") && text[0] != '+' && text[0] != '*' {
			if text <= last {
				t.Fatalf("%s follows %s", text, last)
			}
			last = text
		}
		lines++
	}
	require.NoError(t, in.Err())
	assert.Equal(t, small*(1+2*100)+large*(1+2*2000+1), lines)
}

// A drain that begins during a turn is seen although the turn moves the deadline by which it wakes.
func TestDrainDuringTurn(t *testing.T) {
	client, nc := connect(t)
	b := newBed(t, nil)
	c := newConn(b.Server, nc)
	c.pipelines = steady
	c.deadline(c.limit())
	b.drain()
	c.wake()
	_, err := io.WriteString(client, "PING\r\n")
	require.NoError(t, err)
	for c.pipelines == steady {
		var leave bool
		require.NoError(t, c.raw.Control(func(fd uintptr) { leave, err = c.turn(fd) }))
		require.NoError(t, err)
		assert.Equal(t, c.pipelines > steady, leave)
	}
	assert.NoError(t, c.answer(), "nothing is left")
}
