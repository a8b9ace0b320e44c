package oteltickflake

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// kind says when a metric is reported. Each is reported less often than the one before.
type kind int

const (
	counter kind = iota // always
	gauge               // until its source is closed
	single              // as gauge, but of one sequence only: it has no sum over several
)

// row is a metric: a value of an S.
type row[S any] struct {
	kind                    kind
	name, unit, description string
	value                   func(S) any // int64, uint64, float64, or time.Duration, which is reported in seconds
}

// table has metrics of an S.
type table[S any] struct {
	rows        []row[S]
	instruments []metric.Observable
}

func newTable[S any](m metric.Meter, rows []row[S]) (*table[S], error) {
	t := &table[S]{rows: rows}
	var errs []error
	for _, r := range rows {
		var zero S
		var i metric.Observable
		var err error
		unit, description := metric.WithUnit(r.unit), metric.WithDescription(r.description)
		switch _, whole := number(r.value(zero)).(int64); {
		case whole && r.kind == counter:
			i, err = m.Int64ObservableCounter(r.name, unit, description)
		case whole:
			i, err = m.Int64ObservableGauge(r.name, unit, description)
		case r.kind == counter:
			i, err = m.Float64ObservableCounter(r.name, unit, description)
		default:
			i, err = m.Float64ObservableGauge(r.name, unit, description)
		}
		t.instruments, errs = append(t.instruments, i), append(errs, err)
	}
	return t, errors.Join(errs...)
}

// number returns what an instrument takes: an int64 or a float64.
func number(value any) any {
	switch v := value.(type) {
	case uint64:
		return int64(min(v, math.MaxInt64))
	case time.Duration:
		return v.Seconds()
	}
	return value
}

// observe reports the metrics of the kinds up to most.
func (t *table[S]) observe(o metric.Observer, set metric.MeasurementOption, s S, most kind) {
	for i, r := range t.rows {
		if r.kind > most {
			continue
		}
		switch v := number(r.value(s)).(type) {
		case int64:
			o.ObserveInt64(t.instruments[i].(metric.Int64Observable), v, set)
		case float64:
			o.ObserveFloat64(t.instruments[i].(metric.Float64Observable), v, set)
		}
	}
}

// register has the callback called at each collection, which reports the instruments.
func register(m metric.Meter, observe func(metric.Observer), instruments ...metric.Observable) (metric.Registration, error) {
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		observe(o)
		return nil
	}, instruments...)
}
