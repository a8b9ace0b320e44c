package resp

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

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

// A socket does what its connection does: it waits, it ends, and it keeps to deadlines.
func TestSocket(t *testing.T) {
	t.Parallel()
	client, nc := connect(t)
	s, try := quick(nc)
	go func() {
		time.Sleep(time.Millisecond)
		_, _ = io.WriteString(client, "PING")
		_ = client.CloseWrite()
	}()
	got, err := io.ReadAll(s)
	require.NoError(t, err)
	assert.Equal(t, "PING", string(got))
	part, all := make([]byte, 1<<20), 0
	for n := 1; n > 0; all += n { // the kernel takes some megabytes, and then nothing
		n, err = try(part)
		require.NoError(t, err)
	}
	assert.Positive(t, all)
	require.NoError(t, s.SetDeadline(time.Unix(1, 0)))
	_, err = s.Read(part)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = try(part)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, nc.Close())
	took, err := io.Copy(io.Discard, client)
	require.NoError(t, err)
	assert.EqualValues(t, all, took, "what try said that the kernel took")
}

// After its end a socket takes nothing of the connection that has the same descriptor by then.
func TestSocketAfterItsEnd(t *testing.T) {
	_, nc := connect(t)
	s, try := quick(nc)
	_, err := try([]byte("x")) // it has seen its descriptor
	require.NoError(t, err)
	require.NoError(t, nc.Close())
	for range 100 { // some have the number of the one that was closed
		client, other := connect(t)
		_, err := io.WriteString(client, "secret")
		require.NoError(t, err)
		require.NoError(t, client.CloseWrite())
		_, err = s.Read(make([]byte, 10))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = try([]byte("stray"))
		require.ErrorIs(t, err, net.ErrClosed)
		got, err := io.ReadAll(other)
		require.NoError(t, err)
		require.Equal(t, "secret", string(got))
	}
}
