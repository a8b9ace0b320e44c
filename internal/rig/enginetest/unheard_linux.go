package enginetest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tickflake/tickflake/internal/rig/servertest"
)

// checkUnheard checks that this process gives its connections to addr, "127.0.0.1:port", up when the
// other machine has acknowledged nothing for some seconds.
func checkUnheard(t *testing.T, addr string) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	servertest.Need(t, err)
	n := 0
	for _, file := range files {
		fd, _ := strconv.Atoi(file.Name())
		peer, err := syscall.Getpeername(fd)
		if to, ok := peer.(*syscall.SockaddrInet4); err != nil || !ok || !strings.HasSuffix(addr, ":"+strconv.Itoa(to.Port)) {
			continue
		}
		n++
		const tcpUserTimeout = 18 // package syscall lacks it
		if ms, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_TCP, tcpUserTimeout); err != nil || ms == 0 || ms > 10_000 {
			t.Errorf("a connection has the TCP_USER_TIMEOUT %d ms (%v), want 10 s: it must be made by a dial.Dialer", ms, err)
		}
	}
	if n == 0 {
		t.Errorf("there is no connection to %s", addr)
	}
}
