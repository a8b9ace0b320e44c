package pause

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// The context of the opening of a store has where the engine notes its last error, and what it logs to.

type noted struct{}

// Noting returns a context by which [Note] keeps the last error in a variable.
func Noting(ctx context.Context, last *atomic.Pointer[error]) context.Context {
	return context.WithValue(ctx, noted{}, last)
}

// Note notes why the work of a context has not succeeded yet. A nil changes nothing. [Retry] notes each failure.
func Note(ctx context.Context, err error) {
	if last, ok := ctx.Value(noted{}).(*atomic.Pointer[error]); ok && err != nil {
		last.Store(&err)
	}
}

type logged struct{}

// Logging returns a context of the opening of a store, which has its logger.
func Logging(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, logged{}, log)
}

// Log returns the logger of [Logging], or [slog.Default].
func Log(ctx context.Context) *slog.Logger {
	if log, ok := ctx.Value(logged{}).(*slog.Logger); ok {
		return log
	}
	return slog.Default()
}
