package service

import (
	"io"
	"log/slog"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service/internal/observe"
)

// TestConnectionsLeaveFilesForTheStore: connections to one listener and to another count
// together, and one that is closed makes room. Else a flood of connections would take all
// descriptors, and the store could not extend the grant.
func TestConnectionsLeaveFilesForTheStore(t *testing.T) {
	t.Parallel()
	assert.EqualValues(t, 1024-spareFiles, maxConnections(1024))
	assert.EqualValues(t, 50, maxConnections(100))
	assert.Positive(t, maxConnections(math.MaxInt64))

	all := &total{most: 2}
	discard := slog.New(slog.DiscardHandler)
	accepted := make(chan net.Conn, 3)
	dial := make([]func() net.Conn, 2)
	for i, p := range []observe.Protocol{observe.RESP, observe.HTTP} {
		plain, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		l := limit(plain, p, observe.New(discard, 0), discard, 10, all, true)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- c
			}
		}()
		dial[i] = func() net.Conn {
			c, err := net.Dial("tcp", plain.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
			return c
		}
	}
	dial[0]()
	first := <-accepted
	dial[1]()
	second := <-accepted
	for i, want := range []string{refusals[observe.RESP], refusals[observe.HTTP]} {
		c := dial[i]()
		got := make([]byte, len(want))
		if i == 1 {
			_, err := io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
			require.NoError(t, err)
		}
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
	require.NoError(t, first.Close())
	dial[1]()
	require.NoError(t, (<-accepted).Close())
	require.NoError(t, second.Close())
	assert.Zero(t, all.open.Load())
}

// net/http drops an answer that comes before its request, and reports a broken connection.
func TestRefusalFollowsTheRequest(t *testing.T) {
	t.Parallel()
	l := &limited{protocol: observe.HTTP, answer: refusals[observe.HTTP]}
	client, server := net.Pipe() // without a buffer: the two must take turns
	require.NoError(t, client.SetDeadline(time.Now().Add(20*time.Second)))
	require.NoError(t, server.SetDeadline(time.Now().Add(20*time.Second)))
	go func() {
		l.tell(server)
		_ = server.Close()
	}()
	_, err := io.WriteString(client, "GET / HTTP/1.1\r\n\r\n")
	require.NoError(t, err)
	got, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.Equal(t, l.answer, string(got))
}
