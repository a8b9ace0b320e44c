package resp

import (
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"
)

// rawOf returns the descriptor of a TCP or Unix connection, or nil.
func rawOf(nc net.Conn) syscall.RawConn {
	if socket, ok := nc.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// A read that does not fill the buffer has emptied the socket, and what comes later ends a wait. Only the end of the
// stream can come with the last bytes, and is then announced just once. So the first pipelines are followed by a read
// that finds nothing, for clients that say all they have and close, and later ones by one after a while.
const (
	steady  = 32
	recheck = time.Second
)

// turn answers what has come. It runs inside RawConn.Read, which waits each time that it reports false, and calls it again.
func (c *conn) turn(fd uintptr) (leave bool, err error) {
	for {
		if c.buffer == nil {
			c.take()
		}
		room := c.buffer.in[c.have:]
		n, errno := transfer(syscall.SYS_READ, fd, room)
		switch {
		case errno == syscall.EAGAIN:
			c.release()
			return false, nil
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return true, errno
		case n == 0:
			return true, io.EOF
		}
		c.have += n
		c.fd = fd
		err := c.answer()
		c.fd = 0
		if err == errLeave {
			return true, nil
		}
		if err != nil || c.quit {
			return true, err
		}
		limit, emptied := c.limit(), n < len(room) && c.pipelines > steady
		if again := c.last.Add(recheck); emptied && again.Before(limit) {
			limit = again
		}
		if c.due.After(limit) {
			c.deadline(limit)
		}
		if closing := c.server.closing(); closing || emptied {
			return closing, nil
		}
	}
}

// put writes as much as the kernel takes now.
func (c *conn) put(p []byte) (int, error) {
	n, errno := transfer(syscall.SYS_WRITE, c.fd, p)
	switch errno {
	case 0, syscall.EAGAIN, syscall.EINTR:
		return n, nil
	}
	return 0, errno
}

// transfer reads or writes. The descriptor does not block, so the scheduler is not told: to tell it costs as much as
// the call, and makes it start other threads.
func transfer(trap, fd uintptr, p []byte) (n int, errno syscall.Errno) {
	r, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(r), 0
}
