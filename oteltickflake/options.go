package oteltickflake

import (
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// The attributes that metrics and spans have, besides those of [WithAttributes].
const (
	// NamespaceKey is the attribute that [WithNamespace] sets.
	NamespaceKey = attribute.Key("tickflake.namespace")

	// SequenceKey is the name of a sequence in the metrics of [ObserveSequence].
	SequenceKey = attribute.Key("tickflake.sequence")

	// OperationKey is the operation of a store: list, read, swap or lock.
	OperationKey = attribute.Key("tickflake.store.operation")

	// OutcomeKey is the outcome of an operation of a store: ok, conflict or locked (another
	// process was first), damaged (the store cannot read a cell), permanent (see
	// [stores.Permanent]), timeout, canceled, or error. The last five are failures, and have the
	// attribute error.type of OpenTelemetry's conventions as well, with _OTHER for error.
	OutcomeKey = attribute.Key("tickflake.store.outcome")

	// KeyKey is the key of the cell in a span, or the first key of a list. Metrics do not
	// have it.
	KeyKey = attribute.Key("tickflake.store.key")
)

// Option configures a report. A nil Option changes nothing.
type Option func(*config)

type config struct {
	meters     metric.MeterProvider
	tracers    trace.TracerProvider
	attributes []attribute.KeyValue
}

// WithMeterProvider sets the provider that gets the metrics. The default, also for nil, is
// the global provider.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// WithTracerProvider sets the provider that gets the spans of [Wrap]. The default, also
// for nil, is the global provider.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithAttributes adds attributes to all metrics and spans. A process with several
// generators must give each generator its own, or their values are mixed up; sequences
// differ by their names. Each set of values is a time series, so keep them few: the node
// number changes, so it is a metric and not an attribute. An attribute of this package with
// the same key takes precedence.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return func(c *config) { c.attributes = append(c.attributes, attributes...) }
}

// WithNamespace adds the attribute tickflake.namespace, by which the dashboard and the
// alerts separate fleets: for example the store's namespace. Bytes of it that are not
// UTF-8 become U+FFFD, since exporters refuse them.
func WithNamespace(name string) Option { return WithAttributes(NamespaceKey.String(valid(name))) }

func configure(options []Option) config {
	var c config
	for _, option := range options {
		if option != nil {
			option(&c)
		}
	}
	if c.meters == nil {
		c.meters = otel.GetMeterProvider()
	}
	if c.tracers == nil {
		c.tracers = otel.GetTracerProvider()
	}
	return c
}

// scope names the instrumentation in metrics and spans. The service uses the same name.
const scope = "tickflake"

func (c config) meter() metric.Meter { return c.meters.Meter(scope) }

// set returns the attributes of a measurement.
func (c config) set(own ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(c.with(own...))
}

// with returns the attributes of the options and own. Of two with one key, own counts.
func (c config) with(own ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(slices.Concat(c.attributes, own)...) // of two with one key, the last stays
}
