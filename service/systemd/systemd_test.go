//go:build unix

package systemd

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// passed returns a file as systemd passes it, and closes the one that it copies.
func passed(t *testing.T, name string, from interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := from.File()
	require.NoError(t, err)
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	require.NoError(t, err)
	return os.NewFile(uintptr(fd), name)
}

func TestListeners(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	socket := l.(*net.TCPListener)
	resp, two, other, odd := passed(t, "resp", socket), passed(t, "resp", socket), passed(t, "resp", socket), passed(t, "redis", socket)
	require.NoError(t, l.Close())
	all, err := listeners([]*os.File{resp}, []string{"resp", "http"})
	require.NoError(t, err)
	assert.Equal(t, socket.Addr(), all["resp"].Addr())
	require.NoError(t, all["resp"].Close())
	_, err = listeners([]*os.File{two, other}, []string{"resp"})
	assert.ErrorContains(t, err, "two sockets with the name resp")
	_, err = listeners([]*os.File{odd}, []string{"resp", "http"})
	assert.ErrorContains(t, err, `the name "redis": set FileDescriptorName of each socket unit to one of resp, http`)
	_, err = net.Dial("tcp", socket.Addr().String())
	assert.Error(t, err, "all that systemd passed are closed too")
	file, err := os.Create(filepath.Join(t.TempDir(), "resp"))
	require.NoError(t, err)
	_, err = listeners([]*os.File{file}, []string{file.Name()})
	assert.ErrorContains(t, err, "takes no connections")
}

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	require.NoError(t, Notify(Ready), "without systemd")
	if runtime.GOOS != "linux" {
		t.Skip("systemd runs on Linux only")
	}
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	require.NoError(t, Notify(Stopping))
	b := make([]byte, 100)
	n, err := c.Read(b)
	require.NoError(t, err)
	assert.Equal(t, Stopping, string(b[:n]))
	t.Setenv("NOTIFY_SOCKET", path+"-none")
	assert.ErrorContains(t, Notify(Ready), "tell systemd READY=1")
}
