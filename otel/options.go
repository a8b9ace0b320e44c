package oteltickflake

import (
	"errors"
	"reflect"
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// The attributes that metrics and spans have, besides those of [WithAttributes].
const (
	// NamespaceKey is what [WithNamespace] sets.
	NamespaceKey = attribute.Key("tickflake.namespace")

	// OperationKey is the operation of a store: list, read, swap or lock.
	OperationKey = attribute.Key("tickflake.store.operation")

	// OutcomeKey is what came of an operation of a store: ok, conflict or locked (it
	// answered that another process was first), damaged (it cannot read a cell), timeout,
	// canceled, or error. Of the last four, which have failed, the attribute error.type of
	// OpenTelemetry's conventions says so as well, with _OTHER for error.
	OutcomeKey = attribute.Key("tickflake.store.outcome")

	// NodeKey is the node number of the cell that a span is about. Metrics do not have it.
	NodeKey = attribute.Key("tickflake.node")
)

// Option configures what is reported, and to whom. A nil Option changes nothing.
type Option func(*config)

type config struct {
	meters     metric.MeterProvider
	tracers    trace.TracerProvider
	attributes []attribute.KeyValue
}

// WithMeterProvider sets who is given the metrics. The default, also for nil, is the
// global provider.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// WithTracerProvider sets who is given the spans of [Wrap]. The default, also for nil, is
// the global provider.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithAttributes adds attributes to all metrics and spans. A process that has several
// generators must give each its own, or their numbers get mixed up. Each set of values
// is a time series of its own, so keep them few: the node number, which changes, is a
// metric and no attribute for that reason. Where an operation has an attribute of its own
// by the same key, that one counts.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return func(c *config) { c.attributes = append(c.attributes, attributes...) }
}

// WithNamespace adds the attribute tickflake.namespace, by which the dashboard and the
// alerts tell one fleet from another: the store's namespace, say. What is not UTF-8 in it
// becomes U+FFFD, since exporters would refuse it.
func WithNamespace(name string) Option { return WithAttributes(NamespaceKey.String(valid(name))) }

func configure(options []Option) config {
	var c config
	for _, option := range options {
		if option != nil {
			option(&c)
		}
	}
	if isNil(c.meters) {
		c.meters = otel.GetMeterProvider()
	}
	if isNil(c.tracers) {
		c.tracers = otel.GetTracerProvider()
	}
	return c
}

// set returns the attributes of a measurement.
func (c config) set(own ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(c.with(own...))
}

// with returns the attributes of the options and our own, which win.
func (c config) with(own ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(slices.Concat(c.attributes, own)...) // of two with one key, the last stays
}

var errNil = errors.New("is nil")

func isNil(x any) bool {
	if x == nil {
		return true
	}
	v := reflect.ValueOf(x)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
