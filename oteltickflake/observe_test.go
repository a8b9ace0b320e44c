package oteltickflake_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/oteltickflake"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

var noon = time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)

// Whatever is observed has the attributes of the options, and a closed lease has counters only.
func TestObserve(t *testing.T) {
	r, clock := record(t), clocktest.NewVirtual(noon)
	keeper, err := lease.Claim(new(seam.Poller).In(t.Context()), storetest.NewMemory(), lease.WithClock(clock), lease.WithNode(7), lease.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	name := attribute.String("which", "the one")
	metrics, err := oteltickflake.Observe(gen, r.here(), nil, oteltickflake.WithNamespace("orders"), oteltickflake.WithAttributes(name))
	require.NoError(t, err)
	values := func() map[string]float64 { return r.values(oteltickflake.NamespaceKey.String("orders"), name) }
	clock.Advance(45 * time.Second)
	_, err = gen.Next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
	all := values()
	assert.Len(t, all, 20)
	assert.Equal(t, []float64{7, 1, -15, -15, 30}, []float64{all["generator.node"], all["lease.claims"], all["generator.granted"], all["lease.remaining"], all["lease.window"]})

	require.NoError(t, gen.Close())
	all = values()
	assert.Len(t, all, 18)
	assert.Equal(t, 1.0, all["lease.releases"])
	r.end(metrics)
	assert.Empty(t, values())
}

func TestCountIDs(t *testing.T) {
	r, layout, clock := record(t), snowflake.Default(), clocktest.NewVirtual(noon)
	layout.NodeBits, layout.SequenceBits = 20, 2 // 4 IDs in a millisecond
	gen, err := generator.New(generator.WithClock(clock), generator.WithLayout(layout), generator.WithNode(0), generator.WithStrategy(strategies.BorrowUpTo(time.Millisecond)))
	require.NoError(t, err)
	ids, err := oteltickflake.CountIDs(gen, r.here())
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"generator.ids": 0}, r.values())
	_, err = ids.Next()
	require.NoError(t, err)
	_, err = ids.NextContext(t.Context())
	require.NoError(t, err)
	n, err := ids.NextN(make([]snowflake.ID, 3))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	assert.Equal(t, 5.0, r.values()["generator.ids"])

	// What fails is not counted, but for the IDs that were issued before it did.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ids.NextContext(over)
	require.ErrorIs(t, err, context.Canceled)
	_, err = ids.NextNContext(t.Context(), make([]snowflake.ID, 4))
	require.ErrorIs(t, err, generator.ErrBehind)
	_, err = ids.Next()
	require.ErrorIs(t, err, generator.ErrBehind)
	assert.Equal(t, 8.0, r.values()["generator.ids"])

	clock.Advance(time.Second)
	id, err := ids.NextAfter(t.Context(), 0)
	require.NoError(t, err)
	_, err = ids.NextAfter(t.Context(), id|1<<62)
	require.Error(t, err)
	runs, err := ids.NextRuns(t.Context(), 2, []snowflake.Run{{Count: 100}})
	require.NoError(t, err)
	require.Greater(t, len(runs), 1)
	assert.Equal(t, 11.0, r.values()["generator.ids"])
	r.end(ids)
}

// A few sequences are reported by their names, which no option replaces, and the others as one, whose
// sums are right and whose counters never fall.
func TestObserveSequences(t *testing.T) {
	r, store := record(t), storetest.NewMemory()
	all, err := oteltickflake.ObserveSequences(2, r.here(), oteltickflake.WithAttributes(oteltickflake.SequenceKey.String("mine")))
	require.NoError(t, err)
	opened, removes := map[string]*sequence.Sequence{}, map[string]func(){}
	add := func(name string, numbers int64) {
		opened[name] = open(t, store, name, sequence.Definition{Max: 1000})
		_, err := opened[name].NextN(t.Context(), numbers)
		require.NoError(t, err)
		removes[name] = all.Add(opened[name])
	}
	add("a", 1)
	add("b", 10)
	assert.Empty(t, r.of(oteltickflake.Others))
	add("c", 100)
	add("d", 200)
	assert.Len(t, r.of("b"), 16)
	assert.Empty(t, r.of("c"))
	c, d, others := opened["c"].Stats(), opened["d"].Stats(), r.of(oteltickflake.Others)
	assert.Len(t, others, 12, "no step, last, left and utilization")
	for name, want := range map[string]float64{
		"issued": 300, "refills": float64(c.Refills + d.Refills), "refill_time": (c.Waited + d.Waited).Seconds(), "starved": float64(c.Starved + d.Starved),
		"lost": float64(c.Lost + d.Lost), "conflicts": 0, "failures": 0, "store_went_back": 0, "copies": 0,
		"rate": c.Rate + d.Rate, "reserved": float64(c.Reserved + d.Reserved), "gap_bound": float64(c.GapBound + d.GapBound),
	} {
		assert.InDelta(t, want, others["sequence."+name], 1e-9, name)
	}

	removes["a"]() // it makes room for a new one; the others stay
	removes["c"]()
	assert.Empty(t, r.of("a"))
	assert.Equal(t, 300.0, r.of(oteltickflake.Others)["sequence.issued"])
	assert.Equal(t, float64(d.Reserved), r.of(oteltickflake.Others)["sequence.reserved"])
	add("e", 5)
	assert.Equal(t, 5.0, r.of("e")["sequence.issued"])
	require.NoError(t, opened["b"].Close())
	assert.Len(t, r.of("b"), 9, "a closed sequence has counters, and no state")
	require.NoError(t, opened["d"].Close())
	assert.Equal(t, 300.0, r.of(oteltickflake.Others)["sequence.issued"])
	assert.Zero(t, r.of(oteltickflake.Others)["sequence.gap_bound"])
	assert.Error(t, sequence.ValidateName(oteltickflake.Others))
	r.end(all)
}

// The share of the numbers that is granted, also of the most that there can be.
func TestUtilization(t *testing.T) {
	for share, d := range map[float64]sequence.Definition{
		0:    {},
		0.16: {Start: 1, Max: 100},
		0.8:  {Start: 50, Max: 249, Stride: sequence.Every(10, 9), MinStep: 16},
		1:    {Start: 9, Max: 9},
	} {
		r := record(t)
		seq := open(t, storetest.NewMemory(), "orders", d)
		_, err := oteltickflake.ObserveSequence(seq, r.here())
		require.NoError(t, err)
		assert.Zero(t, r.of("orders")["sequence.utilization"])
		_, err = seq.Next(t.Context())
		require.NoError(t, err)
		assert.InDelta(t, share, r.of("orders")["sequence.utilization"], 1e-9, "%v", d)
	}
}

// global is the recorder of the first run of TestGlobalProviders: the providers that were asked for
// before pass on to the first that is set.
var global *recorder

// Without options the global providers are told, even if they are set later.
func TestGlobalProviders(t *testing.T) {
	gen, err := generator.New(generator.WithNode(0))
	require.NoError(t, err)
	metrics, err := oteltickflake.Observe(gen)
	require.NoError(t, err)
	store := oteltickflake.Wrap(storetest.NewMemory())
	if global == nil {
		global = record(t)
		otel.SetMeterProvider(global.meters)
		otel.SetTracerProvider(global.tracer)
	}
	r := global
	r.t = t
	r.Reset()
	_, err = store.List(t.Context(), "", "z", 1)
	require.NoError(t, err)
	assert.Len(t, r.values(), 10)
	assert.Len(t, r.Ended(), 1)
	r.end(metrics)
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
	_, err = oteltickflake.ObserveSequences(1, meters)
	assert.ErrorIs(t, err, errBroken)

	var told error
	handler := otel.GetErrorHandler()
	defer otel.SetErrorHandler(handler)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told = err }))
	store := oteltickflake.Wrap(storetest.NewMemory(), meters)
	assert.ErrorIs(t, told, errBroken)
	_, err = store.List(t.Context(), "", "z", 1)
	require.NoError(t, err, "the store works all the same")
}
