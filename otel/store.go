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

	"github.com/tickflake/tickflake/lease"
)

// Wrap returns a store that does what the one given does, and reports each operation: its
// time in the histogram tickflake.store.operation.duration, and a span. It is a
// [lease.Locker] if the store is one. Give it to [lease.Claim], and keep the store itself
// to close it.
//
// A keeper extends its grant by itself, so those spans are the roots of their traces.
// Those of a claim or a release are children of the span in their context.
//
// If an operation of the store panics, it is reported as one that failed, and the panic
// goes on.
//
// A store that is nil is returned as it is, for lease.Claim to say so. What the meter
// provider has to say goes to [otel.Handle], and nothing is measured then.
func Wrap(store lease.Store, options ...Option) lease.Store {
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
	if locker, ok := store.(lease.Locker); ok {
		return &lockerWrapper{wrapper: w, locker: locker}
	}
	return w
}

// boundaries reach from a local disk to lease.DefaultTimeout, in seconds.
var boundaries = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}

type wrapper struct {
	lease.Store
	config
	duration metric.Float64Histogram
	tracer   trace.Tracer
}

func (w *wrapper) List(ctx context.Context) (cells []lease.Cell, err error) {
	ctx, done := w.begin(ctx, "list")
	err = errPanicked // and what it is if the store panics
	defer func() { done(err) }()
	return w.Store.List(ctx)
}

func (w *wrapper) Read(ctx context.Context, node int64) (cell lease.Cell, err error) {
	ctx, done := w.begin(ctx, "read", NodeKey.Int64(node))
	err = errPanicked
	defer func() { done(err) }()
	return w.Store.Read(ctx, node)
}

func (w *wrapper) Swap(ctx context.Context, old lease.Cell, value []byte) (cell lease.Cell, err error) {
	ctx, done := w.begin(ctx, "swap", NodeKey.Int64(old.Node))
	err = errPanicked
	defer func() { done(err) }()
	return w.Store.Swap(ctx, old, value)
}

type lockerWrapper struct {
	*wrapper
	locker lease.Locker
}

func (w *lockerWrapper) TryLock(ctx context.Context, node int64) (unlock func(), err error) {
	ctx, done := w.begin(ctx, "lock", NodeKey.Int64(node))
	err = errPanicked
	defer func() { done(err) }()
	return w.locker.TryLock(ctx, node)
}

// errPanicked stands for what a store said that did not return.
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
		w.duration.Record(ctx, seconds(took), w.set(append(came, op)...))
	}
}

// exportable returns err, or, if its text is not UTF-8, one whose text is: OTLP would
// refuse the whole batch of spans. A driver may cite the bytes that it was sent.
func exportable(err error) error {
	if text := err.Error(); !utf8.ValidString(text) {
		return errors.New(valid(text))
	}
	return err
}

// valid returns text with U+FFFD in place of what is not UTF-8.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// outcome is the value of [OutcomeKey].
func outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, lease.ErrConflict):
		return "conflict"
	case errors.Is(err, lease.ErrLocked):
		return "locked"
	case errors.Is(err, lease.ErrDamaged):
		return "damaged"
	case errors.Is(err, errPanicked):
		return "error" // also if the context has ended
	// Of a driver that does not wrap it, the context tells.
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled):
		return "canceled"
	}
	return "error"
}

// errorTypeKey is the attribute by which OpenTelemetry's conventions know a failure,
// whatever library it comes from. They recommend it beside one of the library's own,
// such as [OutcomeKey], and only on what failed.
const errorTypeKey = attribute.Key("error.type")

// errorType is the value of errorTypeKey for an outcome, or "" if the operation did not
// fail.
func errorType(outcome string) string {
	switch outcome {
	case "ok", "conflict", "locked": // the store has done its work
		return ""
	case "error":
		return "_OTHER" // as the conventions call what has no kind
	}
	return outcome
}
