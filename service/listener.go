package service

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/service/internal/observe"
)

const (
	minPause    = 5 * time.Millisecond // after a failed accept; doubles with each that follows
	maxPause    = time.Second
	maxRefusals = 32 // connections that are told at a time that there are too many
	refusalTime = 500 * time.Millisecond
	refusalRead = 4096 // bytes of a refused client that are read
)

// refusals are the answers to connections beyond the limit. A client of gRPC is disconnected,
// and goes to another server.
var refusals = [observe.Protocols]string{
	observe.RESP: "-ERR max number of clients reached\r\n",
	observe.HTTP: "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n" +
		"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 48\r\n\r\nThe server has too many connections: try again.\n",
}

// limited is a listener whose connections are counted and limited. Connections of package net
// have TCP keep-alive.
type limited struct {
	net.Listener
	protocol observe.Protocol
	observer *observe.Observer
	log      *slog.Logger
	most     int64
	all      *total
	answer   string // to connections beyond the limit; empty: none

	open   atomic.Int64 // connections that Accept returned and that are not closed, and one that is being accepted: at most "most" + 1
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	refused map[net.Conn]struct{} // each has a goroutine; nil once Close was called
	telling sync.WaitGroup        // these goroutines
}

// total counts the connections of all listeners, for the descriptors that they share.
type total struct {
	most int64
	open atomic.Int64 // as limited.open, of all listeners: at most "most" and one for each listener
}

// enter counts a connection, unless there are too many.
func (l *limited) enter() bool {
	own, all := l.open.Add(1), l.all.open.Add(1)
	if own <= l.most && all <= l.all.most {
		return true
	}
	l.leave()
	return false
}

func (l *limited) leave() {
	l.open.Add(-1)
	l.all.open.Add(-1)
}

func limit(l net.Listener, p observe.Protocol, o *observe.Observer, log *slog.Logger, most int, all *total, plain bool) *limited {
	limited := &limited{Listener: l, protocol: p, observer: o, log: log, most: int64(most), all: all, closed: make(chan struct{}), refused: make(map[net.Conn]struct{})}
	if plain {
		limited.answer = refusals[p]
	}
	return limited
}

// Accept returns the next connection within the limit. Errors that pass, such as too few
// descriptors, make it wait, and are logged when they begin.
func (l *limited) Accept() (net.Conn, error) {
	for pause := time.Duration(0); ; {
		c, err := l.Listener.Accept()
		switch {
		case err == nil && l.enter():
			l.observer.Opened(l.protocol)
			return l.count(c), nil
		case err == nil:
			l.observer.Turned(l.protocol)
			l.refuse(c)
			pause = 0
			continue
		case !passes(err):
			return nil, err
		}
		if pause == 0 {
			l.log.Error("connections cannot be accepted now: raise the limit of open files if there are too many", "protocol", l.protocol.String(), "error", err)
		}
		pause = min(max(2*pause, minPause), maxPause)
		select {
		case <-time.After(pause):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// passes reports whether a later accept may succeed: not if the listener itself is closed or
// broken.
func passes(err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	for _, broken := range []syscall.Errno{syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EOPNOTSUPP} {
		if errors.Is(err, broken) {
			return false
		}
	}
	_, ok := errors.AsType[syscall.Errno](err)
	return ok
}

// Close closes the listener and the connections that are being refused.
func (l *limited) Close() error {
	err := l.Listener.Close()
	l.once.Do(func() {
		close(l.closed)
		l.mu.Lock()
		for c := range l.refused {
			_ = c.SetDeadline(time.Unix(1, 0))
		}
		l.refused = nil
		l.mu.Unlock()
	})
	l.telling.Wait()
	return err
}

// refuse closes a connection beyond the limit. Up to maxRefusals at a time are told why.
func (l *limited) refuse(c net.Conn) {
	l.mu.Lock()
	tell := l.answer != "" && l.refused != nil && len(l.refused) < maxRefusals
	if tell {
		_ = c.SetDeadline(time.Now().Add(refusalTime))
		l.refused[c] = struct{}{}
		l.telling.Add(1)
	}
	l.mu.Unlock()
	if !tell {
		_ = c.Close()
		return
	}
	go func() {
		defer l.telling.Done()
		l.tell(c)
		_ = c.Close()
		l.mu.Lock()
		delete(l.refused, c)
		l.mu.Unlock()
	}()
}

// tell writes the answer. The client may have sent a request: if it is not read, the kernel
// may drop the answer. Clients of HTTP drop an answer that comes before their request.
func (l *limited) tell(c net.Conn) {
	if l.protocol == observe.HTTP {
		if _, err := c.Read(make([]byte, refusalRead)); err != nil {
			return
		}
	}
	if _, err := io.WriteString(c, l.answer); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, c, refusalRead)
	}
}

// count returns c as a connection that is counted until it is closed. It has SyscallConn if c
// has.
func (l *limited) count(c net.Conn) net.Conn {
	counted := &counted{Conn: c, listener: l}
	if sc, ok := c.(syscall.Conn); ok {
		return &countedSocket{counted, sc}
	}
	return counted
}

type counted struct {
	net.Conn
	listener *limited
	closed   atomic.Bool // set once, by the first Close
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.listener.leave()
		c.listener.observer.Closed(c.listener.protocol)
	}
	return c.Conn.Close()
}

// CloseWrite tells the peer that nothing more comes. The server of HTTP does it before it
// drops a request that it has not read.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

type countedSocket struct {
	*counted
	syscall.Conn
}

// handshakes is a listener of TLS connections. The goroutine of a connection makes the
// handshake when it first reads or writes, within a timeout.
type handshakes struct {
	net.Listener
	config  *tls.Config
	timeout time.Duration
}

func (l *handshakes) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &secured{Conn: tls.Server(c, l.config), timeout: l.timeout}, nil
}

type secured struct {
	*tls.Conn
	timeout time.Duration
	done    atomic.Bool // set once the handshake has succeeded
}

func (c *secured) Read(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *secured) Write(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *secured) handshake() error {
	if c.done.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	err := c.HandshakeContext(ctx)
	if err == nil {
		c.done.Store(true)
	}
	return err
}
