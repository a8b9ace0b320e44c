// Package resp serves IDs and numbers over the Redis protocol, in its versions 2 and 3.
//
// A connection goes from outside to inside through counted of package service, a [socket], an [outbox], TLS if there is
// any, and a [conn], which reads commands and writes replies.
package resp

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// Server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	issuer  *issuer.Issuer
	kept    atomic.Int64 // bytes of replies that clients have not read
	buffers sync.Pool    // of *buffer: what a command and its reply need while they are under way

	// A connection looks at draining after it has set its deadline and before it waits.
	// Shutdown ends draining before it ends all deadlines. So no connection waits on.
	draining context.Context // ends when Shutdown begins
	ctx      context.Context // of all requests; ends when Shutdown runs out of time
	drain    context.CancelFunc
	cancel   context.CancelFunc

	lastID atomic.Int64 // of a connection; only grows

	mu    sync.Mutex     // held to begin a connection or a drain
	conns sync.WaitGroup // none is added after the drain began
}

// New returns a server.
func New(i *issuer.Issuer) *Server {
	s := &Server{issuer: i}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.buffers.New = func() any { return &buffer{in: make([]byte, limit.Command)} }
	return s
}

// Serve accepts connections until [Server.Shutdown], and then returns nil. It closes the
// listener. The listener counts and limits the connections, and goes on after an error that
// passes: any error of it ends Serve.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	defer context.AfterFunc(s.draining, func() { l.Close() })()
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.start(nc)
		case s.closing():
			return nil
		default:
			return err
		}
	}
}

// closing reports whether Shutdown has begun.
func (s *Server) closing() bool { return s.draining.Err() != nil }

// start serves a connection in a goroutine of its own, unless the server is closing.
func (s *Server) start(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing() {
		nc.Close()
		return
	}
	s.conns.Go(func() {
		c := newConn(s, nc)
		if config := s.issuer.Config().TLS; config != nil {
			c.nc = tls.Server(c.out, config)
		}
		woken := make(chan struct{})
		wake := context.AfterFunc(s.draining, func() { c.nc.SetReadDeadline(past); close(woken) })
		defer context.AfterFunc(s.ctx, func() { c.nc.SetWriteDeadline(past) })()
		c.serve()
		if !wake() {
			<-woken
		}
		c.close()
	})
}

// Shutdown stops accepting, lets the commands that were received be answered, closes all
// connections, and returns when this is done. When ctx ends it closes them at once, and
// returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.drain()
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, s.cancel)
	s.conns.Wait()
	if stop() {
		s.cancel()
		return nil
	}
	return ctx.Err()
}
