package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
)

// conn is one connection. Its goroutine alone uses it, but for the deadlines of nc.
type conn struct {
	server *Server
	nc     net.Conn // through TLS, if there is any
	out    *outbox  // below it
	peer   issuer.Peer
	ctx    *issuer.Timeout // of the commands
	client *issuer.Client  // nil until a token is given, where one is needed
	own    atomic.Int64    // bytes of replies that are kept, where no client is known
	id     int64
	three  bool // RESP3
	asked  bool // peer knows that the client has asked

	// The key of the last command and its sequence, so that the same one again makes no new
	// string.
	key, sequenceName string

	buffer *buffer   // while bytes are there that are not answered
	have   int       // bytes in buffer.in
	quit   bool      // no further command is read
	linger bool      // the client may still send, and shall read its replies all the same
	last   time.Time // when the last pipeline was answered, or the connection began
	begun  time.Time // when the first byte of an unfinished command came; zero if there is none
	due    time.Time // the read deadline of nc

	first [768]byte // for the bytes that end a wait: those of a usual pipeline

	requests, items int64 // served, and not yet counted by the observer
}

// buffer holds the memory of a pipeline. A connection that waits for its client has none.
type buffer struct {
	in     []byte
	parser parser
	reply  reply
	runs   []snowflake.Run
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, peer: issuer.PeerOf(nc), ctx: s.issuer.Timeout(s.ctx), id: s.lastID.Add(1), last: time.Now()}
	c.out = &outbox{ctx: s.ctx, timeout: s.issuer.Config().ReadTimeout, half: nc, all: &s.kept, share: &c.own}
	c.out.changed.L = &c.out.mu
	c.out.Conn, c.out.try = quick(nc)
	c.nc = c.out
	return c
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	if tls, ok := c.nc.(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(c.server.ctx, c.server.issuer.Config().ReadTimeout)
		err := tls.HandshakeContext(ctx)
		cancel()
		if err != nil {
			return
		}
	}
	if c.become(c.server.issuer.Anyone()) != nil {
		return
	}
	for !c.quit && c.read() == nil && c.answer() == nil {
	}
}

// become makes the connection one of a client, or of nobody who is known. It fails where the client has too many.
func (c *conn) become(client *issuer.Client) error {
	if client != nil {
		if err := c.peer.Known(client); err != nil {
			return err
		}
	}
	c.client = client
	share := &c.own
	if client != nil && client.Name != "" {
		share = client.Kept()
	}
	c.out.belongs(client != nil, share)
	return nil
}

// release gives the buffer back when all bytes are answered, so that a connection that waits
// costs little.
func (c *conn) release() {
	if b := c.buffer; b != nil && c.have == 0 {
		c.buffer = nil
		if cap(b.reply.b) <= 128<<10 { // an unusual reply does not stay in memory
			c.server.buffers.Put(b)
		}
	}
}

// read waits for bytes.
func (c *conn) read() error {
	target := c.first[:]
	if c.buffer != nil {
		target = c.buffer.in[c.have:]
	}
	n, err := c.wait(target)
	if err != nil {
		return err
	}
	if c.buffer == nil {
		c.buffer = c.server.buffers.Get().(*buffer)
		copy(c.buffer.in, target[:n])
	}
	c.have += n
	return nil
}

// limit returns until when the client must send something.
func (c *conn) limit() time.Time {
	if c.begun.IsZero() {
		return c.last.Add(c.server.issuer.Config().IdleTimeout)
	}
	return c.begun.Add(c.server.issuer.Config().ReadTimeout)
}

// wait reads into p, not beyond the time that the client has. Deadlines are set too early rather than for each command,
// which would cost more than to read again.
func (c *conn) wait(p []byte) (int, error) {
	for {
		if end := c.limit(); c.due.IsZero() || c.due.After(end) {
			c.due = end
			c.nc.SetReadDeadline(end)
		}
		if c.server.closing() {
			// What the client still sends is not carried out, and must not cut off replies that may
			// be on their way.
			c.linger = c.asked && time.Since(c.last) < c.server.issuer.Config().ReadTimeout
			return 0, context.Canceled
		}
		n, err := c.nc.Read(p)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, io.ErrNoProgress
		case !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(c.limit()):
			return 0, err
		}
		c.due = time.Time{}
	}
}

// answer carries out the commands that are complete, and writes their replies together.
func (c *conn) answer() error {
	b, pos := c.buffer, 0
	if c.client != nil && c.client.Gone() {
		_ = c.become(nil) // until another token is given
	}
	for pos < c.have && !c.quit {
		args, n, err := b.parser.next(b.in[pos:c.have])
		if err == nil && n == 0 && pos == 0 && c.have == len(b.in) {
			err = errTooLong
		}
		if err != nil {
			b.reply.fail("ERR", err.Error())
			c.quit, c.linger = true, true
			break
		}
		if n == 0 {
			break
		}
		pos += n
		if len(args) == 0 {
			continue
		}
		if !c.asked && c.client != nil {
			c.asked = true
			c.peer.Asked()
		}
		if err = c.execute(args); err == nil && len(b.reply.b) >= limit.Flush {
			err = c.flush()
		}
		if err != nil {
			return err
		}
	}
	c.have = copy(b.in, b.in[pos:c.have])
	if err := c.flush(); err != nil {
		return err
	}
	c.count()
	c.last = time.Now()
	switch {
	case c.have == 0:
		c.begun = time.Time{}
	case c.begun.IsZero() || pos > 0:
		c.begun = c.last
	}
	c.release()
	return nil
}

// count reports the commands of a pipeline that its client has sent so far.
func (c *conn) count() {
	if c.requests > 0 {
		c.server.issuer.Served(issuer.RESP, c.client, c.requests, c.items)
		c.requests, c.items = 0, 0
	}
}

// flush writes the replies that are collected, and waits where the client has too much unread. That may be no reply: TLS
// answers a client's updates of its key as it reads.
func (c *conn) flush() error {
	if out := c.buffer.reply.b; len(out) > 0 {
		c.buffer.reply.b = out[:0]
		if err := c.server.ctx.Err(); err != nil {
			return err // also where the client reads as fast as the server writes
		}
		if _, err := c.nc.Write(out); err != nil {
			return err
		}
	}
	return c.out.wait()
}

var errUnread = issuer.Refuse(wire.Unread, "the client did not read its replies in time: its connection was closed, and what it had asked for is lost")

var past = time.Unix(1, 0)

// close closes the connection once its replies are written. If bytes of the client were not read, the kernel would throw
// away replies that are on their way, so of one that lingers what still comes is read meanwhile, and for a while after the
// last reply. Nobody else sets a deadline of a read by now; wake may have set the last one.
func (c *conn) close() {
	c.count()
	ctx, gone := c.server.ctx, make(chan struct{}) // closed when nothing more comes
	c.out.SetReadDeadline(time.Time{})
	go func() {
		defer close(gone)
		if c.linger {
			_, _ = io.Copy(io.Discard, c.out.Conn)
		}
	}()
	if err := c.out.end(); errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		c.server.issuer.Done(issuer.Request{Protocol: issuer.RESP, Method: "reply", Remote: c.out.RemoteAddr().String(), Client: c.client, Err: errUnread})
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && c.linger && half.CloseWrite() == nil {
		enough, cancel := context.WithTimeout(ctx, min(time.Second, c.server.issuer.Config().ReadTimeout))
		defer cancel()
		select {
		case <-gone:
		case <-enough.Done():
		}
	}
	c.out.SetReadDeadline(past)
	<-gone
	c.nc.Close()
}
