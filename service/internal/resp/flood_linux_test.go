package resp

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEndUnderFlood: a client that never stops sending does not keep the server from ending,
// also if its commands have no replies, or if it reads all of them.
func TestEndUnderFlood(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"no replies": "\n", "replies": "PING\r\n", "large replies": "IDS 10000\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, nil)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			client, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer client.Close()
			nc, err := l.Accept()
			require.NoError(t, err)
			defer nc.Close()
			c := newConn(b.Server, nc)
			c.raw = rawOf(nc)
			flood := bytes.Repeat([]byte(command), 64<<10/len(command))
			write(t, client, string(flood))
			require.NoError(t, client.(*net.TCPConn).CloseWrite())
			b.closing.Store(true)
			b.cancel()
			require.NoError(t, c.raw.conn.Control(func(fd uintptr) {
				c.raw.fd = fd
				assert.True(t, c.raw.turn(c), "the connection ends")
			}))
			left := make([]byte, len(flood))
			n, err := nc.Read(left)
			require.NoError(t, err)
			assert.NotZero(t, n, "what came later is not read")
		})
	}
}
