package dial_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores/engine/dial"
)

// Linux gives up a connection to a machine that has lost power.
func TestDialerGivesUp(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	var d dial.Dialer
	defer d.Close()
	conn, err := d.Dial(t.Context(), "tcp", server.Addr().String())
	require.NoError(t, err)
	raw, err := conn.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		const tcpUserTimeout = 18
		ms, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout)
		assert.NoError(t, err)
		assert.Equal(t, 10_000, ms)
	}))
}
