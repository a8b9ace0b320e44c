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

// passed returns a listening socket as systemd passes it, and its address.
func passed(t *testing.T, name string) (*os.File, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	require.NoError(t, err)
	return os.NewFile(uintptr(fd), name), l.Addr().String()
}

func TestListeners(t *testing.T) {
	resp, respAddress := passed(t, "resp")
	web, webAddress := passed(t, "http")
	all, err := listeners([]*os.File{resp, web}, []string{"resp", "http", "grpc"})
	require.NoError(t, err)
	require.Len(t, all, 2)
	for name, address := range map[string]string{"resp": respAddress, "http": webAddress} {
		assert.Equal(t, address, all[name].Addr().String())
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, all[name].Close())
		_, err = net.Dial("tcp", address)
		assert.Error(t, err, "the socket that systemd passed is closed too")
	}

	one, _ := passed(t, "resp")
	other, address := passed(t, "resp")
	_, err = listeners([]*os.File{one, other}, []string{"resp"})
	assert.ErrorContains(t, err, "two sockets with the name resp")
	_, err = net.Dial("tcp", address)
	require.Error(t, err)
	odd, _ := passed(t, "redis")
	_, err = listeners([]*os.File{odd}, []string{"resp", "http"})
	assert.ErrorContains(t, err, `the name "redis": set FileDescriptorName of each socket unit to one of resp, http`)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	fd, err := syscall.Dup(int(file.Fd()))
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, err = listeners([]*os.File{os.NewFile(uintptr(fd), "resp")}, []string{"resp"})
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
	for _, state := range []string{Ready, Stopping} {
		require.NoError(t, Notify(state))
		b := make([]byte, 100)
		n, err := c.Read(b)
		require.NoError(t, err)
		assert.Equal(t, state, string(b[:n]))
	}
	t.Setenv("NOTIFY_SOCKET", path+"-none")
	assert.ErrorContains(t, Notify(Ready), "tell systemd READY=1")
}
