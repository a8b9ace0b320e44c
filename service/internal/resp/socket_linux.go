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
	raw  syscall.RawConn
	r, w try
}

// try is a call with the descriptor. The descriptor is good within once alone: after it, the connection may be closed, and
// the same number be that of another client.
type try struct {
	once func(fd uintptr) (done bool) // for RawConn; made once, so that a call makes none
	p    []byte
	n    int
	err  syscall.Errno
}

func (t *try) does(trap uintptr, waits bool) {
	t.once = func(fd uintptr) bool {
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
			s := &socket{Conn: nc, raw: raw}
			s.r.does(syscall.SYS_READ, true)
			s.w.does(syscall.SYS_WRITE, false)
			return s, s.tryWrite
		}
	}
	return nc, nil
}

func (s *socket) Read(p []byte) (int, error) {
	s.r.p = p
	err := s.raw.Read(s.r.once)
	s.r.p = nil
	switch {
	case err != nil:
		return 0, err
	case s.r.err != 0:
		return 0, s.r.err
	case s.r.n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return s.r.n, nil
}

// tryWrite writes as much as the kernel takes now.
func (s *socket) tryWrite(p []byte) (int, error) {
	s.w.p = p
	err := s.raw.Write(s.w.once)
	s.w.p = nil
	switch {
	case err != nil:
		return 0, err
	case s.w.err == syscall.EAGAIN:
		return 0, nil
	case s.w.err != 0:
		return 0, s.w.err
	}
	return s.w.n, nil
}
