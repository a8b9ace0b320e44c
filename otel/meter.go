package oteltickflake

import (
	"context"
	"errors"
	"math"

	"go.opentelemetry.io/otel/metric"
)

// meter makes observable instruments and keeps their errors until they are registered.
type meter struct {
	metric.Meter
	set  metric.MeasurementOption // the attributes
	made []metric.Observable
	errs []error
}

func newMeter(c config, set metric.MeasurementOption) *meter {
	return &meter{Meter: c.meter(), set: set}
}

// counter makes a counter of things, whose unit is a word in braces.
func (m *meter) counter(name, unit, description string) metric.Int64ObservableCounter {
	i, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.note(i, err)
	return i
}

// total makes a counter of seconds.
func (m *meter) total(name, description string) metric.Float64ObservableCounter {
	i, err := m.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(description))
	m.note(i, err)
	return i
}

// span makes a gauge of seconds.
func (m *meter) span(name, description string) metric.Float64ObservableGauge {
	return m.gauge(name, "s", description)
}

// gauge makes a gauge.
func (m *meter) gauge(name, unit, description string) metric.Float64ObservableGauge {
	i, err := m.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.note(i, err)
	return i
}

// number makes a gauge of whole numbers.
func (m *meter) number(name, unit, description string) metric.Int64ObservableGauge {
	i, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.note(i, err)
	return i
}

func (m *meter) note(i metric.Observable, err error) {
	m.made = append(m.made, i)
	m.errs = append(m.errs, err)
}

// register has the callbacks called at each collection.
func (m *meter) register(callbacks ...func(metric.Observer)) (metric.Registration, error) {
	if err := errors.Join(m.errs...); err != nil {
		return nil, err
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, observe := range callbacks {
			observe(o)
		}
		return nil
	}, m.made...)
}

// count returns n as an int64, which instruments take.
func count(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
