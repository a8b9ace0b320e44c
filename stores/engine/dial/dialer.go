// Package dial connects the driver of an engine to its server. It is apart from package engine so that a program
// with no store but a directory links neither TLS nor HTTP.
package dial

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// unheard is the longest time that sent bytes stay without an acknowledgement: then the
// connection is closed. A machine without power acknowledges nothing. The machine of a slow
// or stopped server acknowledges.
const unheard = 10 * time.Second

// MaxSilence is how long an engine that was opened by a URL keeps a connection whose
// operation was given up, while it waits for the answer. Until it answers, the server may
// still work on the operation and count the connection, even if the client has closed it. If
// another server has taken over the address, the engine reaches it after this time. A grant
// of the default window lasts longer: it survives an outage of 20 seconds.
const MaxSilence = 15 * time.Second

// MaxConns is how many connections most engines may have to a server, as the server counts them: a driver closes one whose
// server is silent, and makes the next.
const MaxConns = 4

// Dialer connects the driver of an engine to its server. It notices soon that the other
// machine is gone, so an engine need not close a connection because an answer is late. Its
// zero value is ready for use, by several goroutines at once.
type Dialer struct {
	// Most is the largest number of connections to one address; 0 is no bound. A connection
	// that the driver has closed counts until the server has closed it too, or MaxSilence
	// has passed. At the bound, Dial waits.
	Most int

	// One says that the driver has one connection at a time: Dial closes the one before, which
	// the driver may have left open.
	One bool

	// TLS has the configuration of connections with TLS; nil is for plain ones, and for drivers
	// that make the handshake. Without a ServerName, it is the host of the address.
	TLS Secure

	mu     sync.Mutex
	conns  map[*conn]struct{} // that are open
	freed  chan struct{}      // which remove and Close close, if a Dial waits at the bound; else nil
	closed bool
	last   error // of the last Dial
}

// Dial connects to an address, and makes the handshake of TLS, within 10 seconds. On Linux, the
// connection is closed soon after the other machine has not acknowledged bytes for 10 seconds.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.connect(ctx, network, address, d.TLS)
}

// connect is Dial with another TLS.
func (d *Dialer) connect(ctx context.Context, network, address string, tls Secure) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, unheard)
	defer cancel()
	if d.One {
		d.closeOpen()
	}
	conn, err := d.dial(ctx, cancel, network, address)
	if err == nil && tls != nil {
		conn, err = tls.handshake(ctx, conn, address)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
	return conn, err
}

// Because returns an error of the driver with that of the last Dial that has ended, unless that made a
// connection. Some drivers do not return it. Of nil it returns nil.
func (d *Dialer) Because(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil || d.last == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, d.last)
}

// closeOpen closes the connections as the driver would.
func (d *Dialer) closeOpen() {
	d.mu.Lock()
	var open []*conn
	for c := range d.conns {
		if c.Conn != nil { // it is connected
			open = append(open, c)
		}
	}
	d.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // the driver may have closed it
	}
}

func (d *Dialer) dial(ctx context.Context, cancel func(), network, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: limitUnheard,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: unheard / 2, Interval: unheard / 2, Count: 2}}
	c := &conn{dialer: d, address: address, cancel: cancel}
	if err := d.add(ctx, c); err != nil {
		return nil, err
	}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		d.remove(c)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	c.Conn = raw
	c.last.Store(time.Now().UnixNano())
	return c, nil
}

// add waits until there are fewer than Most connections to the address.
func (d *Dialer) add(ctx context.Context, c *conn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.closed && d.Most > 0 && d.to(c.address) >= d.Most {
		if d.freed == nil {
			d.freed = make(chan struct{})
		}
		freed := d.freed
		d.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
		d.mu.Lock()
		if ctx.Err() != nil {
			return fmt.Errorf("%d connections are open, or the server has not closed them: look at the server and the network: %w", d.Most, ctx.Err())
		}
	}
	if d.closed {
		return net.ErrClosed
	}
	if d.conns == nil {
		d.conns = make(map[*conn]struct{})
	}
	d.conns[c] = struct{}{}
	return nil
}

// to counts the connections to an address.
func (d *Dialer) to(address string) (n int) {
	for c := range d.conns {
		if c.address == address {
			n++
		}
	}
	return n
}

func (d *Dialer) remove(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	d.wake()
}

func (d *Dialer) wake() {
	if d.freed != nil {
		close(d.freed)
		d.freed = nil
	}
}

// Rest closes the connections on which no byte has gone either way for [MaxSilence], so that the driver dials anew: one that
// has died in silence would cost the next operation its whole time. Most die while this process or its machine is paused, so
// the clock of the wall counts, which goes on meanwhile. No operation may be under way.
func (d *Dialer) Rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		if c.Conn != nil && !c.closed.Load() && time.Now().UnixNano()-c.last.Load() >= int64(MaxSilence) {
			_ = c.Conn.Close()
			delete(d.conns, c) // the server has nothing to do for it, and need not count it
		}
	}
	d.wake()
}

// Close closes all connections, including those that wait for an answer, and ends calls of Dial. Later ones
// fail with [net.ErrClosed].
func (d *Dialer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.conns {
		if c.Conn == nil {
			c.cancel()
		} else {
			_ = c.Conn.Close() // an operation of the driver on it fails
		}
	}
	d.conns = nil
	d.wake()
	return nil
}

// conn is a connection that its Dialer knows until it is closed.
type conn struct {
	net.Conn // dialer.mu guards it, until Dial returns
	dialer   *Dialer
	address  string
	cancel   func()       // ends Dial
	closed   atomic.Bool  // the driver has closed it; never reset
	last     atomic.Int64 // when bytes went either way, in nanoseconds since 1970; for Rest
	reading  sync.RWMutex // read-locked by a Read of the driver, locked by linger
}

func (c *conn) Read(b []byte) (int, error) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.last.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.last.Store(time.Now().UnixNano())
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if c.dialer.Most == 0 || !ok || half.CloseWrite() != nil {
		c.dialer.remove(c)
		return c.Conn.Close()
	}
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // ends a Read of the driver
	go c.linger()
	return nil
}

// linger waits until the other end has closed the connection, or the Dialer is closed.
func (c *conn) linger() {
	c.reading.Lock()
	_ = c.Conn.SetReadDeadline(time.Now().Add(MaxSilence))
	c.reading.Unlock()
	_, _ = io.Copy(io.Discard, c.Conn)
	_ = c.Conn.Close()
	c.dialer.remove(c)
}

// SyscallConn lets a driver check whether the other end has closed the connection.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, syscall.EINVAL
}

// Transport is an HTTP transport for an engine whose driver speaks HTTP. It is safe for use by several goroutines at once.
type Transport struct {
	http.Transport
	dialer Dialer
}

// NewTransport returns a Transport with at most conns connections to a server that are used, and at most most with those that
// the server has not closed yet. Each handshake has the configuration of secure then; behind a proxy, of which it takes those of the
// environment, that of now. It is HTTP/1.1: a request that was given up closes its connection, and the next takes another,
// while one connection of HTTP/2 would hang for all. The error is that of secure.
func NewTransport(most, conns int, secure Secure) (*Transport, error) {
	config, err := secure()
	t := &Transport{dialer: Dialer{Most: most}, Transport: http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config,
		MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: unheard,
	}}
	t.DialContext = t.dialer.Dial
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return t.dialer.connect(ctx, network, address, secure)
	}
	return t, err
}

// Rest is that of the Dialer.
func (t *Transport) Rest() { t.dialer.Rest() }

// Close closes all connections, and the Dialer.
func (t *Transport) Close() error {
	t.CloseIdleConnections()
	return t.dialer.Close()
}
