package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Direction is the way that bytes go through a [Proxy].
type Direction int

// The directions.
const (
	ToServer Direction = iota
	ToClient
)

// Proxy connects the clients of a server with the server, as the network does. It passes
// all bytes on, until the test tells it to hold, cut or refuse. It is safe for use by several
// goroutines at once.
type Proxy struct {
	listener net.Listener

	mu      sync.Mutex
	changed *sync.Cond // any field that mu guards
	server  string
	held    [2]bool
	passing [2]int // chunks that go through although their direction is held
	refuse  bool
	refused int // connections
	closed  bool
	conns   map[*proxied]struct{}
	running sync.WaitGroup
}

// proxied is one connection through a Proxy.
type proxied struct {
	ends  [2]net.Conn // by the direction that is read from it: the client's, the server's
	chunk [2][][]byte // on their way; nil is the end of the stream
	over  [2]bool     // nothing is sent on any more
	cut   bool
	lost  bool
}

// NewProxy is [StartProxy] for a test. The Proxy lives until the test ends.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	p, err := StartProxy(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// StartProxy returns a Proxy to the server at an address, "host:port". It lives until
// Close. It fails if no port of 127.0.0.1 is free.
func StartProxy(server string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{server: server, listener: listener, conns: make(map[*proxied]struct{})}
	p.changed = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns the address for the clients, "host:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Hold keeps back, from now on and on all connections, the bytes that go in a
// direction. They are not lost: Pass, Resume or Cut decide on them. Connections that
// are made meanwhile are held, too.
func (p *Proxy) Hold(d Direction) { p.set(func() { p.held[d] = true }) }

// Pass lets one of the held pieces through: the bytes of one write of an end, or a part
// of them. If none is held, it does nothing.
func (p *Proxy) Pass(d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting(d) > 0 {
		p.passing[d]++
		p.changed.Broadcast()
		for p.passing[d] > 0 && p.waiting(d) > 0 {
			p.changed.Wait()
		}
		p.passing[d] = 0
	}
}

// Resume lets everything through again, the held bytes first. The bytes of a client
// that has gone away meanwhile do arrive at the server.
func (p *Proxy) Resume() { p.set(func() { p.held = [2]bool{}; p.refuse = false }) }

// Refuse closes new connections as soon as they are made, until Resume.
func (p *Proxy) Refuse() { p.set(func() { p.refuse = true }) }

// Cut closes all connections and loses the bytes that are held. New connections are
// as before.
func (p *Proxy) Cut() {
	p.set(func() {
		for c := range p.conns {
			p.cut(c)
		}
	})
}

// Lose loses what the ends of the connections that there are now send, and tells neither, as a firewall does that has
// forgotten them. New connections are as before.
func (p *Proxy) Lose() {
	p.set(func() {
		for c := range p.conns {
			c.lost = true
		}
	})
}

// To leads new connections to the server at another address, like a name that moves to
// another machine. Cut ends the connections to the former server.
func (p *Proxy) To(server string) { p.set(func() { p.server = server }) }

// Held waits until bytes are held in a direction, and reports whether there are any
// when the time has passed.
func (p *Proxy) Held(d Direction, within time.Duration) bool {
	late := false
	timer := time.AfterFunc(within, func() { p.set(func() { late = true }) })
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.waiting(d) == 0 && !late {
		p.changed.Wait()
	}
	return p.waiting(d) > 0
}

// set makes a change and wakes all waiters.
func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// waiting returns how many pieces are held. The end of a stream is none.
func (p *Proxy) waiting(d Direction) int {
	if !p.held[d] {
		return 0
	}
	n := 0
	for c := range p.conns {
		for _, chunk := range c.chunk[d] {
			if chunk != nil {
				n++
			}
		}
	}
	return n
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.running.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	refuse, addr := p.refuse || p.closed, p.server
	if refuse {
		p.refused++
	}
	p.mu.Unlock()
	var server net.Conn
	var err error
	if !refuse {
		server, err = net.DialTimeout("tcp", addr, patience)
	}
	if refuse || err != nil {
		_ = client.Close()
		return
	}
	c := &proxied{ends: [2]net.Conn{ToServer: client, ToClient: server}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		p.cut(c)
		return
	}
	p.conns[c] = struct{}{}
	for _, d := range []Direction{ToServer, ToClient} {
		p.running.Go(func() { p.receive(c, d) })
		p.running.Go(func() { p.send(c, d) })
	}
}

// receive reads all incoming bytes, also while they are held, so that the bytes of an end
// that closes its connection are not lost.
func (p *Proxy) receive(c *proxied, d Direction) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.ends[d].Read(buffer)
		p.mu.Lock()
		if n > 0 && !c.over[d] {
			c.chunk[d] = append(c.chunk[d], bytes.Clone(buffer[:n]))
		}
		if err != nil && !c.over[d] {
			c.chunk[d] = append(c.chunk[d], nil)
		}
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *Proxy) send(c *proxied, d Direction) {
	to := c.ends[1-d]
	for {
		chunk, ok := p.next(c, d)
		if !ok {
			return
		}
		if chunk == nil {
			if tcp, ok := to.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			break
		}
		if _, err := to.Write(chunk); err != nil {
			break
		}
	}
	// The other end may still send, unless it has closed as well.
	p.mu.Lock()
	defer p.mu.Unlock()
	c.over[d] = true
	c.chunk[d] = nil
	if c.over[1-d] {
		p.cut(c)
	}
	p.changed.Broadcast()
}

// next waits until a piece may go through, and takes it. It returns false when the
// connection is cut.
func (p *Proxy) next(c *proxied, d Direction) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !c.cut && (c.lost || len(c.chunk[d]) == 0 || p.held[d] && (p.passing[d] == 0 || c.chunk[d][0] == nil)) {
		p.changed.Wait()
	}
	if c.cut {
		return nil, false
	}
	chunk := c.chunk[d][0]
	c.chunk[d] = c.chunk[d][1:]
	if p.held[d] {
		p.passing[d]--
	}
	p.changed.Broadcast()
	return chunk, true
}

// cut closes a connection. It is called with the lock.
func (p *Proxy) cut(c *proxied) {
	c.cut = true
	delete(p.conns, c)
	for _, end := range c.ends {
		_ = end.Close()
	}
}

// Close ends all connections, and returns when the goroutines of the Proxy have ended. A
// second call does nothing.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.set(func() { p.closed = true })
	p.Cut()
	p.running.Wait()
}
