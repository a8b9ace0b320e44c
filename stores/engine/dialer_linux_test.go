package engine_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limited checks that Linux gives up a connection to a machine that has lost power.
func limited(t *testing.T, conn net.Conn) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		const tcpUserTimeout = 18
		ms, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout)
		assert.NoError(t, err)
		assert.Equal(t, 10_000, ms)
	}))
}
