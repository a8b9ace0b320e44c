package resp

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"os"
	"time"
)

// A client may send a whole pipeline before it reads the first reply. Then the server waits for the client to read, and
// the client for the server: so while a write waits, the server reads on, carries nothing out, and keeps what it reads
// compressed, for long pipelines say much the same again and again.
const (
	maxBacklogs = 4        // connections that have a backlog at a time; others are cut off, as one that never reads
	maxBacklog  = 64 << 20 // bytes of it
	maxPacked   = 8 << 20  // bytes of it, compressed
	stuckAfter  = 50 * time.Millisecond
	progress    = 4 << 10 // bytes that a client has to send within each ReadTimeout meanwhile
	longest     = 3       // ReadTimeouts that it may send for without a read
)

// backlog is what a client has sent, and the server has not looked at.
type backlog struct {
	parts  []*bytes.Buffer // each a stream of flate; the first is being read
	in     io.ReadCloser   // of the first part; nil before its first byte
	left   int             // bytes of all parts, before they were compressed
	writer *flate.Writer
}

// packed is how many bytes the backlog takes.
func (b *backlog) packed() (n int) {
	for _, part := range b.parts {
		n += part.Len()
	}
	return n
}

// read reads the next bytes, or none at the end.
func (b *backlog) read(p []byte) int {
	for len(b.parts) > 0 {
		if b.in == nil {
			b.in = flate.NewReader(b.parts[0])
		}
		n, err := b.in.Read(p)
		if err != nil {
			b.parts, b.in = b.parts[1:], nil
		}
		if n > 0 {
			b.left -= n
			return n
		}
	}
	return 0
}

// absorbing is the bit of conn.writes that says that absorb reads the connection. The others count begins and ends of
// writes, so the lowest is 1 during a write.
const absorbing = 1 << 63

// write writes replies. A client that does not read them for too long is cut off.
func (c *conn) write(out []byte) error {
	c.writes.Add(1)
	if !c.watched.Load() { // watch looks at writes after it has reset watched, so one of both sees the other
		c.watched.Store(true)
		c.watchdog.Reset(stuckAfter)
	}
	_, err := c.nc.Write(out)
	if c.writes.Add(1)&absorbing != 0 {
		c.wake()
		<-c.absorbed
		c.writes.And(absorbing - 1)
		c.due = time.Time{}
	}
	return err
}

// watch looks twice at a write, stuckAfter apart, and absorbs what the client sends if it is the same. It is called by
// the timer of the connection.
func (c *conn) watch() {
	c.watched.Store(false)
	n := c.writes.Load()
	switch {
	case n&1 == 0, n&absorbing != 0: // or another watch, which was late, has begun to absorb
	case n != c.seen.Swap(n):
		c.watched.Store(true)
		c.watchdog.Reset(stuckAfter)
	case c.writes.CompareAndSwap(n, n|absorbing):
		c.absorb(n | absorbing)
		c.absorbed <- struct{}{}
	}
}

// absorb reads the connection into its backlog until its write has ended. The goroutine of the connection waits
// meanwhile.
func (c *conn) absorb(during uint64) {
	if c.backlog == nil {
		select {
		case c.backlog = <-c.server.backlogs:
		default:
			return
		}
	}
	if c.backlog.writer == nil { // about a megabyte, which most servers never need
		c.backlog.writer, _ = flate.NewWriter(nil, flate.BestSpeed) // the level is one
	}
	part, timeout, fresh := new(bytes.Buffer), c.server.issuer.Config().ReadTimeout, 0
	c.backlog.writer.Reset(part)
	in, room, end := make([]byte, maxCommand), maxPacked-c.backlog.packed(), time.Now().Add(longest*timeout)
	for c.writes.Load() == during && !c.server.closing() && part.Len() < room && c.backlog.left < maxBacklog {
		n, err := c.nc.Read(in)
		c.backlog.left += n
		_, _ = c.backlog.writer.Write(in[:n]) // to memory
		if fresh += n; fresh >= progress && time.Now().Before(end) {
			fresh = 0
			c.written = time.Now().Add(timeout)
			c.nc.SetWriteDeadline(c.written)
			if c.server.ctx.Err() != nil {
				c.abort() // it may have come before the deadline
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.nc.SetReadDeadline(time.Now().Add(timeout)) // write looks at absorbing before it ends this wait
		} else if err != nil {
			break // the next read finds it again
		}
	}
	_ = c.backlog.writer.Close()
	c.backlog.parts = append(c.backlog.parts, part)
}

// behind returns bytes of the backlog, and gives it back when it is empty.
func (c *conn) behind(p []byte) (n int) {
	if c.backlog != nil {
		if n = c.backlog.read(p); n == 0 {
			c.server.backlogs <- c.backlog
			c.backlog = nil
		}
	}
	return n
}
