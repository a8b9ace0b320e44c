package storetest

import (
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// shorten makes the queue of new connections of a listener as short as possible.
func shorten(listener *net.TCPListener) error {
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	var listened error
	err = raw.Control(func(fd uintptr) { listened = syscall.Listen(int(fd), 0) })
	return errors.Join(err, listened)
}

// connectionsTo returns how many connections this process has to these addresses, each "host:port".
func connectionsTo(addrs []string) (n int) {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		fd, _ := strconv.Atoi(file.Name())
		peer, err := syscall.Getpeername(fd)
		if to, ok := peer.(*syscall.SockaddrInet4); ok && err == nil && slices.ContainsFunc(addrs, func(addr string) bool {
			return strings.HasSuffix(addr, ":"+strconv.Itoa(to.Port))
		}) {
			n++
		}
	}
	return n
}
