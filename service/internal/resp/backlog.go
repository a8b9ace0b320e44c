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

// write writes replies. A client that does not read them for too long is cut off.
func (c *conn) write(out []byte) error {
	c.writing.Store(true)
	c.watchdog.Reset(stuckAfter)
	_, err := c.nc.Write(out)
	c.writing.Store(false)
	if !c.watchdog.Stop() { // absorb has begun
		c.wake()
		<-c.absorbed // and wait sets the deadline again
	}
	return err
}

// absorb reads the connection into its backlog until its write has ended. The goroutine of the connection waits
// meanwhile. It is called by the timer of the connection.
func (c *conn) absorb() {
	defer func() { c.absorbed <- struct{}{} }()
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
	part, room, timeout, fresh := new(bytes.Buffer), maxPacked, c.server.issuer.Config().ReadTimeout, 0
	for _, before := range c.backlog.parts {
		room -= before.Len()
	}
	c.backlog.writer.Reset(part)
	in, end := make([]byte, maxCommand), time.Now().Add(longest*timeout)
	for c.writing.Load() && !c.server.closing() && part.Len() < room && c.backlog.left < maxBacklog {
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
			c.nc.SetReadDeadline(time.Now().Add(timeout)) // write ends writing before it ends this wait
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
