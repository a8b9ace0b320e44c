package oteltickflake_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/oteltickflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// A wrapped store passes the conformance suite.
func TestWrappedStore(t *testing.T) {
	for name, wrapped := range map[string]func(*storetest.Memory) stores.Store{
		"store":  func(m *storetest.Memory) stores.Store { return m },
		"locker": func(m *storetest.Memory) stores.Store { return m.Locking() },
	} {
		t.Run(name, func(t *testing.T) {
			r, cells := record(t), map[string]*storetest.Memory{}
			storetest.TestStore(t, func(_ testing.TB, namespace string) stores.Store {
				if cells[namespace] == nil {
					cells[namespace] = storetest.NewMemory()
				}
				store := r.wrap(wrapped(cells[namespace].Client()))
				require.Equal(t, name == "locker", store.Traits().TryLock != nil)
				return store
			})
		})
	}
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

func (b broken) Traits() stores.Traits {
	return stores.Traits{
		TryLock:    func(ctx context.Context, _ string) (func(), error) { return func() {}, b.answer(ctx) },
		Scattered:  true,
		Private:    func(context.Context) string { return "" },
		Window:     time.Hour,
		Bucket:     time.Hour,
		Durability: func(ctx context.Context) (stores.Durability, error) { return stores.Durability{}, b.answer(ctx) },
		Probe:      func(ctx context.Context, _ bool) error { return b.answer(ctx) },
	}
}

func (b broken) Close() error { return nil }

// A wrapped store loses no trait: without the window of S3 it would cost ten times as much, and without the probe a server
// that ignores conditions would be trusted.
func TestWrappedTraits(t *testing.T) {
	for name, is := range map[string]stores.Traits{"traits of the test": broken{}.Traits(), "wrapped": record(t).wrap(broken{}).Traits()} {
		for field, value := range reflect.ValueOf(is).Fields() {
			assert.False(t, value.IsZero(), "%s: %s", name, field.Name)
		}
	}
}

// Every operation is reported with its time and outcome, however it ends, below the span of the
// caller. No option replaces its attributes, and no bytes reach an exporter that are not UTF-8: it
// would refuse the whole batch.
func TestOutcomes(t *testing.T) {
	const key, took = "node/0000005", 300 * time.Millisecond
	cause := errors.New("no such key: \xff\xfe, ü")
	for _, c := range []struct {
		store   broken
		limit   time.Duration // of the context; below 0, it has ended
		outcome string
		failed  string // the error.type
		status  string
	}{
		{broken{}, 0, "ok", "", ""},
		{broken{err: fmt.Errorf("swap: %w", stores.ErrConflict)}, 0, "conflict", "", ""},
		{broken{err: fmt.Errorf("lock: %w", stores.ErrLocked)}, 0, "locked", "", ""},
		{broken{err: fmt.Errorf("read: %w", stores.ErrDamaged)}, 0, "damaged", "damaged", "read: "},
		{broken{err: fmt.Errorf("read: %w", stores.Permanent)}, 0, "permanent", "permanent", "read: "},
		{broken{err: fmt.Errorf("dial: %w", context.DeadlineExceeded)}, 0, "timeout", "timeout", "dial: "},
		{broken{err: fmt.Errorf("dial: %w", context.Canceled)}, 0, "canceled", "canceled", "dial: "},
		{broken{err: cause}, took / 3, "timeout", "timeout", "connection closed"},
		{broken{err: cause}, -1, "canceled", "canceled", "connection closed"},
		{broken{err: cause}, 0, "error", "_OTHER", "no such key: \uFFFD, ü"},
	} {
		for operation, do := range map[string]func(context.Context, stores.Store) error{
			"list": func(ctx context.Context, s stores.Store) error { _, err := s.List(ctx, key, "node0", 9); return err },
			"read": func(ctx context.Context, s stores.Store) error { _, err := s.Read(ctx, key); return err },
			"swap": func(ctx context.Context, s stores.Store) error { _, err := s.Swap(ctx, key, 5, nil); return err },
			"lock": func(ctx context.Context, s stores.Store) error { _, err := s.Traits().TryLock(ctx, key); return err },
		} {
			t.Run(c.outcome+" "+operation, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := record(t)
					c.store.took = took
					store := r.wrap(c.store, oteltickflake.WithNamespace("or\xc3ders"), oteltickflake.WithAttributes(
						oteltickflake.OperationKey.String("mine"), oteltickflake.OutcomeKey.String("mine")))
					ctx, parent := r.tracer.Tracer("test").Start(t.Context(), "the caller")
					lasts := took
					switch {
					case c.limit > 0:
						lasts = c.limit
						bounded, cancel := context.WithTimeout(ctx, c.limit)
						defer cancel()
						ctx = bounded
					case c.limit < 0:
						lasts = 0
						over, cancel := context.WithCancel(ctx)
						cancel()
						ctx = over
					}
					assert.Equal(t, c.store.err == nil, do(ctx, store) == nil)

					attributes := []attribute.KeyValue{oteltickflake.NamespaceKey.String("or\uFFFDders"),
						oteltickflake.OperationKey.String(operation), oteltickflake.OutcomeKey.String(c.outcome)}
					if c.failed != "" {
						attributes = append(attributes, attribute.String("error.type", c.failed))
					}
					_, points := r.points(attributes...)
					require.Len(t, points, 1)
					assert.InDelta(t, lasts.Seconds(), points[0].Sum, 1e-9)
					assert.Less(t, points[0].Bounds[0], 0.001, "a local disk")
					assert.Greater(t, points[0].Bounds[len(points[0].Bounds)-1], lease.DefaultTimeout.Seconds())

					require.Len(t, r.Ended(), 1)
					span := r.Ended()[0]
					assert.ElementsMatch(t, append(attributes, oteltickflake.KeyKey.String(key)), span.Attributes())
					assert.Equal(t, "tickflake.store "+operation, span.Name())
					assert.Equal(t, parent.SpanContext().SpanID(), span.Parent().SpanID())
					assert.Equal(t, lasts, span.EndTime().Sub(span.StartTime()))
					want := sdktrace.Status{}
					if c.failed != "" {
						want.Code = codes.Error
						require.Len(t, span.Events(), 1, "the error")
						assert.Contains(t, span.Events()[0].Attributes, attribute.String("exception.message", span.Status().Description))
					}
					assert.Equal(t, want.Code, span.Status().Code)
					assert.Contains(t, span.Status().Description, c.status)
				})
			})
		}
	}
}
