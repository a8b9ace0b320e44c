package issuer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/oteltickflake"
	"github.com/tickflake/tickflake/service/internal/limit"
)

// Observer counts requests, and logs those that are refused. Its methods are safe for concurrent use.
type Observer struct {
	log    *slog.Logger
	counts [Protocols]counts
	lines  [wire.Codes]*rate.Limiter // of the log; a flood of one code does not hide another

	duration metric.Float64Histogram // set by Issuer.Measure, before the first request; nil: there are no metrics
}

type counts struct {
	_        [64]byte                     // the protocols do not disturb each other
	requests [wire.Codes + 1]atomic.Int64 // by code, and served
	items    atomic.Int64
	open     atomic.Int64 // connections
	opened   atomic.Int64 // connections, since the start
	turned   atomic.Int64 // connections beyond the limit
}

// NewObserver returns an Observer.
func NewObserver(log *slog.Logger) *Observer {
	o := &Observer{log: log}
	for code := range o.lines {
		o.lines[code] = rate.NewLimiter(limit.LogLines, limit.LogLines)
	}
	return o
}

// Done counts one request, and logs it if it was refused, unless there are too many of its code.
func (o *Observer) Done(r Request) {
	code := served
	if r.Err != nil {
		code = RefusalOf(r.Err).Code
	}
	if r.Protocol != RESP && o.duration != nil {
		o.duration.Record(context.Background(), r.Duration.Seconds(), ofCode[r.Protocol][code])
	}
	if code == served {
		o.Served(r.Protocol, r.Client, 1, r.Items)
		return
	}
	o.counts[r.Protocol].requests[code].Add(1)
	if code != wire.Canceled && o.lines[code].Allow() {
		o.write(code, r)
	}
}

// Served counts requests of a client that were served together.
func (o *Observer) Served(p Protocol, c *Client, requests, items int64) {
	o.counts[p].requests[served].Add(requests)
	o.counts[p].items.Add(items)
	if c != nil && c.Name != "" && items > 0 {
		c.items.Add(items)
	}
}

// Opened and Closed count connections; Turned counts those beyond the limit.
func (o *Observer) Opened(p Protocol) { o.counts[p].open.Add(1); o.counts[p].opened.Add(1) }
func (o *Observer) Closed(p Protocol) { o.counts[p].open.Add(-1) }
func (o *Observer) Turned(p Protocol) { o.counts[p].turned.Add(1) }

func (o *Observer) write(code wire.Code, r Request) {
	name, text := "", Cause(r.Err)
	if r.Client != nil {
		name = r.Client.Name
	}
	if len(text) > limit.LogText {
		text = strings.ToValidUTF8(text[:limit.LogText], "") + "…"
	}
	o.log.LogAttrs(context.Background(), level(code), "request",
		slog.String("protocol", r.Protocol.String()), slog.String("method", r.Method), slog.String("client", name),
		slog.String("remote", r.Remote), slog.String("code", code.String()), slog.String("error", text))
}

// scope names the instrumentation in metrics, as in package oteltickflake.
const scope = "tickflake"

// served stands beside the codes, for a request that was not refused.
const served = wire.Code(wire.Codes)

// The attributes of a protocol, and of one with a code.
var (
	ofProtocol [Protocols]metric.MeasurementOption
	ofCode     [Protocols][wire.Codes + 1]metric.MeasurementOption
)

func init() {
	for p := range Protocols {
		protocol := attribute.String("tickflake.service.protocol", Protocol(p).String())
		ofProtocol[p] = metric.WithAttributeSet(attribute.NewSet(protocol))
		for code := range ofCode[p] {
			name := "ok"
			if wire.Code(code) != served {
				name = wire.Code(code).String()
			}
			ofCode[p][code] = metric.WithAttributeSet(attribute.NewSet(protocol, attribute.String("tickflake.service.code", name)))
		}
	}
}

// boundaries are those of OpenTelemetry's conventions, and others for answers that take microseconds.
var boundaries = metric.WithExplicitBucketBoundaries(5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .05, .1, .25, .5, 1, 2.5, 5)

// Measure reports the generator, the sequences, the requests, the connections and the state to a provider. Call it before the
// first request.
func (i *Issuer) Measure(provider metric.MeterProvider, protocols []Protocol, maxConnections int64) (err error) {
	if _, err = oteltickflake.Observe(i.config.Generator, oteltickflake.WithMeterProvider(provider)); err != nil {
		return err
	}
	if i.observed, err = oteltickflake.ObserveSequences(i.config.MaxObserved, oteltickflake.WithMeterProvider(provider)); err != nil {
		return err
	}
	meter, errs := provider.Meter(scope), []error(nil)
	counter := func(name, unit, description string, read func(to metric.Int64Observer)) {
		_, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description), callback(read))
		errs = append(errs, err)
	}
	gauge := func(name, unit, description string, read func(to metric.Int64Observer)) {
		_, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description), callback(read))
		errs = append(errs, err)
	}
	value := func(read func() int64) func(metric.Int64Observer) {
		return func(to metric.Int64Observer) { to.Observe(read()) }
	}
	each := func(of func(c *counts) *atomic.Int64) func(metric.Int64Observer) {
		return func(to metric.Int64Observer) {
			for _, p := range protocols {
				to.Observe(of(&i.counts[p]).Load(), ofProtocol[p])
			}
		}
	}
	counter("tickflake.service.requests", "{request}", "Requests, by protocol and code: ok, or why they were refused.", func(to metric.Int64Observer) {
		for _, p := range protocols {
			for code := range ofCode[p] {
				to.Observe(i.counts[p].requests[code].Load(), ofCode[p][code])
			}
		}
	})
	counter("tickflake.service.items", "{item}", "IDs and numbers that clients got, by protocol.", each(func(c *counts) *atomic.Int64 { return &c.items }))
	counter("tickflake.service.client.items", "{item}", "IDs and numbers that a client got, by client.", func(to metric.Int64Observer) {
		for name, c := range i.access.Load().named {
			to.Observe(c.items.Load(), metric.WithAttributes(attribute.String("tickflake.service.client", name)))
		}
	})
	gauge("tickflake.service.connections", "{connection}", "Connections that are open, by protocol.", each(func(c *counts) *atomic.Int64 { return &c.open }))
	gauge("tickflake.service.connections_limit", "{connection}", "Connections to a listener at most, by protocol; not of probes.", func(to metric.Int64Observer) {
		for _, p := range protocols {
			if p != Probes { // it has a limit of its own, at which nobody is refused
				to.Observe(maxConnections, ofProtocol[p])
			}
		}
	})
	counter("tickflake.service.connections_opened", "{connection}", "Connections that were accepted, by protocol.", each(func(c *counts) *atomic.Int64 { return &c.opened }))
	counter("tickflake.service.connections_refused", "{connection}", "Connections beyond the limit, or unknown ones that made room for others, by protocol.", each(func(c *counts) *atomic.Int64 { return &c.turned }))
	gauge("tickflake.service.sequences", "{sequence}", "Sequences that are open.", value(func() int64 { return int64(i.Count()) }))
	gauge("tickflake.service.sequences_limit", "{sequence}", "Sequences that are open at most.", value(func() int64 { return int64(i.config.MaxSequences) }))
	counter("tickflake.service.sequences_closed", "{sequence}", "Sequences that were closed, since they were unused for longest and others needed the room.", value(i.evicted.Load))
	gauge("tickflake.service.ready", "{server}", "1 while the server is ready, else 0.", value(func() int64 { return one(i.Ready() == nil) }))
	if i.anyone == nil {
		gauge("tickflake.config.last_reload_successful", "", "1 if the clients that were given last are used, 0 if they could not be. Only with clients.", value(func() int64 { return one(!i.stale.Load()) }))
	}
	i.duration, err = meter.Float64Histogram("tickflake.service.duration", metric.WithUnit("s"), boundaries,
		metric.WithDescription("Time of a request of HTTP or gRPC, by protocol and code."))
	return errors.Join(append(errs, err)...)
}

func callback(read func(to metric.Int64Observer)) metric.Int64ObservableOption {
	return metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error { read(to); return nil })
}

// one is 1 for true.
func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
