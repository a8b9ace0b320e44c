package enginetest

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/internal/rig/servertest"
)

// sockets returns how many connections the server at addr, "127.0.0.1:port", has accepted
// and not closed, also those that the other end has closed. Connections that the system
// has accepted, and the server has not, do not count. It skips the test where there is no
// /proc/net/tcp.
func sockets(t testing.TB, addr string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("the connections of a server are counted in /proc/net/tcp, which %s lacks", runtime.GOOS)
	}
	_, text, err := net.SplitHostPort(addr)
	servertest.Need(t, err)
	port, err := strconv.ParseUint(text, 10, 16)
	servertest.Need(t, err)
	local := fmt.Sprintf(":%04X", port)
	n := 0
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // no IPv6
		}
		servertest.Need(t, err)
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
