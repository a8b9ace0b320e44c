package enginetest

import (
	"context"
	"net"
	"sync/atomic"
)

// Trips returns a dialer, and the count of the round trips of all its connections.
func Trips() (dial func(ctx context.Context, network, addr string) (net.Conn, error), n *atomic.Int64) {
	n = new(atomic.Int64)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return trips{conn, new(atomic.Bool), n}, err
	}, n
}

// trips counts round trips: reads from a connection after a write.
type trips struct {
	net.Conn
	wrote *atomic.Bool
	n     *atomic.Int64
}

func (c trips) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

func (c trips) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.wrote.Swap(false) {
		c.n.Add(1)
	}
	return n, err
}
