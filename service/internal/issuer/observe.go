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
	_       [64]byte // the protocols do not disturb each other
	served  atomic.Int64
	items   atomic.Int64
	refused [wire.Codes]atomic.Int64
	open    atomic.Int64 // connections
	opened  atomic.Int64 // connections, since the start
	turned  atomic.Int64 // connections beyond the limit
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
	o.counts[r.Protocol].refused[code].Add(1)
	if code != wire.Canceled && o.lines[code].Allow() {
		o.write(code, r)
	}
}

// Served counts requests of a client that were served together.
func (o *Observer) Served(p Protocol, c *Client, requests, items int64) {
	o.counts[p].served.Add(requests)
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
	taken := counter("client.items", "{item}", "IDs and numbers that a client got, by client.")
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
	i.duration, err = meter.Float64Histogram("tickflake.service.duration", metric.WithUnit("s"), boundaries,
		metric.WithDescription("Time of a request of HTTP or gRPC, by protocol and code."))
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for _, p := range protocols {
			c := &i.counts[p]
			to.ObserveInt64(requests, c.served.Load(), ofCode[p][served])
			for code := range wire.Codes {
				to.ObserveInt64(requests, c.refused[code].Load(), ofCode[p][code])
			}
			to.ObserveInt64(items, c.items.Load(), ofProtocol[p])
			to.ObserveInt64(open, c.open.Load(), ofProtocol[p])
			if p != Probes { // it has a limit of its own, at which nobody is refused
				to.ObserveInt64(most, maxConnections, ofProtocol[p])
			}
			to.ObserveInt64(opened, c.opened.Load(), ofProtocol[p])
			to.ObserveInt64(turned, c.turned.Load(), ofProtocol[p])
		}
		for name, c := range i.access.Load().named {
			to.ObserveInt64(taken, c.items.Load(), metric.WithAttributes(attribute.String("tickflake.service.client", name)))
		}
		if i.anyone == nil {
			to.ObserveInt64(current, one(!i.stale.Load()))
		}
		to.ObserveInt64(sequences, int64(i.Count()))
		to.ObserveInt64(mostSequences, int64(i.config.MaxSequences))
		to.ObserveInt64(evicted, i.evicted.Load())
		to.ObserveInt64(ready, one(i.Ready() == nil))
		return nil
	}, made...)
	return err
}

// one is 1 for true.
func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
