package pause

import (
	"context"
	"sync/atomic"
)

// noted is the key of where an engine notes its last error while it opens a store.
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
