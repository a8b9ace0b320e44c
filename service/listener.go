package service

import (
	"container/list"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

const (
	minPause = 5 * time.Millisecond // after a failed accept; doubles with each that follows
	maxPause = time.Second

	maxProbes = 64 // connections to the listener of probes
)

// limited is a listener whose connections are counted and limited. Where peers have to show that
// they may ask, a connection is unknown until its peer has: it ends after a while, and before
// that if there is no room for a new one. So strangers keep nobody out. A connection is silent until
// its peer has sent a whole request: a drain closes it when it begins. So strangers do not delay it.
// Connections of package net have TCP keep-alive.
type limited struct {
	net.Listener
	protocol issuer.Protocol
	issuer   *issuer.Issuer
	most     int
	patience time.Duration // how long a connection may be unknown; 0: each is known from its start
	all      *total

	// Guarded by all.mu.
	open    map[*counted]struct{} // connections that are not closed: at most "most"
	unknown list.List             // those of them that are unknown, in the order in which they came
	drained bool                  // set once: new connections are refused
}

// total counts the connections of all listeners, for the descriptors that they share.
type total struct {
	most int64

	mu        sync.Mutex
	open      int64 // connections of all listeners: at most "most"
	listeners []*limited
}

// oldest returns the connection that has been unknown for longest, or nil.
func (t *total) oldest() (old *counted) {
	for _, l := range t.listeners {
		if c := first(&l.unknown); c != nil && (old == nil || c.since.Before(old.since)) {
			old = c
		}
	}
	return old
}

// first returns the connection that has been in a list for longest, or nil.
func first(l *list.List) *counted {
	if e := l.Front(); e != nil {
		return e.Value.(*counted)
	}
	return nil
}

// limit counts and limits the connections of l.
func (l *limited) limit() *limited {
	l.open = make(map[*counted]struct{})
	l.all.listeners = append(l.all.listeners, l)
	return l
}

// enter returns a connection that is counted until it is closed, or nil if there are too many.
func (l *limited) enter(nc net.Conn) net.Conn {
	c := &counted{Conn: nc, listener: l}
	var old *counted // closed for c
	t := l.all
	t.mu.Lock()
	full := true
	switch {
	case l.drained:
	case len(l.open) >= l.most:
		old = first(&l.unknown)
	case t.open >= t.most:
		old = t.oldest()
	default:
		full = false
	}
	if old != nil {
		old.leave()
	}
	drained, refused := l.drained, full && old == nil
	if !refused {
		l.open[c] = struct{}{}
		t.open++
		l.issuer.Opened(l.protocol)
		if l.patience > 0 {
			c.doubt()
		}
	}
	t.mu.Unlock()
	if old != nil {
		_ = old.Conn.Close()
	}
	if full && !drained {
		l.issuer.Turned(l.protocol)
	}
	if refused {
		_ = nc.Close()
		return nil
	}
	return c
}

// drain closes the connections that are silent, and refuses new ones.
func (l *limited) drain() {
	l.all.mu.Lock()
	l.drained = true
	var silent []*counted
	for c := range l.open {
		if !c.asked.Load() {
			silent = append(silent, c)
		}
	}
	l.all.mu.Unlock()
	for _, c := range silent {
		_ = c.Close()
	}
}

// forget makes the connections unknown whose client is gone: each ends in time, unless it shows another
// token.
func (l *limited) forget() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	for c := range l.open {
		if client := c.known.Load(); client != nil && client.Gone() && c.place == nil {
			c.doubt()
		}
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
	known    atomic.Pointer[issuer.Client] // the last that asked; nil before. Written under mu
	asked    atomic.Bool                   // the connection is no longer silent: set once

	// Guarded by listener.all.mu.
	since time.Time     // when it became unknown
	place *list.Element // of limited.unknown, or nil
	timer *time.Timer   // closes the connection while it is unknown
}

// doubt makes the connection unknown. It is called with mu.
func (c *counted) doubt() {
	c.since = time.Now()
	c.place = c.listener.unknown.PushBack(c)
	c.timer = time.AfterFunc(c.listener.patience, func() { _ = c.Close() })
}

// settle takes the connection out of those that are unknown. It is called with mu.
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
	c.listener.all.open--
	c.listener.issuer.Closed(c.listener.protocol)
	c.settle()
}

// Known says that the peer may ask in the name of a client.
func (c *counted) Known(client *issuer.Client) {
	if c.known.Load() == client {
		return
	}
	c.listener.all.mu.Lock()
	defer c.listener.all.mu.Unlock()
	if !client.Gone() { // else forget may have looked before
		c.known.Store(client)
		c.settle()
	}
}

// Asked says that the peer has sent a whole request.
func (c *counted) Asked() {
	if !c.asked.Load() { // connections share no cache line by a look
		c.asked.Store(true)
	}
}

func (c *counted) Close() error {
	c.listener.all.mu.Lock()
	c.leave()
	c.listener.all.mu.Unlock()
	return c.Conn.Close()
}

// Write makes Close drop what the peer has not read, once it has read too slowly: else the kernel would offer it
// megabytes for minutes more. A drain leaves them to the peer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.listener.all.mu.Lock()
		defer c.listener.all.mu.Unlock()
		if socket, ok := c.Conn.(*net.TCPConn); ok && !c.listener.drained {
			_ = socket.SetLinger(0)
		}
	}
	return n, err
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
