package resp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
)

// conn is one connection. Its goroutine alone uses it, but for wake and abort.
type conn struct {
	server *Server
	nc     net.Conn
	raw    syscall.RawConn // of nc; nil where package net reads and writes
	fd     uintptr         // of raw, while turn answers; else 0
	peer   issuer.Peer     // of nc
	ctx    *issuer.Timeout // of the commands
	client *issuer.Client  // nil until a token is given, where one is needed
	id     int64
	name   string
	three  bool // RESP3
	asked  bool // peer knows that the client has asked

	// The key of the last command and its sequence, so that the same one again makes no new
	// string.
	key, sequenceName string

	buffer  *buffer   // while bytes are there that are not answered
	have    int       // bytes in buffer.in
	quit    bool      // no further command is read
	linger  bool      // the client may still send, and shall read its replies all the same
	last    time.Time // when the last pipeline was answered
	begun   time.Time // when the first byte of an unfinished command came; zero if there is none
	due     time.Time // the read deadline of nc
	written time.Time // the write deadline of nc

	writing  atomic.Bool   // by write; it ends before write ends the wait of absorb
	watchdog *time.Timer   // calls absorb when a write takes too long; runs during a write only
	absorbed chan struct{} // absorb has ended
	backlog  *backlog      // of absorb while it runs; nil if there is none

	first [1 << 10]byte // for the bytes that end a wait: those of a usual pipeline

	requests, items int64 // served, and not yet counted by the observer
	pipelines       int   // answered
}

// buffer holds the memory of a pipeline. A connection that waits for its client has none.
type buffer struct {
	in     []byte
	parser parser
	reply  reply
	runs   []snowflake.Run
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, raw: rawOf(nc), peer: issuer.PeerOf(nc), ctx: s.issuer.Timeout(s.ctx), client: s.issuer.Anyone(), id: s.lastID.Add(1), last: time.Now(), absorbed: make(chan struct{}, 1)}
	c.watchdog = time.AfterFunc(time.Hour, c.absorb)
	c.watchdog.Stop() // until the first write
	return c
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	if tls, ok := c.nc.(interface{ HandshakeContext(context.Context) error }); ok {
		ctx, cancel := context.WithTimeout(c.server.ctx, c.server.issuer.Config().ReadTimeout)
		err := tls.HandshakeContext(ctx)
		cancel()
		if err != nil {
			return
		}
	}
	if c.client != nil {
		c.peer.Known(c.client)
	}
	for !c.quit && c.read() == nil && c.answer() == nil {
	}
}

// take gives the connection a buffer.
func (c *conn) take() {
	c.buffer = c.server.buffers.Get().(*buffer)
	c.buffer.reply.three = c.three
}

// release gives the buffer back when all bytes are answered, so that a connection that waits
// costs little.
func (c *conn) release() {
	const most = 128 << 10 // an unusual reply does not stay in memory
	if b := c.buffer; b != nil && c.have == 0 {
		c.buffer = nil
		if cap(b.reply.b) <= most {
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
	if c.buffer == nil && n > 0 {
		c.take()
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

// wait reads into p, not beyond the time that the client has. It reads nothing if turn has answered what came.
// Deadlines are set too early rather than for each command, which would cost more than to read again.
func (c *conn) wait(p []byte) (int, error) {
	for {
		if limit := c.limit(); c.due.IsZero() || c.due.After(limit) {
			c.deadline(limit)
		}
		if c.server.closing() {
			// What the client still sends is not carried out, and must not cut off replies that may
			// be on their way.
			c.linger = c.pipelines > 0 && time.Since(c.last) < c.server.issuer.Config().ReadTimeout
			return 0, context.Canceled
		}
		if n := c.behind(p); n > 0 {
			return n, nil
		}
		n, err := c.receive(p)
		switch {
		case n > 0:
			return n, nil
		case err == nil && c.raw == nil:
			return 0, io.ErrNoProgress
		case err == nil:
			return 0, nil
		case !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(c.limit()):
			return 0, err
		}
		c.due = time.Time{}
	}
}

// receive reads into p, or lets turn answer while it waits, which keeps the way from one wait to the next short.
func (c *conn) receive(p []byte) (int, error) {
	if c.raw == nil {
		return c.nc.Read(p)
	}
	var err error
	waited := c.raw.Read(func(fd uintptr) (leave bool) {
		leave, err = c.turn(fd)
		return leave
	})
	return 0, cmp.Or(waited, err)
}

// errLeave ends a turn: what comes next may wait for the client, who may wait for absorb to read.
var errLeave = errors.New("to be answered outside of a wait")

func (c *conn) deadline(t time.Time) {
	c.due = t
	c.nc.SetReadDeadline(t)
}

// timed is of how many pipelines of a connection one is timed: the histogram would else cost
// more than a few commands.
const timed = 16

// answer carries out the commands that are complete, and writes their replies together. After errLeave it goes on
// where it was.
func (c *conn) answer() (failed error) {
	b := c.buffer
	if b == nil {
		return nil
	}
	pos := 0
	var began time.Time
	if c.client != nil && c.client.Gone() {
		c.client = nil // until another token is given
	}
	if c.pipelines++; c.pipelines%timed == 1 {
		began = time.Now()
	}
	for failed == nil && pos < c.have && !c.quit {
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
		if failed = c.execute(args); failed == errLeave {
			pos -= n // it was not carried out
		} else if failed == nil && len(b.reply.b) >= maxPending {
			failed = c.flush()
		}
	}
	c.have = copy(b.in, b.in[pos:c.have])
	if failed != nil {
		return failed
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.count()
	c.last = time.Now()
	if !began.IsZero() && pos > 0 {
		c.server.issuer.Piped(c.last.Sub(began))
	}
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

// flush writes the replies that are collected. A client that does not read them is cut off.
func (c *conn) flush() error {
	out := c.buffer.reply.b
	if len(out) == 0 {
		return nil
	}
	c.buffer.reply.b = out[:0]
	if err := c.server.ctx.Err(); err != nil {
		return err // also where the client reads as fast as the server writes
	}
	if c.fd != 0 {
		n, err := c.put(out)
		if n < len(out) && err == nil {
			c.buffer.reply.b, err = out[:copy(out, out[n:])], errLeave
		}
		return err
	}
	// The deadline is set early rather than for each pipeline, which would cost a part of it.
	timeout := c.server.issuer.Config().ReadTimeout
	if now := time.Now(); now.Add(timeout / 4 * 3).After(c.written) {
		c.written = now.Add(timeout)
		c.nc.SetWriteDeadline(c.written)
		if err := c.server.ctx.Err(); err != nil {
			return err // abort may have come before the deadline
		}
	}
	err := c.write(out)
	if errors.Is(err, os.ErrDeadlineExceeded) && c.server.ctx.Err() == nil {
		c.server.issuer.Done(issuer.Request{Protocol: issuer.RESP, Method: "reply", Remote: c.nc.RemoteAddr().String(), Client: c.client, Err: errUnread})
	}
	return err
}

var errUnread = issuer.Refuse(issuer.Unread, "the client did not read its replies in time: its connection was closed, and what it had asked for is lost")

var past = time.Unix(1, 0)

// wake makes a connection that waits look at closing.
func (c *conn) wake() { c.nc.SetReadDeadline(past) }

// abort ends all waits of the connection. The server's context has ended before.
func (c *conn) abort() { c.nc.SetDeadline(past) }

// close closes the connection. If bytes of the client were not read, the kernel would throw
// away replies that are on their way, so what still comes is read for a while.
func (c *conn) close() {
	c.count()
	if c.backlog != nil {
		c.server.backlogs <- &backlog{writer: c.backlog.writer}
	}
	if c.server.ctx.Err() != nil {
		if tls, ok := c.nc.(interface{ NetConn() net.Conn }); ok {
			tls.NetConn().Close() // without a last message, for which TLS would wait
		}
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && c.linger && half.CloseWrite() == nil {
		end := time.Now().Add(min(time.Second, c.server.issuer.Config().ReadTimeout))
		c.nc.SetReadDeadline(end)
		var rest [4096]byte
		for c.server.ctx.Err() == nil {
			_, err := c.nc.Read(rest[:])
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(end):
				c.nc.SetReadDeadline(end) // a wake came late
			case err != nil:
				c.nc.Close()
				return
			}
		}
	}
	c.nc.Close()
}
