package engines

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tickflake/tickflake/integration/program"
)

// sockets returns how many connections the server at addr, "127.0.0.1:port", has accepted
// and not closed, also those that the other end has closed. Connections that the system
// has accepted, and the server has not, do not count.
func sockets(t testing.TB, addr string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(addr)
	program.Need(t, err)
	port, err := strconv.ParseUint(text, 10, 16)
	program.Need(t, err)
	local := fmt.Sprintf(":%04X", port)
	n := 0
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // no IPv6
		}
		program.Need(t, err)
		for line := range strings.Lines(string(table)) {
			// sl, local, remote, state, queues, timer, retransmits, user, timeout, inode
			f := strings.Fields(line)
			const established, closeWait = "01", "08"
			if len(f) > 9 && strings.HasSuffix(f[1], local) && (f[3] == established || f[3] == closeWait) && f[9] != "0" {
				n++
			}
		}
	}
	return n
}

// checkUnheard checks that this process gives its connections to addr, "127.0.0.1:port", up when the
// other machine has acknowledged nothing for some seconds.
func checkUnheard(t *testing.T, addr string) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	program.Need(t, err)
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
