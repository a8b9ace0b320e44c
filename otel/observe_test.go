package oteltickflake_test

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// small is a layout of 4 IDs per millisecond, that lasts for 2³¹ ms.
func small() snowflake.Layout {
	l := snowflake.Default()
	l.Epoch, l.TimeBits, l.NodeBits, l.SequenceBits = noon.Add(-time.Second), 31, 10, 2
	return l
}

func TestObserve(t *testing.T) {
	m, virtual := newMetrics(t), clocktest.NewVirtual(noon)
	gen, err := generator.New(
		generator.WithClock(monoclock.New(monoclock.WithSource(virtual))),
		generator.WithLayout(small()), generator.WithNode(7),
		generator.WithStrategy(strategies.Chain(strategies.BorrowUpTo(2*time.Millisecond), strategies.WaitUpTo(4*time.Millisecond))))
	require.NoError(t, err)
	name := attribute.String("which", "the one")
	metrics, err := oteltickflake.Observe(gen, oteltickflake.WithMeterProvider(m), oteltickflake.WithNamespace("orders"), oteltickflake.WithAttributes(name))
	require.NoError(t, err)
	values := func() map[string]float64 {
		return m.values(oteltickflake.NamespaceKey.String("orders"), name)
	}
	life := small().End().Sub(noon).Seconds()
	assert.Equal(t, map[string]float64{
		"tickflake.generator.waits":          0,
		"tickflake.generator.wait_time":      0,
		"tickflake.generator.borrowed_ticks": 0,
		"tickflake.generator.rejections":     0,
		"tickflake.generator.lead":           0,
		"tickflake.generator.max_lead":       0,
		"tickflake.generator.granted":        life,
		"tickflake.generator.drift":          0,
		"tickflake.generator.node":           7,
	}, values())

	// 4 IDs of each of 3 ticks, of which 2 are borrowed; the next ID waits.
	ids := make([]snowflake.ID, 12)
	_, err = gen.NextN(ids)
	require.NoError(t, err)
	assert.Equal(t, 0.002, values()["tickflake.generator.lead"])
	virtual.AutoAdvance(true)
	_, err = gen.Next()
	require.NoError(t, err)
	virtual.AutoAdvance(false)
	virtual.Step(-time.Hour)
	assert.Equal(t, map[string]float64{
		"tickflake.generator.waits":          1,
		"tickflake.generator.wait_time":      0.001,
		"tickflake.generator.borrowed_ticks": 3,
		"tickflake.generator.rejections":     0,
		"tickflake.generator.lead":           0.002,
		"tickflake.generator.max_lead":       0.003,
		"tickflake.generator.granted":        life - 0.001,
		"tickflake.generator.drift":          -3600,
		"tickflake.generator.node":           7,
	}, values())

	m.end(metrics)
	_, err = gen.Next()
	require.NoError(t, err, "the generator goes on")
}

func TestObserveRejections(t *testing.T) {
	m := newMetrics(t)
	gen, err := generator.New(generator.WithClock(clocktest.NewVirtual(noon)), generator.WithLayout(small()), generator.WithNode(0), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	_, err = oteltickflake.Observe(gen, oteltickflake.WithMeterProvider(m))
	require.NoError(t, err)
	for n := range 7 {
		_, err := gen.Next()
		require.Equal(t, n < 4, err == nil)
	}
	assert.Equal(t, 3.0, m.values()["tickflake.generator.rejections"])
}

// claim claims on a virtual clock, polled by the test.
func claim(t *testing.T, store stores.Store, clock *clocktest.Virtual, options ...lease.Option) *lease.Keeper {
	t.Helper()
	k, err := lease.Claim(t.Context(), store, append([]lease.Option{lease.WithClock(clock), lease.WithPolling(), lease.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, k.Close()) })
	return k
}

// leaseOf returns the metrics of the lease.
func leaseOf(values map[string]float64) map[string]float64 {
	maps.DeleteFunc(values, func(name string, _ float64) bool { return !strings.HasPrefix(name, "tickflake.lease.") })
	return values
}

func TestObserveLease(t *testing.T) {
	m, store, clock := newMetrics(t), storetest.NewMemory(), clocktest.NewVirtual(noon)
	theirs := clocktest.NewVirtual(noon.Add(20 * time.Second)) // the rest of the fleet's clock
	other := claim(t, store.Client(), theirs, lease.WithNode(lease.NodeNumber(3)))
	k := claim(t, store, clock)
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	metrics, err := oteltickflake.Observe(gen, oteltickflake.WithMeterProvider(m))
	require.NoError(t, err)
	assert.Len(t, m.values(), 19, "those of the generator, too")
	assert.Equal(t, map[string]float64{
		"tickflake.lease.claims":          1,
		"tickflake.lease.extensions":      0,
		"tickflake.lease.conflicts":       0,
		"tickflake.lease.releases":        0,
		"tickflake.lease.failures":        0,
		"tickflake.lease.store_went_back": 0,
		"tickflake.lease.pauses":          0,
		"tickflake.lease.skew":            0, // until the others show that they live
		"tickflake.lease.remaining":       30,
		"tickflake.lease.window":          30,
	}, leaseOf(m.values()))

	theirs.Advance(10 * time.Second)
	other.Poll(t.Context())
	clock.Advance(10 * time.Second)
	k.Poll(t.Context())
	assert.InDelta(t, -20, m.values()["tickflake.lease.skew"], 10)
	assert.Equal(t, k.Stats().Skew.Seconds(), m.values()["tickflake.lease.skew"])
	store.Fail(storetest.Unavailable, 2) // a swap, and the read after it
	clock.Advance(11 * time.Second)
	k.Poll(t.Context())
	values := m.values()
	assert.Equal(t, 1.0, values["tickflake.lease.extensions"])
	assert.Equal(t, 2.0, values["tickflake.lease.failures"])
	assert.Equal(t, 19.0, values["tickflake.lease.remaining"])

	claim(t, store.Client(), clock, lease.WithNode(lease.NodeNumber(k.Node()))) // takes it over
	clock.Advance(20 * time.Second)
	k.Poll(t.Context())
	values = m.values()
	assert.Equal(t, 1.0, values["tickflake.lease.conflicts"])
	assert.Equal(t, 2.0, values["tickflake.lease.claims"])
	require.NotEqual(t, other.Node(), k.Node())

	// A closed lease has no grant. Its counters stay.
	require.NoError(t, gen.Close())
	assert.Equal(t, map[string]float64{
		"tickflake.lease.claims":          2,
		"tickflake.lease.extensions":      1,
		"tickflake.lease.conflicts":       1,
		"tickflake.lease.releases":        1,
		"tickflake.lease.failures":        2,
		"tickflake.lease.store_went_back": 0,
		"tickflake.lease.pauses":          0,
	}, leaseOf(m.values()))
	m.end(metrics)
}

// A store that was emptied is counted.
func TestObserveStoreThatWentBack(t *testing.T) {
	m, store, clock := newMetrics(t), storetest.NewMemory(), clocktest.NewVirtual(noon)
	empty := store.Snapshot()
	k := claim(t, store, clock)
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	_, err = oteltickflake.Observe(gen, oteltickflake.WithMeterProvider(m))
	require.NoError(t, err)
	empty()
	clock.Advance(11 * time.Second)
	k.Poll(t.Context())
	assert.Equal(t, 1.0, m.values()["tickflake.lease.store_went_back"])
}

// The time left is below zero when the store was away for too long.
func TestObserveGrantThatRanOut(t *testing.T) {
	m, store, clock := newMetrics(t), storetest.NewMemory(), clocktest.NewVirtual(noon)
	k := claim(t, store, clock)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	_, err = oteltickflake.Observe(gen, oteltickflake.WithMeterProvider(m))
	require.NoError(t, err)
	assert.Equal(t, float64(k.Node()), m.values()["tickflake.generator.node"])
	store.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable }
	clock.Advance(45 * time.Second)
	_, err = gen.Next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
	values := m.values()
	assert.Equal(t, -15.0, values["tickflake.lease.remaining"])
	assert.Equal(t, -15.0, values["tickflake.generator.granted"])
	store.Before = nil
}

func TestCountIDs(t *testing.T) {
	m := newMetrics(t)
	gen, err := generator.New(generator.WithClock(clocktest.NewVirtual(noon)), generator.WithLayout(small()), generator.WithNode(0), generator.WithStrategy(strategies.BorrowUpTo(time.Millisecond)))
	require.NoError(t, err)
	ids, err := oteltickflake.CountIDs(gen, oteltickflake.WithMeterProvider(m), oteltickflake.WithNamespace("orders"))
	require.NoError(t, err)
	issued := func() float64 {
		return m.values(oteltickflake.NamespaceKey.String("orders"))["tickflake.generator.ids"]
	}
	assert.Zero(t, issued())
	_, err = ids.Next()
	require.NoError(t, err)
	assert.Equal(t, 1.0, issued())
	_, err = ids.NextContext(t.Context())
	require.NoError(t, err)
	n, err := ids.NextN(make([]snowflake.ID, 3))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	assert.Equal(t, 5.0, issued())

	// What fails is not counted, but for the IDs that were issued before it did.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ids.NextContext(over)
	require.ErrorIs(t, err, context.Canceled)
	n, err = ids.NextNContext(t.Context(), make([]snowflake.ID, 4))
	require.ErrorIs(t, err, generator.ErrBehind)
	require.Equal(t, 3, n)
	_, err = ids.Next()
	require.ErrorIs(t, err, generator.ErrBehind)
	assert.Equal(t, 8.0, issued())

	// IDs of the generator itself are not counted.
	require.Same(t, gen, ids.Generator())
	_, err = ids.Generator().NextContext(t.Context())
	require.ErrorIs(t, err, generator.ErrBehind)
	assert.EqualValues(t, 3, ids.Generator().Stats().Rejections)
	assert.Equal(t, 8.0, issued())
	m.end(ids)
}
