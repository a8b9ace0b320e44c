package storetest

import (
	"errors"
	"net"
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
