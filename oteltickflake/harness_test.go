package oteltickflake_test

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tickflake/tickflake/oteltickflake"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// recorder keeps what is reported to its providers.
type recorder struct {
	t      testing.TB
	meters *sdkmetric.MeterProvider
	reader *sdkmetric.ManualReader
	tracer *sdktrace.TracerProvider
	*tracetest.SpanRecorder
}

func record(t testing.TB) *recorder {
	r := &recorder{t: t, reader: sdkmetric.NewManualReader(), SpanRecorder: tracetest.NewSpanRecorder()}
	r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.SpanRecorder))
	return r
}

// here is the option that has things reported to r.
func (r *recorder) here() oteltickflake.Option { return oteltickflake.WithMeterProvider(r.meters) }

// wrap wraps a store that is reported to r.
func (r *recorder) wrap(store stores.Store, options ...oteltickflake.Option) stores.Store {
	return oteltickflake.Wrap(store, append(options, r.here(), oteltickflake.WithTracerProvider(r.tracer))...)
}

// points returns the points with the attributes, and no others, by the names of their metrics
// without "tickflake.".
func (r *recorder) points(attributes ...attribute.KeyValue) (values map[string]float64, operations []metricdata.HistogramDataPoint[float64]) {
	r.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(r.t, r.reader.Collect(context.Background(), &all))
	set, values := attribute.NewSet(attributes...), map[string]float64{}
	for _, s := range all.ScopeMetrics {
		require.Equal(r.t, "tickflake", s.Scope.Name)
		for _, one := range s.Metrics {
			points := reflect.ValueOf(one.Data).FieldByName("DataPoints") // of any kind of metric
			for i := range points.Len() {
				point := points.Index(i)
				if of := point.FieldByName("Attributes").Interface().(attribute.Set); !of.Equals(&set) {
					continue
				}
				if p, ok := point.Interface().(metricdata.HistogramDataPoint[float64]); ok {
					operations = append(operations, p)
				} else {
					values[strings.TrimPrefix(one.Name, "tickflake.")] = point.FieldByName("Value").Convert(reflect.TypeFor[float64]()).Float()
				}
			}
		}
	}
	return values, operations
}

func (r *recorder) values(attributes ...attribute.KeyValue) map[string]float64 {
	values, _ := r.points(attributes...)
	return values
}

// of returns the values of a sequence.
func (r *recorder) of(name string) map[string]float64 {
	return r.values(oteltickflake.SequenceKey.String(name))
}

// end unregisters, and sees to it that nothing is reported any longer.
func (r *recorder) end(registration interface{ Unregister() error }) {
	require.NoError(r.t, registration.Unregister())
	assert.Empty(r.t, r.values())
	require.NoError(r.t, registration.Unregister(), "again")
}

// open opens a sequence.
func open(t testing.TB, store stores.Store, name string, d sequence.Definition) *sequence.Sequence {
	s, err := sequence.Open(t.Context(), store, name, sequence.WithDefinition(d), sequence.WithOutage(0), sequence.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	return s
}
