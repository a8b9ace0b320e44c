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
// the histogram tickflake.store.operation.duration, and a span. It is a [stores.Locker] if
// store is one. Give it to [lease.Claim] and [sequence.Open]. Closing it closes store.
//
// A keeper extends its grant in the background, and a sequence gets its numbers there, so
// those spans are the roots of their traces. The spans of a claim or a release are children
// of the span in their context.
//
// An operation that panics is reported as failed, and the panic continues. A nil store is
// returned as it is, and lease.Claim reports it. An error of the meter provider goes to
// [otel.Handle], and then no times are measured.
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
	w := &wrapper{Store: store, config: c, duration: duration, tracer: c.tracers.Tracer(scope)}
	if locker, ok := store.(stores.Locker); ok {
		return &lockerWrapper{wrapper: w, locker: locker}
	}
	return w
}

// boundaries are those of the histogram, in seconds: from a local disk to a timeout.
var boundaries = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}

type wrapper struct {
	stores.Store
	config
	duration metric.Float64Histogram
	tracer   trace.Tracer
}

func (w *wrapper) List(ctx context.Context, from, to string, limit int) (cells []stores.Cell, err error) {
	ctx, done := w.begin(ctx, "list", KeyKey.String(from))
	err = errPanicked // unless the next call returns
	defer func() { done(err) }()
	return w.Store.List(ctx, from, to, limit)
}

func (w *wrapper) Read(ctx context.Context, key string) (cell stores.Cell, err error) {
	ctx, done := w.begin(ctx, "read", KeyKey.String(key))
	err = errPanicked
	defer func() { done(err) }()
	return w.Store.Read(ctx, key)
}

func (w *wrapper) Swap(ctx context.Context, key string, version uint64, value []byte) (newVersion uint64, err error) {
	ctx, done := w.begin(ctx, "swap", KeyKey.String(key))
	err = errPanicked
	defer func() { done(err) }()
	return w.Store.Swap(ctx, key, version, value)
}

// Durability asks the wrapped store, so that stores.CheckDurability sees its answer.
func (w *wrapper) Durability(ctx context.Context) (stores.Durability, error) {
	return stores.CheckDurability(ctx, w.Store)
}

type lockerWrapper struct {
	*wrapper
	locker stores.Locker
}

func (w *lockerWrapper) TryLock(ctx context.Context, key string) (unlock func(), err error) {
	ctx, done := w.begin(ctx, "lock", KeyKey.String(key))
	err = errPanicked
	defer func() { done(err) }()
	return w.locker.TryLock(ctx, key)
}

// errPanicked stands for the error of a call that did not return.
var errPanicked = errors.New("the store panicked, or ended its goroutine")

// begin begins an operation, which done ends.
func (w *wrapper) begin(ctx context.Context, operation string, about ...attribute.KeyValue) (_ context.Context, done func(error)) {
	op := OperationKey.String(operation)
	set := w.with(append(about, op)...)
	ctx, span := w.tracer.Start(ctx, "tickflake.store "+operation, trace.WithAttributes(set.ToSlice()...))
	begin := time.Now()
	return ctx, func(err error) {
		took := time.Since(begin)
		came := []attribute.KeyValue{OutcomeKey.String(outcome(ctx, err))}
		if kind := errorType(came[0].Value.AsString()); kind != "" {
			came = append(came, errorTypeKey.String(kind))
			err = exportable(err)
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.SetAttributes(came...)
		span.End()
		w.duration.Record(ctx, took.Seconds(), w.set(append(came, op)...))
	}
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

// outcome is the value of [OutcomeKey].
func outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, stores.ErrConflict):
		return "conflict"
	case errors.Is(err, stores.ErrLocked):
		return "locked"
	case errors.Is(err, stores.ErrDamaged):
		return "damaged"
	case errors.Is(err, errPanicked):
		return "error" // also if the context has ended
	case stores.KindOf(err) == stores.Refused:
		return "refused"
	// Some drivers do not wrap the error of the context.
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled):
		return "canceled"
	}
	return "error"
}

// errorTypeKey is the attribute of failures in OpenTelemetry's conventions. They recommend
// it beside one of the library's own, such as [OutcomeKey], and only on failures.
const errorTypeKey = attribute.Key("error.type")

// errorType is the value of errorTypeKey for an outcome, or "" if the operation did not
// fail.
func errorType(outcome string) string {
	switch outcome {
	case "ok", "conflict", "locked": // the store answered
		return ""
	case "error":
		return "_OTHER" // of the conventions
	}
	return outcome
}
