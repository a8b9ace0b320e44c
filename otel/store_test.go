package oteltickflake_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tickflake/tickflake/lease"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

const (
	duration = "tickflake.store.operation.duration"
	key      = "node/0000005"
)

// traces keeps the spans that have ended.
type traces struct {
	*sdktrace.TracerProvider
	*tracetest.SpanRecorder
}

func newTraces() traces {
	spans := tracetest.NewSpanRecorder()
	return traces{sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), spans}
}

func (t traces) last() sdktrace.ReadOnlySpan { return t.Ended()[len(t.Ended())-1] }

// A wrapped store passes the conformance suite.
func TestWrappedStore(t *testing.T) {
	cells := map[string]*storetest.Memory{}
	open := func(namespace string) *storetest.Memory {
		if cells[namespace] == nil {
			cells[namespace] = storetest.NewMemory()
		}
		return cells[namespace].Client()
	}
	m, spans := newMetrics(t), newTraces()
	wrap := func(store stores.Store) stores.Store {
		return oteltickflake.Wrap(store, oteltickflake.WithMeterProvider(m), oteltickflake.WithTracerProvider(spans))
	}
	t.Run("store", func(t *testing.T) {
		storetest.TestStore(t, func(_ testing.TB, namespace string) stores.Store {
			store := wrap(open(namespace))
			require.NotImplements(t, (*stores.Locker)(nil), store)
			return store
		})
	})
	clear(cells)
	t.Run("locker", func(t *testing.T) {
		storetest.TestStore(t, func(_ testing.TB, namespace string) stores.Store {
			store := wrap(open(namespace).Locking())
			require.Implements(t, (*stores.Locker)(nil), store)
			return store
		})
	})
}

// broken answers every operation with err, after took.
type broken struct {
	err  error
	took time.Duration
}

func (b broken) answer(ctx context.Context) error {
	select {
	case <-time.After(b.took):
		return b.err
	case <-ctx.Done():
		return errors.New("connection closed") // as some drivers say it
	}
}

func (b broken) List(ctx context.Context, _, _ string, _ int) ([]stores.Cell, error) {
	return nil, b.answer(ctx)
}

func (b broken) Read(ctx context.Context, key string) (stores.Cell, error) {
	return stores.Cell{Key: key}, b.answer(ctx)
}

func (b broken) Swap(ctx context.Context, _ string, version uint64, _ []byte) (uint64, error) {
	return version, b.answer(ctx)
}

func (b broken) TryLock(ctx context.Context, _ string) (func(), error) {
	return func() {}, b.answer(ctx)
}

func (b broken) Close() error { return nil }

// Every operation is reported with its time and outcome, however it ends.
func TestOutcomes(t *testing.T) {
	cause := errors.New("disk on fire")
	for _, c := range []struct {
		err     error
		limit   time.Duration // of the context
		outcome string
		failed  string // the error.type
	}{
		{nil, 0, "ok", ""},
		{fmt.Errorf("swap: %w", stores.ErrConflict), 0, "conflict", ""},
		{fmt.Errorf("lock: %w", stores.ErrLocked), 0, "locked", ""},
		{fmt.Errorf("read: %w", stores.ErrDamaged), 0, "damaged", "damaged"},
		{fmt.Errorf("read: %w", stores.Refused), 0, "refused", "refused"},
		{fmt.Errorf("dial: %w", context.DeadlineExceeded), 0, "timeout", "timeout"},
		{fmt.Errorf("dial: %w", context.Canceled), 0, "canceled", "canceled"},
		{cause, 100 * time.Millisecond, "timeout", "timeout"},
		{cause, -1, "canceled", "canceled"},
		{cause, 0, "error", "_OTHER"},
	} {
		t.Run(c.outcome, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, spans := newMetrics(t), newTraces()
				name := attribute.String("which", "the one")
				store := oteltickflake.Wrap(broken{c.err, 300 * time.Millisecond},
					oteltickflake.WithMeterProvider(m), oteltickflake.WithTracerProvider(spans), oteltickflake.WithAttributes(name)).(stores.Locker)
				took, ctx := 0.3, t.Context()
				switch {
				case c.limit > 0:
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
					took = 0.1
				case c.limit < 0:
					var cancel context.CancelFunc
					ctx, cancel = context.WithCancel(ctx)
					cancel()
					took = 0
				}
				for operation, do := range map[string]func() error{
					"list": func() error { _, err := store.List(ctx, "node/", "node0", 9); return err },
					"read": func() error { _, err := store.Read(ctx, key); return err },
					"swap": func() error { _, err := store.Swap(ctx, key, 5, nil); return err },
					"lock": func() error { _, err := store.TryLock(ctx, key); return err },
				} {
					if c.limit > 0 { // each has its time
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(t.Context(), c.limit)
						defer cancel()
					}
					err := do()
					require.Equal(t, c.err == nil, err == nil)
					attributes := []attribute.KeyValue{name,
						oteltickflake.OperationKey.String(operation), oteltickflake.OutcomeKey.String(c.outcome)}
					if c.failed != "" {
						attributes = append(attributes, attribute.String("error.type", c.failed))
					}
					point := histogram(t, m, attributes...)
					assert.EqualValues(t, 1, point.Count)
					assert.InDelta(t, took, point.Sum, 1e-9)
					assert.Less(t, point.Bounds[0], 0.001, "a local disk")
					assert.Greater(t, point.Bounds[len(point.Bounds)-1], lease.DefaultTimeout.Seconds())
					assert.Less(t, point.Bounds[len(point.Bounds)-1], 60.0)

					span := spans.last()
					about := key
					if operation == "list" {
						about = "node/"
					}
					attributes = append(attributes, oteltickflake.KeyKey.String(about))
					assert.ElementsMatch(t, attributes, span.Attributes())
					assert.Equal(t, "tickflake.store "+operation, span.Name())
					assert.InDelta(t, took, span.EndTime().Sub(span.StartTime()).Seconds(), 1e-9)
					status := sdktrace.Status{}
					if c.failed != "" {
						status = sdktrace.Status{Code: codes.Error, Description: err.Error()}
					}
					assert.Equal(t, status, span.Status())
					assert.Len(t, span.Events(), map[bool]int{true: 1}[c.failed != ""], "the error")
				}
				assert.Len(t, spans.Ended(), 4)
			})
		})
	}
}

// Bytes that are not UTF-8, in the error of a store or in the namespace, do not reach an
// exporter, which would refuse the whole batch.
func TestOnlyUTF8(t *testing.T) {
	m, spans := newMetrics(t), newTraces()
	cause := errors.New("no such key: \xff\xfe, \u00fc")
	store := oteltickflake.Wrap(broken{err: cause}, oteltickflake.WithMeterProvider(m), oteltickflake.WithTracerProvider(spans),
		oteltickflake.WithNamespace("or\xc3ders"))
	_, err := store.List(t.Context(), "node/", "node0", 9)
	assert.Equal(t, cause, err, "the caller gets it as it is")

	span, want := spans.last(), "no such key: \uFFFD, \u00fc"
	assert.Equal(t, sdktrace.Status{Code: codes.Error, Description: want}, span.Status())
	require.Len(t, span.Events(), 1)
	assert.Contains(t, span.Events()[0].Attributes, attribute.String("exception.message", want))
	namespace := oteltickflake.NamespaceKey.String("or\uFFFDders")
	assert.Contains(t, span.Attributes(), namespace)
	assert.EqualValues(t, 1, histogram(t, m, namespace, oteltickflake.OperationKey.String("list"),
		oteltickflake.OutcomeKey.String("error"), attribute.String("error.type", "_OTHER")).Count)
}

// panicking panics in every operation.
type panicking struct{}

func (panicking) List(context.Context, string, string, int) ([]stores.Cell, error) { panic("list") }
func (panicking) Read(context.Context, string) (stores.Cell, error)                { panic("read") }
func (panicking) TryLock(context.Context, string) (unlock func(), _ error)         { panic("lock") }
func (panicking) Swap(context.Context, string, uint64, []byte) (uint64, error)     { panic("swap") }
func (panicking) Close() error                                                     { panic("close") }

// A panic of the store goes on, and has failed, also if the context has ended.
func TestPanics(t *testing.T) {
	m, spans := newMetrics(t), newTraces()
	store := oteltickflake.Wrap(panicking{}, oteltickflake.WithMeterProvider(m), oteltickflake.WithTracerProvider(spans)).(stores.Locker)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for operation, do := range map[string]func(){
		"list": func() { _, _ = store.List(t.Context(), "node/", "node0", 9) },
		"read": func() { _, _ = store.Read(t.Context(), key) },
		"swap": func() { _, _ = store.Swap(over, key, 5, nil) },
		"lock": func() { _, _ = store.TryLock(over, key) },
	} {
		spans.Reset()
		assert.PanicsWithValue(t, operation, do)
		attributes := []attribute.KeyValue{oteltickflake.OperationKey.String(operation),
			oteltickflake.OutcomeKey.String("error"), attribute.String("error.type", "_OTHER")}
		assert.EqualValues(t, 1, histogram(t, m, attributes...).Count)
		require.Len(t, spans.Ended(), 1, operation)
		assert.Subset(t, spans.last().Attributes(), attributes)
		assert.Equal(t, codes.Error, spans.last().Status().Code)
		assert.Contains(t, spans.last().Status().Description, "panicked")
	}
}

// Attributes of the options do not replace those of an operation, in metrics as in spans.
func TestOwnAttributesWin(t *testing.T) {
	m, spans, sampled := newMetrics(t), newTraces(), &sampler{}
	spans.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans.SpanRecorder), sdktrace.WithSampler(sampled))
	name := attribute.String("which", "the one")
	store := oteltickflake.Wrap(broken{err: errors.New("disk on fire")},
		oteltickflake.WithMeterProvider(m), oteltickflake.WithTracerProvider(spans),
		oteltickflake.WithAttributes(name, oteltickflake.OperationKey.String("mine"), oteltickflake.OutcomeKey.String("mine"), attribute.String("error.type", "mine")))
	_, err := store.List(t.Context(), "node/", "node0", 9)
	require.Error(t, err)
	want := []attribute.KeyValue{name, oteltickflake.OperationKey.String("list"),
		oteltickflake.OutcomeKey.String("error"), attribute.String("error.type", "_OTHER")}
	assert.EqualValues(t, 1, histogram(t, m, want...).Count)
	assert.ElementsMatch(t, append(want, oteltickflake.KeyKey.String("node/")), spans.last().Attributes())
	assert.Contains(t, sampled.saw, want[1], "a sampler goes by what is there at the start")
	assert.NotContains(t, sampled.saw, oteltickflake.OperationKey.String("mine"))
}

// sampler samples all, and keeps what it saw last.
type sampler struct{ saw []attribute.KeyValue }

func (s *sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s.saw = p.Attributes
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}

func (*sampler) Description() string { return "all" }

// histogram returns what was recorded with the attributes.
func histogram(t *testing.T, m metrics, attributes ...attribute.KeyValue) metricdata.HistogramDataPoint[float64] {
	t.Helper()
	set := attribute.NewSet(attributes...)
	one := m.collect()[duration]
	require.IsType(t, metricdata.Histogram[float64]{}, one.Data)
	for _, p := range one.Data.(metricdata.Histogram[float64]).DataPoints {
		if p.Attributes.Equals(&set) {
			return p
		}
	}
	require.Failf(t, "nothing recorded", "with %v", attributes)
	return metricdata.HistogramDataPoint[float64]{}
}

// The spans of a claim and of a release are children of the caller's span. Those of an
// extension, in the background, have no parent.
func TestParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := snowflake.Default()
		layout.Epoch = time.Now().Add(-time.Hour) // the bubble's time begins in 2000
		m, spans := newMetrics(t), newTraces()
		store := oteltickflake.Wrap(storetest.NewMemory(), oteltickflake.WithMeterProvider(m), oteltickflake.WithTracerProvider(spans))
		ctx, start := spans.Tracer("test").Start(t.Context(), "start the service")
		k, err := lease.Claim(ctx, store, lease.WithLayout(layout), lease.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		require.NotEmpty(t, spans.Ended())
		for _, span := range spans.Ended() {
			assert.Equal(t, start.SpanContext().SpanID(), span.Parent().SpanID())
		}
		spans.Reset()

		time.Sleep(11 * time.Second) // a third of the window has passed
		synctest.Wait()
		require.NotEmpty(t, spans.Ended())
		for _, span := range spans.Ended() {
			assert.False(t, span.Parent().IsValid())
		}
		spans.Reset()

		require.NoError(t, k.CloseContext(ctx))
		require.NotEmpty(t, spans.Ended())
		assert.Equal(t, start.SpanContext().TraceID(), spans.last().Parent().TraceID())
	})
}
