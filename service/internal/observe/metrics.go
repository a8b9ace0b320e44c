package observe

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

// scope names the instrumentation in metrics: the import path.
const scope = "github.com/tickflake/tickflake/service"

// The attributes of the metrics.
const (
	protocolKey = attribute.Key("tickflake.service.protocol")
	codeKey     = attribute.Key("tickflake.service.code")
)

// served is the code of requests that were not refused.
const served = "ok"

// State has the values that the metrics show beside requests and connections.
type State struct {
	Protocols      []Protocol // that are served
	MaxConnections int64
	Issuer         *issuer.Issuer
	Expiry         func() (time.Time, bool) // of the certificate; false: there is none
}

// Took records how long a request took. On RESP it is one pipeline in 16 of a connection.
func (o *Observer) Took(p Protocol, d time.Duration) {
	for _, h := range o.durations {
		h.Record(context.Background(), d.Seconds(), o.attributes[p]...)
	}
}

// Measure reports the requests, the connections and the state to a provider, until
// unregister. Call it before the first request.
func (o *Observer) Measure(provider metric.MeterProvider, s State) (unregister func() error, err error) {
	m := &meter{Meter: provider.Meter(scope)}
	requests := m.counter("tickflake.service.requests", "{request}", "Requests, by protocol and code; ok are those that were served.")
	items := m.counter("tickflake.service.items", "{item}", "IDs and numbers that clients got.")
	open := m.gauge("tickflake.service.connections", "{connection}", "Connections that are open.")
	most := m.gauge("tickflake.service.connections_limit", "{connection}", "Connections to a listener at most.")
	opened := m.counter("tickflake.service.connections_opened", "{connection}", "Connections that were accepted.")
	turned := m.counter("tickflake.service.connections_refused", "{connection}", "Connections beyond the limit, and unknown ones that made room for others.")
	sequences := m.gauge("tickflake.service.sequences", "{sequence}", "Sequences that are open.")
	mostSequences := m.gauge("tickflake.service.sequences_limit", "{sequence}", "Sequences that are open at most.")
	ready := m.gauge("tickflake.service.ready", "{server}", "1 while the server is ready, else 0.")
	remaining := m.seconds("tickflake.service.certificate_remaining", "Time until the TLS certificate expires; below 0, it has expired.")
	duration, err := m.Float64Histogram("tickflake.service.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of a request; on RESP, of one pipeline in 16."),
		metric.WithExplicitBucketBoundaries(5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .05, .1, .25, .5, 1, 2.5, 5))
	if err := errors.Join(append(m.errs, err)...); err != nil {
		return nil, err
	}
	var protocols [Protocols]metric.MeasurementOption
	var codes [Protocols][issuer.Codes + 1]metric.MeasurementOption // the last is served
	for _, p := range s.Protocols {
		name := protocolKey.String(p.String())
		protocols[p] = metric.WithAttributeSet(attribute.NewSet(name))
		for c := range issuer.Codes {
			codes[p][c] = metric.WithAttributeSet(attribute.NewSet(name, codeKey.String(issuer.Code(c).String())))
		}
		codes[p][issuer.Codes] = metric.WithAttributeSet(attribute.NewSet(name, codeKey.String(served)))
		o.attributes[p] = []metric.RecordOption{protocols[p]}
	}
	registration, err := m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for _, p := range s.Protocols {
			c := &o.counts[p]
			to.ObserveInt64(requests, count(c.served.Load()), codes[p][issuer.Codes])
			for code := range issuer.Codes {
				to.ObserveInt64(requests, count(c.refused[code].Load()), codes[p][code])
			}
			to.ObserveInt64(items, count(c.items.Load()), protocols[p])
			to.ObserveInt64(open, c.open.Load(), protocols[p])
			if p != Probes { // it has a limit of its own, at which nobody is refused
				to.ObserveInt64(most, s.MaxConnections, protocols[p])
			}
			to.ObserveInt64(opened, count(c.opened.Load()), protocols[p])
			to.ObserveInt64(turned, count(c.turned.Load()), protocols[p])
		}
		to.ObserveInt64(sequences, int64(s.Issuer.Count()))
		to.ObserveInt64(mostSequences, int64(s.Issuer.Config().MaxSequences))
		is := int64(1)
		if s.Issuer.Ready() != nil {
			is = 0
		}
		to.ObserveInt64(ready, is)
		if end, ok := s.Expiry(); ok {
			to.ObserveFloat64(remaining, time.Until(end).Seconds())
		}
		return nil
	}, m.made...)
	if err != nil {
		return nil, err
	}
	o.durations = append(o.durations, duration)
	return registration.Unregister, nil
}

// count returns n as an int64, which instruments take.
func count(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// meter makes observable instruments and keeps their errors.
type meter struct {
	metric.Meter
	made []metric.Observable
	errs []error
}

func (m *meter) counter(name, unit, description string) metric.Int64ObservableCounter {
	i, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.note(i, err)
	return i
}

func (m *meter) gauge(name, unit, description string) metric.Int64ObservableGauge {
	i, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.note(i, err)
	return i
}

func (m *meter) seconds(name, description string) metric.Float64ObservableGauge {
	i, err := m.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
	m.note(i, err)
	return i
}

func (m *meter) note(i metric.Observable, err error) {
	m.made = append(m.made, i)
	m.errs = append(m.errs, err)
}
