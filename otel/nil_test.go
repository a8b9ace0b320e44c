package oteltickflake_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestNil(t *testing.T) {
	_, err := oteltickflake.Observe(nil)
	assert.ErrorContains(t, err, "generator is nil")
	_, err = oteltickflake.CountIDs(nil)
	assert.ErrorContains(t, err, "generator is nil")
	_, err = oteltickflake.ObserveSequence(nil)
	assert.ErrorContains(t, err, "sequence is nil")
	var refused *stores.OptionError
	_, err = lease.Claim(t.Context(), oteltickflake.Wrap(nil))
	assert.ErrorAs(t, err, &refused)
}

// global are the default providers. OpenTelemetry passes those that
// were asked for before on to the first that is set, so they are set once.
var global struct {
	sync.Once
	m     metrics
	spans traces
}

// Without options, and with those that are nil, the global providers are told, even if
// they are set later.
func TestGlobalProviders(t *testing.T) {
	gen, err := generator.New(generator.WithNode(0))
	require.NoError(t, err)
	seq := orders(t, storetest.NewMemory(), sequence.Definition{})
	for _, options := range [][]oteltickflake.Option{
		nil,
		{nil, oteltickflake.WithMeterProvider(nil), oteltickflake.WithTracerProvider(nil), oteltickflake.WithAttributes()},
	} {
		observed, err := oteltickflake.Observe(gen, options...)
		require.NoError(t, err)
		ids, err := oteltickflake.CountIDs(gen, options...)
		require.NoError(t, err)
		numbers, err := oteltickflake.ObserveSequence(seq, options...)
		require.NoError(t, err)
		store := oteltickflake.Wrap(storetest.NewMemory(), options...)
		global.Do(func() {
			global.m, global.spans = newMetrics(t), newTraces()
			otel.SetMeterProvider(global.m)
			otel.SetTracerProvider(global.spans)
		})
		m, spans := global.m, global.spans
		m.t = t
		spans.Reset()
		_, err = ids.Next()
		require.NoError(t, err)
		_, err = store.List(t.Context(), "", "z", 1)
		require.NoError(t, err)
		assert.Len(t, m.values(), 10)
		assert.Equal(t, 1.0, m.values()["tickflake.generator.ids"])
		assert.Len(t, m.values(oteltickflake.SequenceKey.String("orders")), 15)
		assert.Contains(t, m.collect(), duration)
		assert.Len(t, spans.Ended(), 1)
		require.NoError(t, observed.Unregister())
		require.NoError(t, ids.Unregister())
		require.NoError(t, numbers.Unregister())
		assert.Empty(t, m.values())
		assert.Empty(t, m.values(oteltickflake.SequenceKey.String("orders")))
	}
}

var errBroken = errors.New("no more instruments")

// failing makes no instruments.
type failing struct{ noop.MeterProvider }

func (failing) Meter(string, ...metric.MeterOption) metric.Meter { return failingMeter{} }

type failingMeter struct{ noop.Meter }

func (failingMeter) Int64ObservableCounter(string, ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	return nil, errBroken
}

func (failingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errBroken
}

func TestProviderFails(t *testing.T) {
	gen, err := generator.New(generator.WithNode(0))
	require.NoError(t, err)
	meters := oteltickflake.WithMeterProvider(failing{})
	_, err = oteltickflake.Observe(gen, meters)
	assert.ErrorIs(t, err, errBroken)
	_, err = oteltickflake.CountIDs(gen, meters)
	assert.ErrorIs(t, err, errBroken)
	_, err = oteltickflake.ObserveSequence(orders(t, storetest.NewMemory(), sequence.Definition{}), meters)
	assert.ErrorIs(t, err, errBroken)

	var told error
	handler := otel.GetErrorHandler()
	defer otel.SetErrorHandler(handler)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told = err }))
	store := oteltickflake.Wrap(storetest.NewMemory(), meters)
	assert.ErrorIs(t, told, errBroken)
	_, err = store.List(context.Background(), "", "z", 1)
	require.NoError(t, err, "the store works all the same")
}
