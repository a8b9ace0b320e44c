package oteltickflake

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/tickflake/tickflake/stores"
)

// Wrap returns a store that passes every operation on to store and reports it: its time in
// the histogram tickflake.store.operation.duration, and a span. It has the traits of store. Give it to [lease.Claim] and [sequence.Open]. Closing it closes store.
//
// A keeper extends its grant in the background, and a sequence gets its numbers there, so
// those spans are the roots of their traces. The spans of a claim or a release are children
// of the span in their context.
//
// A nil store is returned as it is, and lease.Claim reports it. An error of the meter provider
// goes to [otel.Handle], and then no times are measured.
func Wrap(store stores.Store, options ...Option) stores.Store {
	if store == nil {
		return nil
	}
	c := configure(options)
	duration, err := c.meter().Float64Histogram("tickflake.store.operation.duration",
		metric.WithUnit("s"), metric.WithDescription("Time that operations of the store took."),
		metric.WithExplicitBucketBoundaries(boundaries...))
	if err != nil {
		otel.Handle(err)
		duration = noop.Float64Histogram{}
	}
	return &wrapper{Store: store, config: c, duration: duration, tracer: c.tracers.Tracer(scope)}
}

// boundaries are those of the histogram, in seconds: from a local disk to a timeout.
var boundaries = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}

type wrapper struct {
	stores.Store
	config
	duration metric.Float64Histogram
	tracer   trace.Tracer
}

func (w *wrapper) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	return report(ctx, w, "list", from, func(ctx context.Context) ([]stores.Cell, error) { return w.Store.List(ctx, from, to, limit) })
}

func (w *wrapper) Read(ctx context.Context, key string) (stores.Cell, error) {
	return report(ctx, w, "read", key, func(ctx context.Context) (stores.Cell, error) { return w.Store.Read(ctx, key) })
}

func (w *wrapper) Swap(ctx context.Context, key string, version uint64, value []byte) (newVersion uint64, err error) {
	return report(ctx, w, "swap", key, func(ctx context.Context) (uint64, error) { return w.Store.Swap(ctx, key, version, value) })
}

// Traits reports the locks, too.
func (w *wrapper) Traits() stores.Traits {
	traits := w.Store.Traits()
	if lock := traits.TryLock; lock != nil {
		traits.TryLock = func(ctx context.Context, key string) (unlock func(), err error) {
			return report(ctx, w, "lock", key, func(ctx context.Context) (func(), error) { return lock(ctx, key) })
		}
	}
	return traits
}

// report calls an operation, and reports it.
func report[T any](ctx context.Context, w *wrapper, operation, key string, call func(context.Context) (T, error)) (answer T, err error) {
	op := OperationKey.String(operation)
	set := w.with(KeyKey.String(key), op)
	ctx, span := w.tracer.Start(ctx, "tickflake.store "+operation, trace.WithAttributes(set.ToSlice()...))
	begin := time.Now()
	answer, err = call(ctx)
	took := time.Since(begin)
	outcome, kind := outcomeOf(ctx, err)
	came := []attribute.KeyValue{OutcomeKey.String(outcome)}
	if kind != "" {
		came = append(came, errorTypeKey.String(kind))
		shown := exportable(err)
		span.RecordError(shown)
		span.SetStatus(codes.Error, shown.Error())
	}
	span.SetAttributes(came...)
	span.End()
	w.duration.Record(ctx, took.Seconds(), w.set(append(came, op)...))
	return answer, err
}

// exportable returns err with a text in UTF-8: otherwise OTLP refuses the whole batch of
// spans. Drivers may quote bytes of a server.
func exportable(err error) error {
	if text := err.Error(); !utf8.ValidString(text) {
		return errors.New(valid(text))
	}
	return err
}

// valid returns text with U+FFFD in place of bytes that are not UTF-8.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// errorTypeKey is the attribute of failures in OpenTelemetry's conventions. They recommend
// it beside one of the library's own, such as [OutcomeKey], and only on failures.
const errorTypeKey = attribute.Key("error.type")

// outcomeOf returns the value of [OutcomeKey], and that of errorTypeKey, which is "" if the store answered.
func outcomeOf(ctx context.Context, err error) (outcome, kind string) {
	switch {
	case err == nil:
		return "ok", ""
	case errors.Is(err, stores.ErrConflict):
		return "conflict", ""
	case errors.Is(err, stores.ErrLocked):
		return "locked", ""
	case errors.Is(err, stores.ErrDamaged):
		outcome = "damaged"
	case stores.KindOf(err) == stores.Permanent:
		outcome = "permanent"
	// Some drivers do not wrap the error of the context.
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		outcome = "timeout"
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled):
		outcome = "canceled"
	default:
		return "error", "_OTHER" // of the conventions
	}
	return outcome, outcome
}
