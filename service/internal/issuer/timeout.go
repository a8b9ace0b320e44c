package issuer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Timeout is a context that ends after the timeout of a request. Its timer starts when it is
// first asked for its deadline or waited for, so that a request that need not wait costs
// nothing. It is safe for concurrent use.
type Timeout struct {
	parent context.Context
	issuer *Issuer

	once    sync.Once
	running atomic.Pointer[timer] // nil until the timer starts; set once
}

// timer is a context with the function that ends it.
type timer struct {
	context.Context
	cancel context.CancelFunc
}

// Timeout returns ctx with the timeout of a request. Call [Timeout.Cancel] after the request. Unless
// [Timeout.Started] is true, it can be used for the next one instead.
func (i *Issuer) Timeout(ctx context.Context) *Timeout {
	return &Timeout{parent: ctx, issuer: i}
}

// Started reports whether the timer has started.
func (t *Timeout) Started() bool { return t.running.Load() != nil }

// Cancel frees the timer, and ends the context, if the timer has started.
func (t *Timeout) Cancel() {
	if running := t.running.Load(); running != nil {
		running.cancel()
	}
}

// start returns the context with the timer.
func (t *Timeout) start() context.Context {
	t.once.Do(func() {
		ctx, cancel := context.WithTimeoutCause(t.parent, t.issuer.config.Timeout, t.issuer.timeout)
		t.running.Store(&timer{ctx, cancel})
	})
	return t.running.Load()
}

// now returns the context that holds without a start of the timer. Each command calls it, so it
// takes no lock.
func (t *Timeout) now() context.Context {
	if running := t.running.Load(); running != nil {
		return running
	}
	return t.parent
}

// Deadline is that of [context.Context]. It starts the timer.
func (t *Timeout) Deadline() (time.Time, bool) { return t.start().Deadline() }

// Done is that of [context.Context]. It starts the timer.
func (t *Timeout) Done() <-chan struct{} { return t.start().Done() }

// Err is that of [context.Context].
func (t *Timeout) Err() error { return t.now().Err() }

// Value is that of [context.Context].
func (t *Timeout) Value(key any) any { return t.now().Value(key) }
