package issuer

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"golang.org/x/time/rate"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/oteltickflake"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/limit"
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

// scope names the instrumentation in metrics, as in package oteltickflake.
const scope = "tickflake"

// The attributes of the metrics.
const (
	protocolKey = attribute.Key("tickflake.service.protocol")
	codeKey     = attribute.Key("tickflake.service.code")
	clientKey   = attribute.Key("tickflake.service.client")
)

// Piped records how long one pipeline in 16 of a connection of RESP took.
func (o *Observer) Piped(d time.Duration) {
	for _, h := range o.durations[RESP] {
		h.Record(context.Background(), d.Seconds())
	}
}

// kind has what the attributes of a request depend on.
type kind struct {
	protocol Protocol
	method   string
	code     wire.Code // Codes: it was served
}

// took records how long a request took, with the attributes of OpenTelemetry's conventions for servers.
func (o *Observer) took(r Request) {
	if len(o.durations[r.Protocol]) == 0 {
		return
	}
	k := kind{r.Protocol, r.Method, wire.Code(wire.Codes)}
	if r.Err != nil {
		k.code = RefusalOf(r.Err).Code
	}
	options, ok := o.attributes.Load(k)
	if !ok { // methods are of a known set, and so are kinds
		options, _ = o.attributes.LoadOrStore(k, []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(k.attributes(o.secure)...))})
	}
	for _, h := range o.durations[r.Protocol] {
		h.Record(context.Background(), r.Duration.Seconds(), options.([]metric.RecordOption)...)
	}
}

func (k kind) attributes(secure bool) (all []attribute.KeyValue) {
	status, rpc := http.StatusOK, codes.OK
	if int(k.code) != wire.Codes {
		all = append(all, semconv.ErrorTypeKey.String(k.code.String()))
		status, rpc = k.code.Words().HTTP, codes.Code(k.code.Words().GRPC)
	}
	if k.protocol == GRPC {
		return append(all, semconv.RPCSystemNameGRPC, semconv.RPCMethod(tickflakev1.TickflakeService_ServiceDesc.ServiceName+"/"+k.method), semconv.RPCResponseStatusCode(code.Code(rpc).String()))
	}
	scheme := "http"
	if secure && k.protocol == HTTP {
		scheme = "https"
	}
	all = append(all, semconv.URLScheme(scheme))
	if method, route, ok := strings.Cut(k.method, " "); ok {
		all = append(all, semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route))
	} else {
		all = append(all, semconv.HTTPRequestMethodOther)
	}
	if status != 0 {
		all = append(all, semconv.HTTPResponseStatusCode(status))
	}
	return all
}

// boundaries are those of the conventions, and others for answers that take microseconds.
var boundaries = metric.WithExplicitBucketBoundaries(5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .05, .1, .25, .5, 1, 2.5, 5)

// Measure reports the generator, the sequences, the requests, the connections and the state to a provider, until
// [Issuer.End]. Call it before the first request.
func (i *Issuer) Measure(provider metric.MeterProvider, protocols []Protocol, maxConnections int64) error {
	generator, err := oteltickflake.Observe(i.config.Generator, oteltickflake.WithMeterProvider(provider))
	if err != nil {
		return err
	}
	i.unregister = append(i.unregister, generator.Unregister)
	observed, err := oteltickflake.ObserveSequences(i.config.MaxObserved, oteltickflake.WithMeterProvider(provider))
	if err != nil {
		return err
	}
	i.unregister, i.observed = append(i.unregister, observed.Unregister), append(i.observed, observed)
	meter := provider.Meter(scope)
	var made []metric.Observable
	var errs []error
	counter := func(name, unit, description string) metric.Int64Observable {
		c, err := meter.Int64ObservableCounter("tickflake.service."+name, metric.WithUnit(unit), metric.WithDescription(description))
		made, errs = append(made, c), append(errs, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Int64Observable {
		g, err := meter.Int64ObservableGauge("tickflake.service."+name, metric.WithUnit(unit), metric.WithDescription(description))
		made, errs = append(made, g), append(errs, err)
		return g
	}
	requests := counter("requests", "{request}", "Requests, by protocol and code: ok, or why they were refused.")
	items := counter("items", "{item}", "IDs and numbers that clients got, by protocol.")
	taken := counter("client.items", "{item}", "IDs and numbers that a client got, by client; the others are added up.")
	open := gauge("connections", "{connection}", "Connections that are open, by protocol.")
	most := gauge("connections_limit", "{connection}", "Connections to a listener at most, by protocol; not of probes.")
	opened := counter("connections_opened", "{connection}", "Connections that were accepted, by protocol.")
	turned := counter("connections_refused", "{connection}", "Connections beyond the limit, or unknown ones that made room for others, by protocol.")
	sequences := gauge("sequences", "{sequence}", "Sequences that are open.")
	mostSequences := gauge("sequences_limit", "{sequence}", "Sequences that are open at most.")
	evicted := counter("sequences_closed", "{sequence}", "Sequences that were closed, since they were unused for longest and others needed the room.")
	ready := gauge("ready", "{server}", "1 while the server is ready, else 0.")
	current, err := meter.Int64ObservableGauge("tickflake.config.last_reload_successful",
		metric.WithDescription("1 if the clients that were given last are used, 0 if they could not be. Only with clients."))
	made, errs = append(made, current), append(errs, err)
	remaining, err := meter.Float64ObservableGauge("tickflake.service.certificate_remaining", metric.WithUnit("s"),
		metric.WithDescription("Time until the TLS certificate expires; below 0, it has expired. Only with TLS."))
	made, errs = append(made, remaining), append(errs, err)
	var durations [Protocols]metric.Float64Histogram
	for _, p := range protocols {
		name, description := [...]string{RESP: "tickflake.service.pipeline.duration", GRPC: "rpc.server.call.duration", HTTP: "http.server.request.duration", Probes: "http.server.request.duration"}[p], "Time of a request."
		if p == RESP {
			description = "Time of one pipeline in 16 of the Redis protocol."
		}
		durations[p], err = meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), boundaries)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var each [Protocols]metric.MeasurementOption
	var codes [Protocols][wire.Codes + 1]metric.MeasurementOption // the last is of requests that were served
	for _, p := range protocols {
		name := protocolKey.String(p.String())
		each[p] = metric.WithAttributeSet(attribute.NewSet(name))
		for c := range wire.Codes {
			codes[p][c] = metric.WithAttributeSet(attribute.NewSet(name, codeKey.String(wire.Code(c).String())))
		}
		codes[p][wire.Codes] = metric.WithAttributeSet(attribute.NewSet(name, codeKey.String("ok")))
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for _, p := range protocols {
			c := &i.counts[p]
			to.ObserveInt64(requests, c.served.Load(), codes[p][wire.Codes])
			for code := range wire.Codes {
				to.ObserveInt64(requests, c.refused[code].Load(), codes[p][code])
			}
			to.ObserveInt64(items, c.items.Load(), each[p])
			to.ObserveInt64(open, c.open.Load(), each[p])
			if p != Probes { // it has a limit of its own, at which nobody is refused
				to.ObserveInt64(most, maxConnections, each[p])
			}
			to.ObserveInt64(opened, c.opened.Load(), each[p])
			to.ObserveInt64(turned, c.turned.Load(), each[p])
		}
		for name, items := range i.access.Load().items {
			to.ObserveInt64(taken, items.Load(), metric.WithAttributes(clientKey.String(name)))
		}
		if n := i.others.Load(); n > 0 {
			to.ObserveInt64(taken, n, metric.WithAttributes(clientKey.String(oteltickflake.Others)))
		}
		if i.anyone == nil {
			to.ObserveInt64(current, one(!i.stale.Load()))
		}
		to.ObserveInt64(sequences, int64(i.Count()))
		to.ObserveInt64(mostSequences, int64(i.config.MaxSequences))
		to.ObserveInt64(evicted, i.evicted.Load())
		to.ObserveInt64(ready, one(i.Ready() == nil))
		if end, ok := expiry(i.config.TLS); ok {
			to.ObserveFloat64(remaining, time.Until(end).Seconds())
		}
		return nil
	}, made...)
	if err != nil {
		return err
	}
	for _, p := range protocols {
		i.durations[p] = append(i.durations[p], durations[p])
	}
	_, i.secure = expiry(i.config.TLS)
	i.unregister = append(i.unregister, registration.Unregister)
	return nil
}

// expiry returns when the certificate in use expires, if that is known.
func expiry(c *tls.Config) (time.Time, bool) {
	if c == nil {
		return time.Time{}, false
	}
	var one *tls.Certificate
	if c.GetCertificate != nil {
		one, _ = c.GetCertificate(&tls.ClientHelloInfo{SupportedVersions: []uint16{tls.VersionTLS13}})
	} else if len(c.Certificates) > 0 {
		one = &c.Certificates[0]
	}
	if one == nil || one.Leaf == nil { // the package tls sets the leaf of those that it reads
		return time.Time{}, false
	}
	return one.Leaf.NotAfter, true
}

// observe reports a sequence to all providers until dropped is called.
func (i *Issuer) observe(seq *sequence.Sequence) (dropped func()) {
	var removes []func()
	for _, all := range i.observed {
		removes = append(removes, all.Add(seq))
	}
	return func() {
		for _, remove := range removes {
			remove()
		}
	}
}

// End takes the issuer out of all providers, and logs how many refused requests have no line yet.
func (i *Issuer) End() error {
	i.Flush()
	var errs []error
	for _, unregister := range i.unregister {
		errs = append(errs, unregister())
	}
	return errors.Join(errs...)
}

// one is 1 for true.
func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
