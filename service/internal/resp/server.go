// Package resp serves IDs and numbers over the Redis protocol, in its versions 2 and 3.
package resp

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/observe"
)

// Limits bound the requests, and the memory and connections, of strangers. A field that is 0 has its default.
type Limits struct {
	Argument  int // bytes in an argument; 4096 by default
	Arguments int // in a command, its name among them; 64 by default
	Command   int // bytes in a command, with its headers; 16,384 by default
	Inline    int // bytes in a command that is a line of text; 4096 by default
	Pending   int // bytes of replies that are collected before they are written; 32,768 by default

	IdleTimeout  time.Duration // between commands; 1h by default
	ReadTimeout  time.Duration // from the first byte of a command to its last; 10s by default
	WriteTimeout time.Duration // for replies that the client does not read; 10s by default
}

func (l Limits) complete() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{{&l.Argument, 4096}, {&l.Arguments, 64}, {&l.Command, 16384}, {&l.Inline, 4096}, {&l.Pending, 32768}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.IdleTimeout, time.Hour}, {&l.ReadTimeout, 10 * time.Second}, {&l.WriteTimeout, 10 * time.Second}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return l
}

// Server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	issuer   *issuer.Issuer
	observer *observe.Observer
	limits   Limits
	began    time.Time
	buffers  sync.Pool // of *buffer: what a command and its reply need while they are under way

	ctx    context.Context // of all requests; ends when Shutdown runs out of time
	cancel context.CancelFunc
	lastID atomic.Int64 // of a connection; only grows

	// closing is true from the beginning of Shutdown. A connection looks at it after it has
	// set its deadline and before it waits; Shutdown sets it before it ends all deadlines. So
	// no connection waits on.
	closing atomic.Bool

	mu       sync.Mutex
	listener net.Listener
	conns    map[*conn]struct{}
	empty    chan struct{} // closed when closing is set and there is no connection
}

// New returns a server.
func New(i *issuer.Issuer, o *observe.Observer, l Limits) *Server {
	s := &Server{issuer: i, observer: o, limits: l.complete(), began: time.Now(), conns: make(map[*conn]struct{}), empty: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.buffers.New = func() any { return &buffer{in: make([]byte, s.limits.Command)} }
	return s
}

// Serve accepts connections until [Server.Shutdown], and then returns nil. It closes the
// listener. The listener counts and limits the connections, and goes on after an error that
// passes: any error of it ends Serve.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.listener != nil {
		s.mu.Unlock()
		return fmt.Errorf("resp: the server serves %s already", s.listener.Addr())
	}
	s.listener = l
	closing := s.closing.Load() // if not, Shutdown closes the listener
	s.mu.Unlock()
	if closing {
		return nil
	}
	for {
		nc, err := l.Accept()
		if s.closing.Load() {
			if err == nil {
				nc.Close()
			}
			return nil
		}
		if err != nil {
			return err
		}
		if !s.start(nc) {
			nc.Close()
		}
	}
}

// start serves a connection in a goroutine of its own, unless the server is closing.
func (s *Server) start(nc net.Conn) bool {
	c := newConn(s, nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.conns[c] = struct{}{}
	go func() {
		defer s.leave(c)
		c.serve()
	}()
	return true
}

func (s *Server) leave(c *conn) {
	c.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.closing.Load() && len(s.conns) == 0 {
		close(s.empty)
	}
}

// Shutdown stops accepting, lets the pipelines that were begun be answered, closes all
// connections, and returns when this is done. When ctx ends it closes them at once, and
// returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closing.Swap(true)
	if s.listener != nil {
		s.listener.Close()
	}
	if first && len(s.conns) == 0 {
		close(s.empty)
	}
	for c := range s.conns {
		c.wake()
	}
	s.mu.Unlock()
	defer s.cancel()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	s.mu.Lock()
	for c := range s.conns {
		c.abort()
	}
	s.mu.Unlock()
	<-s.empty
	return ctx.Err()
}

// open returns how many connections there are.
func (s *Server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
