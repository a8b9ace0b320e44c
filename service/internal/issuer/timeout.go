package issuer

import (
	"context"
	"sync"
	"time"
)

// Timeout is a context that ends after the timeout of a request. Its timer starts when it is
// first asked for its deadline or waited for, so that a request that need not wait costs
// nothing. It is safe for concurrent use.
type Timeout struct {
	parent context.Context
	err    *timeoutError

	mu      sync.Mutex
	running context.Context // nil until the timer starts; set once
	cancel  context.CancelFunc
}

// Timeout returns ctx with the timeout of a request. Call [Timeout.Cancel] after the request. Unless
// [Timeout.Started] is true, it can be used for the next one instead.
func (i *Issuer) Timeout(ctx context.Context) *Timeout {
	return &Timeout{parent: ctx, err: i.timeout}
}

// Started reports whether the timer has started.
func (t *Timeout) Started() bool { return t.now() != t.parent }

// Cancel frees the timer, and ends the context, if the timer has started.
func (t *Timeout) Cancel() {
	if t.Started() {
		t.cancel()
	}
}

// start returns the context with the timer.
func (t *Timeout) start() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == nil {
		t.running, t.cancel = context.WithTimeoutCause(t.parent, t.err.after, t.err)
	}
	return t.running
}

// now returns the context that holds without a start of the timer.
func (t *Timeout) now() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == nil {
		return t.parent
	}
	return t.running
}

// Deadline is that of [context.Context]. It starts the timer.
func (t *Timeout) Deadline() (time.Time, bool) { return t.start().Deadline() }

// Done is that of [context.Context]. It starts the timer.
func (t *Timeout) Done() <-chan struct{} { return t.start().Done() }

// Err is that of [context.Context].
func (t *Timeout) Err() error { return t.now().Err() }

// Value is that of [context.Context].
func (t *Timeout) Value(key any) any { return t.now().Value(key) }
