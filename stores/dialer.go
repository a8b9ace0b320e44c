package stores

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// unheard is how long the other machine may leave bytes without an acknowledgement, as when
// it has lost power, before a connection is closed. A server that is only slow, or stopped,
// acknowledges.
const unheard = 10 * time.Second

// MaxSilence is how long an engine that is opened by a URL waits for the answer to an
// operation that its caller has given up, before it closes the connection. The server may
// still work on the operation, and count the connection, also after a client has closed it.
// If another server has taken over the address meanwhile, the engine reaches it after that
// time: soon enough for a grant of the default window, which outlasts 20 seconds.
const MaxSilence = 15 * time.Second

// Dialer connects the driver of an engine with its server. It finds out early that the
// other machine is gone, so that an engine need not close a connection only because an
// answer is late. Its zero value is ready for use, by several goroutines at once.
type Dialer struct {
	mu     sync.Mutex
	conns  map[*conn]struct{} // that are open
	closed bool
}

// Dial connects to an address, for at most 10 seconds. On Linux, it closes the connection
// soon after the other machine has not acknowledged bytes for as long.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: unheard, Control: limitUnheard,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: unheard / 2, Interval: unheard / 2, Count: 2}}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, dialer: d}
	c.raw, _ = raw.(syscall.Conn)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	if d.conns == nil {
		d.conns = make(map[*conn]struct{})
	}
	d.conns[c] = struct{}{}
	return c, nil
}

// Close closes all connections, also those that wait for an answer. Later calls of Dial
// fail with [net.ErrClosed].
func (d *Dialer) Close() error {
	d.mu.Lock()
	d.closed = true
	conns := d.conns
	d.conns = nil
	d.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close() // who uses it gets an error, too
	}
	return nil
}

// conn is a connection that its Dialer knows until it is closed.
type conn struct {
	net.Conn
	raw    syscall.Conn
	dialer *Dialer
}

func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.conns, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// SyscallConn lets a driver look whether the other end has closed the connection.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if c.raw == nil {
		return nil, syscall.EINVAL
	}
	return c.raw.SyscallConn()
}
