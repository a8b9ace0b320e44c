package oteltickflake_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/monoclock/clocktest"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// orders opens the sequence "orders".
func orders(t *testing.T, store stores.Store, d sequence.Definition, options ...sequence.Option) *sequence.Sequence {
	t.Helper()
	s, err := sequence.Open(t.Context(), store, "orders", append([]sequence.Option{
		sequence.WithDefinition(d), sequence.WithLogger(slog.New(slog.DiscardHandler)),
	}, options...)...)
	require.NoError(t, err)
	return s
}

// orders returns the metrics of the sequence "orders" without the first part of their names.
func (m metrics) orders() map[string]float64 {
	m.t.Helper()
	values := map[string]float64{}
	for name, value := range m.values(oteltickflake.SequenceKey.String("orders")) {
		short, ok := strings.CutPrefix(name, "tickflake.sequence.")
		require.True(m.t, ok, name)
		values[short] = value
	}
	return values
}

// expected has the right values of the metrics of a sequence.
func expected(s sequence.Stats, utilization float64) map[string]float64 {
	return map[string]float64{
		"issued": float64(s.Issued), "refills": float64(s.Refills), "refill_time": s.Waited.Seconds(),
		"starved": float64(s.Starved), "lost": float64(s.Lost), "conflicts": float64(s.Conflicts),
		"failures": float64(s.Failures), "store_went_back": float64(s.WentBack),
		"rate": s.Rate, "step": float64(s.Step), "reserved": float64(s.Reserved), "gap_bound": float64(s.GapBound),
		"last": float64(s.Last), "left": float64(s.Left), "utilization": utilization,
	}
}

func TestObserveSequence(t *testing.T) {
	m, store, clock := newMetrics(t), storetest.NewMemory(), clocktest.NewVirtual(noon)
	d := sequence.Definition{Start: 1000, Stride: sequence.Every(2, 1), Max: 2999, MinStep: 16, MaxStep: 128}
	polled := []sequence.Option{sequence.WithClock(clock), sequence.WithPolling()}
	other := orders(t, store.Client(), d, polled...)
	empty := store.Snapshot()
	seq := orders(t, store, d, polled...)
	next := func(s *sequence.Sequence, n int) {
		t.Helper()
		for range n {
			_, err := s.Next(t.Context())
			require.NoError(t, err)
		}
	}
	registration, err := oteltickflake.ObserveSequence(seq, oteltickflake.WithMeterProvider(m))
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{
		"issued": 0, "refills": 0, "refill_time": 0, "starved": 0, "lost": 0, "conflicts": 0, "failures": 0, "store_went_back": 0,
		"rate": 0, "step": 16, "reserved": 0, "gap_bound": 256, "last": 999, "left": 1000, "utilization": 0,
	}, m.orders())

	store.Before = func(context.Context, storetest.Op) storetest.Fault {
		clock.Advance(5 * time.Millisecond)
		return storetest.None
	}
	next(seq, 16)
	clock.Advance(time.Second)
	next(seq, 6) // at 16 in a second, two steps are reserved
	for range 2 {
		next(other, 200) // it writes in between
		_, err = seq.NextN(t.Context(), 40)
		require.NoError(t, err)
	}
	next(seq, 80)
	store.Fail(storetest.Unavailable, 3) // a swap, the read after it, and that of the next round
	for _, fails := range []bool{true, true, false} {
		_, err := seq.Poll(t.Context())
		require.Equal(t, fails, err != nil)
	}
	next(seq, 1)

	s, values := seq.Stats(), m.orders()
	t.Logf("%+v", s)
	assert.Equal(t, expected(s, 1-float64(s.Left)/1000), values)
	// No two are equal, or two of them could be mixed up.
	different := slices.Compact(slices.Sorted(maps.Values(values)))
	assert.Len(t, different, len(values), "%v", values)

	empty()
	for err = nil; err == nil; { // the reserved numbers are issued before
		_, err = seq.NextN(t.Context(), 100)
	}
	require.ErrorIs(t, err, stores.ErrWentBack)
	assert.Equal(t, 1.0, m.orders()["store_went_back"])

	// A closed sequence has counters, and no state.
	require.NoError(t, seq.Close())
	counters := expected(seq.Stats(), 0)
	for _, state := range []string{"rate", "step", "reserved", "gap_bound", "last", "left", "utilization"} {
		delete(counters, state)
	}
	assert.Equal(t, counters, m.orders())
	m.end(registration)
}

// The share of the numbers that is granted, also of the most that there can be.
func TestUtilization(t *testing.T) {
	for share, d := range map[float64]sequence.Definition{
		0:    {},
		0.16: {Start: 1, Max: 100},
		0.8:  {Start: 50, Max: 249, Stride: sequence.Every(10, 9), MinStep: 16},
		1:    {Start: 9, Max: 9},
	} {
		m := newMetrics(t)
		seq := orders(t, storetest.NewMemory(), d, sequence.WithPolling())
		_, err := oteltickflake.ObserveSequence(seq, oteltickflake.WithMeterProvider(m))
		require.NoError(t, err)
		assert.Zero(t, m.orders()["utilization"])
		_, err = seq.Next(t.Context())
		require.NoError(t, err)
		assert.InDelta(t, share, m.orders()["utilization"], 1e-9, "%v", d)
	}
}

// A collection does not wait for a store that hangs.
func TestObserveSequenceThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, store, answer := newMetrics(t), storetest.NewMemory(), make(chan struct{})
		seq := orders(t, store, sequence.Definition{Mode: sequence.Ordered})
		_, err := oteltickflake.ObserveSequence(seq, oteltickflake.WithMeterProvider(m))
		require.NoError(t, err)
		store.Before = func(context.Context, storetest.Op) storetest.Fault {
			<-answer
			return storetest.None
		}
		var done sync.WaitGroup
		done.Go(func() {
			_, err := seq.Next(t.Context())
			assert.NoError(t, err)
		})
		synctest.Wait()
		assert.Zero(t, m.orders()["issued"])
		assert.Zero(t, m.orders()["step"], "as all of ordered mode")
		close(answer)
		done.Wait()
		assert.Equal(t, 1.0, m.orders()["issued"])
	})
}

// Sequences differ by their names, which no option replaces, and those of one name by their
// namespaces.
func TestObserveSequences(t *testing.T) {
	m := newMetrics(t)
	for i, c := range []struct{ name, namespace string }{{"orders", "de"}, {"orders", "fr"}, {"tickets", "de"}} {
		seq, err := sequence.Open(t.Context(), storetest.NewMemory(), c.name, sequence.WithDefinition(sequence.Definition{Start: int64(i)}))
		require.NoError(t, err)
		_, err = oteltickflake.ObserveSequence(seq, oteltickflake.WithMeterProvider(m),
			oteltickflake.WithNamespace(c.namespace), oteltickflake.WithAttributes(oteltickflake.SequenceKey.String("mine")))
		require.NoError(t, err)
		last := m.values(oteltickflake.SequenceKey.String(c.name), oteltickflake.NamespaceKey.String(c.namespace))["tickflake.sequence.last"]
		assert.Equal(t, float64(i-1), last, c)
	}
}

// A few sequences are reported by their names, and the others as one, whose sums are right and
// whose counters never fall.
func TestObserveManySequences(t *testing.T) {
	m, store := newMetrics(t), storetest.NewMemory()
	all, err := oteltickflake.ObserveSequences(2, oteltickflake.WithMeterProvider(m))
	require.NoError(t, err)
	var opened []*sequence.Sequence
	var removes []func()
	add := func(name string, numbers int64) {
		seq, err := sequence.Open(t.Context(), store, name, sequence.WithDefinition(sequence.Definition{Start: 1, Max: 1000}))
		require.NoError(t, err)
		_, err = seq.NextN(t.Context(), numbers)
		require.NoError(t, err)
		opened, removes = append(opened, seq), append(removes, all.Add(seq))
	}
	of := func(name string) map[string]float64 { return m.values(oteltickflake.SequenceKey.String(name)) }
	add("a", 1)
	add("b", 10)
	assert.Empty(t, of(oteltickflake.Others))
	add("c", 100)
	add("d", 200)
	assert.Len(t, of("b"), 15)
	assert.Empty(t, of("c"))
	sums := make(map[string]float64)
	for _, seq := range opened[2:] {
		for name, value := range expected(seq.Stats(), 0) {
			if !slices.Contains([]string{"step", "last", "left", "utilization"}, name) {
				sums["tickflake.sequence."+name] += value
			}
		}
	}
	assert.Equal(t, 300.0, sums["tickflake.sequence.issued"])
	assert.InDeltaMapValues(t, sums, of(oteltickflake.Others), 1e-9)

	removes[0]() // it makes room for a new one; the others stay
	removes[2]()
	assert.Empty(t, of("a"))
	assert.Equal(t, 300.0, of(oteltickflake.Others)["tickflake.sequence.issued"])
	assert.Equal(t, float64(opened[3].Stats().Reserved), of(oteltickflake.Others)["tickflake.sequence.reserved"])
	add("e", 5)
	assert.Equal(t, 5.0, of("e")["tickflake.sequence.issued"])
	require.NoError(t, opened[3].Close())
	assert.Equal(t, 300.0, of(oteltickflake.Others)["tickflake.sequence.issued"])
	assert.Zero(t, of(oteltickflake.Others)["tickflake.sequence.reserved"])
	assert.Error(t, sequence.CheckName(oteltickflake.Others))
	m.end(all)
}
