package resp

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// raw is a connection whose descriptor is read and written without the detours of package
// net: it holds no buffer while it waits, sets no deadline before each call, and needs no
// goroutine to be started and stopped around each call of the kernel.
type raw struct {
	conn syscall.RawConn
	fd   uintptr // valid while conn.Read or conn.Control runs
	// short counts reads in a row that left room in the buffer.
	short int
}

// rawOf returns the descriptor of a TCP or Unix connection, or nil.
func rawOf(nc any) *raw {
	if sc, ok := nc.(syscall.Conn); ok {
		if rc, err := sc.SyscallConn(); err == nil {
			return &raw{conn: rc}
		}
	}
	return nil
}

// steady is how many short reads make the server believe that a read that did not fill the
// buffer has emptied the socket.
const steady = 32

// recheck is how long that belief holds. The end of the stream can come with the last bytes,
// and is then announced only once.
const recheck = time.Second

// serve answers commands until the connection ends. It runs inside RawConn.Read, which waits
// each time that the function returns false.
func (w *raw) serve(c *conn) {
	for again := true; again; {
		var end bool
		err := w.conn.Read(func(fd uintptr) bool {
			w.fd = fd
			end = w.turn(c)
			return end
		})
		switch {
		case end || err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return
		case c.server.closing.Load():
			again = w.last(c)
		default:
			again = c.extend()
		}
	}
}

// turn answers the commands that have come. It reports whether the connection ends; else it is to wait.
func (w *raw) turn(c *conn) (end bool) {
	for {
		state, err := w.drain(c)
		if err != nil || c.quit {
			return true
		}
		// A client that never stops sending must not keep the server from closing.
		if state == unknown && !c.server.closing.Load() {
			continue
		}
		limit := c.limit()
		if state == believed {
			limit = minTime(limit, c.last.Add(recheck))
		}
		if c.due.IsZero() || c.due.After(limit) {
			c.deadline(limit)
		}
		return c.server.closing.Load() && !w.last(c)
	}
}

// socket is the state of a socket after a read.
type socket uint8

const (
	unknown  socket = iota // there may be more
	believed               // it is empty, but may have ended
	empty
)

// drain reads once, and answers.
func (w *raw) drain(c *conn) (socket, error) {
	if c.buffer == nil {
		c.take()
	}
	room := c.buffer.in[c.have:]
	n, errno := transfer(syscall.SYS_READ, w.fd, room)
	switch {
	case errno == syscall.EAGAIN:
		c.release()
		return empty, nil
	case errno == syscall.EINTR:
		return unknown, nil
	case errno != 0:
		return unknown, errno
	case n == 0:
		return unknown, io.EOF
	}
	c.have += n
	if n == len(room) {
		w.short = 0
	} else {
		w.short++
	}
	if err := c.answer(); err != nil {
		return unknown, err
	}
	if w.short >= steady {
		return believed, nil
	}
	return unknown, nil
}

// last answers the commands that came before the server closes. It reports whether the connection is
// still to wait, for the rest of a command.
func (w *raw) last(c *conn) (wait bool) {
	w.conn.Control(func(fd uintptr) {
		w.fd = fd
		for !c.quit && c.server.ctx.Err() == nil {
			state, err := w.drain(c)
			if err != nil {
				return
			}
			if state == empty {
				break
			}
		}
		// The context is looked at after the deadline is set, as closing is: abort ends the
		// context before it ends the deadline.
		wait = !c.quit && !c.begun.IsZero() && c.extend() && c.server.ctx.Err() == nil
	})
	return wait
}

// write writes as much as the kernel takes now.
func (w *raw) write(p []byte) (int, error) {
	n, errno := transfer(syscall.SYS_WRITE, w.fd, p)
	switch errno {
	case 0, syscall.EAGAIN, syscall.EINTR:
		return max(n, 0), nil
	}
	return 0, errno
}

// transfer reads or writes. The descriptor does not block, so the scheduler is not told: to
// tell it costs as much as the call, and makes it start other threads.
func transfer(trap, fd uintptr, p []byte) (n int, errno syscall.Errno) {
	r, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(r), 0
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
