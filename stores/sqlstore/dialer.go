package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"sync"
	"syscall"
	"time"
)

// unheard is how long the other machine may leave bytes without an acknowledgement, as when
// it has lost power, before a connection is closed. A server that is only slow, or stopped,
// acknowledges.
const unheard = 10 * time.Second

// Dialer makes the connections of a database handle that a package such as stores/mysql
// opens by a URL. Its zero value is ready for use, by several goroutines at once.
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

// OpenDB returns a handle for one Store, with up to [MaxRunning] connections. It keeps one
// of them for the given time without use. connector must connect by d. Closing the handle
// closes all connections, also those that wait for an answer.
func (d *Dialer) OpenDB(connector driver.Connector, idle time.Duration) *sql.DB {
	db := sql.OpenDB(patient{connector, d})
	db.SetMaxOpenConns(MaxRunning)
	db.SetMaxIdleConns(1) // so that a thousand processes do not keep thousands of connections
	db.SetConnMaxIdleTime(idle)
	return db
}

// patient is a connector that goes on when a context ends, like run: a server also counts
// connections that have not logged in yet.
type patient struct {
	driver.Connector
	dialer *Dialer
}

func (p patient) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), MaxSilence)
	defer cancel()
	return p.Connector.Connect(ctx)
}

// Close is called by the handle when it is closed.
func (p patient) Close() error {
	d := p.dialer
	d.mu.Lock()
	d.closed = true
	conns := d.conns
	d.conns = nil
	d.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close() // those in use report it
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
