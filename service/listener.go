package service

import (
	"container/list"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

const (
	minPause = 5 * time.Millisecond // after a failed accept; doubles with each that follows
	maxPause = time.Second
)

// limited is a listener whose connections are counted and limited. Where peers have to show that they may ask, a
// connection is a stranger's until its peer has. Strangers have a pool of their own, from which the oldest goes for the
// newest, and in which nobody stays for long. So they keep nobody out who may ask. A connection is silent until
// its peer has sent a whole request: a drain closes it when it begins. So strangers do not delay it.
// Connections of package net have TCP keep-alive.
type limited struct {
	net.Listener
	protocol  issuer.Protocol
	issuer    *issuer.Issuer
	most      int           // connections that are known
	strangers int           // that are not
	patience  time.Duration // how long a connection may be a stranger's; 0: each is known from its start
	age       time.Duration // after which a connection is old; 0: never
	all       *total

	mu      sync.Mutex
	open    map[*counted]struct{} // connections that are not closed
	unknown list.List             // those of strangers, in the order in which they came
	known   int                   // how many of them are known: at most "most"
	drained bool                  // set once: new connections are refused
}

// total counts the known connections of all listeners, for the descriptors that they share.
type total struct {
	most int64
	open atomic.Int64 // never above most but for the moment in which one is refused
}

func (t *total) join() bool {
	if t.open.Add(1) <= t.most {
		return true
	}
	t.open.Add(-1)
	return false
}

// errFull refuses who is known where there is no room.
var errFull = issuer.Later(errors.New("the server has its largest number of connections"))

// enter returns a connection that is counted until it is closed, or nil if there are too many.
func (l *limited) enter(nc net.Conn) net.Conn {
	c := &counted{Conn: nc, listener: l}
	if l.age > 0 { // a tenth more or less, so that connections of one moment end at several
		c.old = time.Now().Add(l.age - l.age/10 + rand.N(l.age/5+1))
	}
	var closed *counted // c, or another one for its room
	l.mu.Lock()
	if l.drained || l.patience == 0 && l.join(c) != nil {
		closed = c
	} else {
		if l.patience > 0 {
			closed = l.doubt(c)
		}
		l.open[c] = struct{}{}
		l.issuer.Opened(l.protocol)
	}
	l.mu.Unlock()
	if closed != nil {
		_ = closed.Conn.Close()
	}
	if closed == c {
		return nil
	}
	return c
}

// join counts a connection among those that are known, if there is room. It is called with mu.
func (l *limited) join(c *counted) error {
	if l.known >= l.most || !l.all.join() {
		l.issuer.Turned(l.protocol)
		return errFull
	}
	l.known++
	c.joined = true
	return nil
}

// part ends what join began. It is called with mu.
func (l *limited) part(c *counted) {
	if c.joined {
		c.joined = false
		l.known--
		l.all.open.Add(-1)
	}
}

// doubt makes a connection a stranger's. It returns another one that is to be closed for its room, or nil. It is called with mu.
func (l *limited) doubt(c *counted) (room *counted) {
	l.part(c)
	if l.unknown.Len() >= l.strangers {
		room = l.unknown.Front().Value.(*counted)
		room.leave()
		l.issuer.Turned(l.protocol)
	}
	c.place = l.unknown.PushBack(c)
	c.timer = time.AfterFunc(l.patience, func() { _ = c.Close() })
	return room
}

// drain closes the connections that are silent, and refuses new ones.
func (l *limited) drain() {
	l.mu.Lock()
	l.drained = true
	var silent []*counted
	for c := range l.open {
		if !c.asked.Load() {
			silent = append(silent, c)
		}
	}
	l.mu.Unlock()
	for _, c := range silent {
		_ = c.Close()
	}
}

// forget makes the connections strangers' whose client is gone: each ends in time, unless it shows another
// token.
func (l *limited) forget() {
	var closed []*counted
	l.mu.Lock()
	for c := range l.open {
		if client := c.known.Load(); client != nil && client.Gone() && c.place == nil {
			if room := l.doubt(c); room != nil {
				closed = append(closed, room)
			}
		}
	}
	l.mu.Unlock()
	for _, c := range closed {
		_ = c.Conn.Close()
	}
}

// Accept returns the next connection within the limit. Errors that pass, such as too few
// descriptors, make it wait, and are logged when they begin.
func (l *limited) Accept() (net.Conn, error) {
	for pause := time.Duration(0); ; {
		c, err := l.Listener.Accept()
		if err == nil {
			if c := l.enter(c); c != nil {
				return c, nil
			}
			pause = 0
			continue
		}
		if !passes(err) {
			return nil, err
		}
		if pause == 0 {
			l.issuer.Config().Logger.Error("connections cannot be accepted now: raise the limit of open files if there are too many", "protocol", l.protocol.String(), "error", err)
		}
		pause = min(max(2*pause, minPause), maxPause)
		time.Sleep(pause) // a listener that is closed meanwhile says so at the next accept
	}
}

// passes reports whether a later accept may succeed: not if the listener itself is closed or
// broken.
func passes(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err) // not of a listener that was closed here
	return ok && errno != syscall.EBADF && errno != syscall.EINVAL
}

// counted is a connection of a limited listener. It is an [issuer.Peer].
type counted struct {
	net.Conn
	listener *limited
	old      time.Time                     // when it is; zero: never
	known    atomic.Pointer[issuer.Client] // the last that asked, for which it counts; nil before. Written under mu
	asked    atomic.Bool                   // the connection is no longer silent: set once

	// Guarded by listener.mu.
	joined bool          // it is one of limited.known
	place  *list.Element // of limited.unknown, or nil
	timer  *time.Timer   // closes the connection while it is a stranger's
}

// settle takes the connection out of those of strangers. It is called with mu.
func (c *counted) settle() {
	if c.place != nil {
		c.timer.Stop()
		c.listener.unknown.Remove(c.place)
		c.place = nil
	}
}

// leave ends the count of the connection. It is called with mu.
func (c *counted) leave() {
	if _, open := c.listener.open[c]; !open {
		return
	}
	delete(c.listener.open, c)
	c.listener.issuer.Closed(c.listener.protocol)
	c.settle()
	c.listener.part(c)
	if client := c.known.Load(); client != nil {
		client.Leave()
	}
}

// Known says that the peer may ask in the name of a client.
func (c *counted) Known(client *issuer.Client) error {
	if c.known.Load() == client {
		return nil
	}
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	last := c.known.Load()
	if last == client {
		return nil
	}
	if _, open := l.open[c]; !open {
		return net.ErrClosed
	}
	if err := client.Join(); err != nil { // also if it is gone: forget may have looked before
		return err
	}
	if !c.joined {
		if err := l.join(c); err != nil {
			client.Leave()
			return err
		}
	}
	if last != nil {
		last.Leave()
	}
	c.known.Store(client)
	c.settle()
	return nil
}

// Asked says that the peer has sent a whole request.
func (c *counted) Asked() {
	if !c.asked.Load() { // connections share no cache line by a look
		c.asked.Store(true)
	}
}

// Old reports whether the connection has reached its age.
func (c *counted) Old() bool { return !c.old.IsZero() && time.Now().After(c.old) }

func (c *counted) Close() error {
	c.listener.mu.Lock()
	c.leave()
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// SyscallConn returns the descriptor.
func (c *counted) SyscallConn() (syscall.RawConn, error) {
	if socket, ok := c.Conn.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite tells the peer that nothing more comes. The server of HTTP does it before it
// drops a request that it has not read.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// spread divides the descriptors of a process that may open so many files: the connections of strangers of each of some
// listeners, at most, and those that are known, of all.
func spread(files int64, listeners int) (strangers int, known int64) {
	free := files - min(limit.SpareFiles, files/2)
	strangers = int(min(limit.Strangers, max(1, free/4/int64(max(listeners, 1)))))
	return strangers, max(1, free-int64(strangers*listeners))
}
