package issuer

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/limit"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"
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
	Method   string  // ID, INCR, Take, POST /v1/ids: of a known set, never text of the client
	Client   *Client // nil: it is not known
	Remote   string  // address of the peer
	Items    int64   // IDs or numbers that it got
	Duration time.Duration
	Err      error // a *Refusal, or nil
}

// Observer counts requests. Its methods are safe for concurrent use.
type Observer struct {
	log    *slog.Logger
	sample int64 // one request in so many is logged; 0: none

	samples atomic.Int64 // requests that could have been sampled
	counts  [Protocols]counts
	lines   [wire.Codes]lines // a flood of one code does not hide another

	// Set by Issuer.Measure, before the first request.
	durations [Protocols][]metric.Float64Histogram
	secure    bool // there is TLS, but for probes

	attributes sync.Map // of a request's kind: []metric.RecordOption
}

type counts struct {
	_       [64]byte // the protocols do not disturb each other
	served  atomic.Int64
	items   atomic.Int64
	refused [wire.Codes]atomic.Int64
	open    atomic.Int64 // connections
	opened  atomic.Int64 // connections, since the start
	turned  atomic.Int64 // connections beyond the limit
}

// lines bounds the lines of refused requests of one code.
type lines struct {
	limit      *rate.Limiter
	suppressed atomic.Int64 // requests without a line since the last line
}

// NewObserver returns an Observer that logs one request in sample; 0 logs none.
func NewObserver(log *slog.Logger, sample int64) *Observer {
	o := &Observer{log: log, sample: sample}
	for code := range o.lines {
		o.lines[code].limit = rate.NewLimiter(limit.LogLines, limit.LogLines)
	}
	return o
}

// Logs reports whether there is an access log. Without one, Request.Remote is needed for
// refused requests only.
func (o *Observer) Logs() bool { return o.sample > 0 }

// Done counts one request, and logs it if its turn has come. A request that was refused is
// logged in any case, unless there are too many of its code.
func (o *Observer) Done(r Request) {
	c := &o.counts[r.Protocol]
	if r.Protocol != RESP { // its pipelines are timed
		o.took(r)
	}
	if r.Err == nil {
		c.served.Add(1)
		c.items.Add(r.Items)
		r.Client.got(r.Items)
	} else {
		code := RefusalOf(r.Err).Code
		c.refused[code].Add(1)
		if code != wire.Canceled {
			if l := &o.lines[code]; l.limit.Allow() {
				o.write(level(code), r, l.suppressed.Swap(0))
				return
			}
			o.lines[code].suppressed.Add(1)
		}
	}
	if o.sample > 0 && o.samples.Add(1)%o.sample == 0 {
		o.write(slog.LevelInfo, r, 0)
	}
}

// Served counts requests of a client that were served together, without a line in the log: those of
// one pipeline.
func (o *Observer) Served(p Protocol, c *Client, requests, items int64) {
	o.counts[p].served.Add(requests)
	o.counts[p].items.Add(items)
	c.got(items)
}

// got counts what the client got.
func (c *Client) got(items int64) {
	if c == nil || items <= 0 {
		return
	}
	if all := c.items.Load(); all != nil {
		all.Add(items)
	}
}

// name returns the name of a client for the log.
func (c *Client) name() string {
	if c == nil {
		return ""
	}
	return c.Name
}

// Items returns how many IDs and numbers clients got, by all protocols.
func (o *Observer) Items() (items int64) {
	for p := range o.counts {
		items += o.counts[p].items.Load()
	}
	return items
}

// Opened and Closed count connections; Turned counts those beyond the limit.
func (o *Observer) Opened(p Protocol) { o.counts[p].open.Add(1); o.counts[p].opened.Add(1) }
func (o *Observer) Closed(p Protocol) { o.counts[p].open.Add(-1) }
func (o *Observer) Turned(p Protocol) { o.counts[p].turned.Add(1) }

func (o *Observer) write(at slog.Level, r Request, suppressed int64) {
	attributes := []slog.Attr{
		slog.String("protocol", r.Protocol.String()), slog.String("method", r.Method),
		slog.String("client", r.Client.name()), slog.String("remote", r.Remote),
		slog.Int64("items", r.Items),
	}
	if r.Duration > 0 { // else it was not measured
		attributes = append(attributes, slog.Duration("took", r.Duration))
	}
	if r.Err != nil {
		text := Cause(r.Err)
		if len(text) > limit.LogText {
			text = strings.ToValidUTF8(text[:limit.LogText], "") + "…"
		}
		attributes = append(attributes, slog.String("code", RefusalOf(r.Err).Code.String()), slog.String("error", text))
	}
	if suppressed > 0 {
		attributes = append(attributes, slog.Int64("suppressed", suppressed))
	}
	o.log.LogAttrs(context.Background(), at, "request", attributes...)
}

// Flush logs how many refused requests have no line yet.
func (o *Observer) Flush() {
	for code := range o.lines {
		if n := o.lines[code].suppressed.Swap(0); n > 0 {
			o.log.LogAttrs(context.Background(), slog.LevelInfo, "requests refused", slog.String("code", wire.Code(code).String()), slog.Int64("suppressed", n))
		}
	}
}
