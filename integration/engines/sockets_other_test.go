//go:build !linux

package engines

import "testing"

func sockets(t testing.TB, _ string) int {
	t.Helper()
	t.Skip("the connections of a server are counted in /proc/net/tcp, which this system lacks")
	return 0
}

func checkUnheard(*testing.T, string) {}
