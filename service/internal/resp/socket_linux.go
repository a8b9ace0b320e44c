package resp

import (
	"io"
	"net"
	"syscall"
	"unsafe"
)

// socket is a TCP or Unix connection that tries its descriptor before it waits as package net does. The try does not
// tell the scheduler: to tell it costs as much as the call, and makes it start other threads. One goroutine reads, and
// one writes.
type socket struct {
	net.Conn
	r, w try
}

// try is a call with the descriptor. The descriptor is good within once alone: after it, the connection may be closed, and
// the same number be that of another client.
type try struct {
	call func(once func(fd uintptr) (done bool)) error // of RawConn
	once func(fd uintptr) (done bool)                  // both are made once, so that a call makes none
	p    []byte
	n    int
	err  syscall.Errno
}

func (t *try) does(trap uintptr, waits bool, call func(func(fd uintptr) bool) error) {
	t.call, t.once = call, func(fd uintptr) bool {
		for {
			n, _, err := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.p))), uintptr(len(t.p)))
			if t.n, t.err = int(n), err; err == syscall.EINTR {
				continue
			}
			return err != syscall.EAGAIN || !waits
		}
	}
}

// quick returns the connection as a socket, if it has a descriptor.
func quick(nc net.Conn) (net.Conn, func([]byte) (int, error)) {
	if file, ok := nc.(syscall.Conn); ok {
		if raw, err := file.SyscallConn(); err == nil {
			s := &socket{Conn: nc}
			s.r.does(syscall.SYS_READ, true, raw.Read)
			s.w.does(syscall.SYS_WRITE, false, raw.Write)
			return s, s.w.do
		}
	}
	return nc, nil
}

// do returns 0 where the kernel takes nothing now.
func (t *try) do(p []byte) (int, error) {
	t.p = p
	err := t.call(t.once)
	t.p = nil
	switch {
	case err != nil:
		return 0, err
	case t.err == syscall.EAGAIN:
		return 0, nil
	case t.err != 0:
		return 0, t.err
	}
	return t.n, nil
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.r.do(p)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}
