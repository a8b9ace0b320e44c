package issuer

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Protocol is how a request came.
type Protocol uint8

// The protocols.
const (
	RESP Protocol = iota
	GRPC
	HTTP
	Probes // HTTP for probes alone
)

// Protocols is the number of protocols.
const Protocols = int(Probes) + 1

var protocolNames = [Protocols]string{"resp", "grpc", "http", "probes"}

func (p Protocol) String() string { return protocolNames[p] }

// Peer is the other end of a connection, for the listener that limits connections.
type Peer interface {
	// Known says that the peer may ask, in the name of a client, and costs little when it is said again. A
	// connection without it, or whose last client is gone, ends soon. It fails where the client or the server has
	// too many connections.
	Known(c *Client) error
	// Asked says that a peer that may ask has sent a whole request. A drain waits for no other.
	Asked()
	// Old reports whether the connection has reached its largest age, and should end with its request.
	Old() bool
}

// PeerOf returns the peer of a connection, also through TLS.
func PeerOf(c net.Conn) Peer {
	for {
		switch one := c.(type) {
		case Peer:
			return one
		case interface{ NetConn() net.Conn }:
			c = one.NetConn()
		default:
			return unlimited{}
		}
	}
}

// unlimited is the peer of a connection of a listener that limits none.
type unlimited struct{}

func (unlimited) Known(*Client) error { return nil }
func (unlimited) Asked()              {}
func (unlimited) Old() bool           { return false }

// Request is a request that was answered.
type Request struct {
	Protocol Protocol
	Method   string        // ID, INCR, Take, POST /v1/ids: of a known set, never text of the client
	Client   *Client       // nil: it is not known
	Remote   string        // address of the peer
	Items    int64         // IDs or numbers that it got
	Duration time.Duration // not of RESP, whose commands share the time of a pipeline
	Err      error         // a *Refusal, or nil
}

// Serve carries a request of HTTP or gRPC through, from where its client is known to its answer: the calls of the client
// are counted, and answer has the timeout of a request. The caller tells the observer, which counts the request, by Done.
func (i *Issuer) Serve(ctx context.Context, r *Request, answer func(ctx context.Context) (items int64, err error)) {
	if c := r.Client; c != nil && c.Name != "" && r.Err == nil {
		if r.Err = c.within(&c.calls, "calls under way"); r.Err == nil {
			defer c.calls.Add(-1)
		}
	}
	if r.Err != nil {
		return
	}
	bounded := i.Timeout(ctx)
	defer bounded.Cancel()
	if r.Items, r.Err = answer(bounded); r.Err != nil {
		r.Items = 0
	}
}

// Timeout is a context that ends after the timeout of a request. Its timer starts when it is
// first asked for its deadline or waited for, so that a request that need not wait costs
// nothing. It is safe for concurrent use.
type Timeout struct {
	parent context.Context
	issuer *Issuer

	once    sync.Once
	running atomic.Pointer[timer] // nil until the timer starts; set once
}

// timer is a context with the function that ends it.
type timer struct {
	context.Context
	cancel context.CancelFunc
}

// Timeout returns ctx with the timeout of a request. Call [Timeout.Cancel] after the request. Unless
// [Timeout.Started] is true, it can be used for the next one instead.
func (i *Issuer) Timeout(ctx context.Context) *Timeout {
	return &Timeout{parent: ctx, issuer: i}
}

// Started reports whether the timer has started.
func (t *Timeout) Started() bool { return t.running.Load() != nil }

// Cancel frees the timer, and ends the context, if the timer has started.
func (t *Timeout) Cancel() {
	if running := t.running.Load(); running != nil {
		running.cancel()
	}
}

// start returns the context with the timer.
func (t *Timeout) start() context.Context {
	t.once.Do(func() {
		ctx, cancel := context.WithTimeoutCause(t.parent, t.issuer.config.Timeout, t.issuer.timeout)
		t.running.Store(&timer{ctx, cancel})
	})
	return t.running.Load()
}

// now returns the context that holds without a start of the timer. Each command calls it, so it
// takes no lock.
func (t *Timeout) now() context.Context {
	if running := t.running.Load(); running != nil {
		return running
	}
	return t.parent
}

// Deadline is that of [context.Context]. It starts the timer.
func (t *Timeout) Deadline() (time.Time, bool) { return t.start().Deadline() }

// Done is that of [context.Context]. It starts the timer.
func (t *Timeout) Done() <-chan struct{} { return t.start().Done() }

// Err is that of [context.Context].
func (t *Timeout) Err() error { return t.now().Err() }

// Value is that of [context.Context].
func (t *Timeout) Value(key any) any { return t.now().Value(key) }
