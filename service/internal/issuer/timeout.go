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
	err    *timeoutError

	mu sync.Mutex // held to set running
	// running is nil until the timer starts or the Timeout is canceled. It is set once.
	running atomic.Pointer[running]
}

type running struct {
	context.Context
	cancel context.CancelFunc
}

// ended is for a Timeout that was canceled before its timer started.
var ended = func() *running {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &running{ctx, cancel}
}()

// Timeout returns ctx with the timeout of a request. Call [Timeout.Cancel] after a request
// for which [Timeout.Started] is true. Else it can be used for the next request.
func (i *Issuer) Timeout(ctx context.Context) *Timeout {
	return &Timeout{parent: ctx, err: i.timeout}
}

// Started reports whether the timer has started, or the Timeout was canceled.
func (t *Timeout) Started() bool { return t.running.Load() != nil }

// Cancel ends the context, and frees its timer.
func (t *Timeout) Cancel() { t.set(func() *running { return ended }).cancel() }

// set returns running, and makes it first if there is none.
func (t *Timeout) set(create func() *running) *running {
	if r := t.running.Load(); r != nil {
		return r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.running.Load()
	if r == nil {
		r = create()
		t.running.Store(r)
	}
	return r
}

func (t *Timeout) start() *running {
	return t.set(func() *running {
		ctx, cancel := context.WithTimeoutCause(t.parent, t.err.after, t.err)
		return &running{ctx, cancel}
	})
}

// Deadline is that of [context.Context]. It starts the timer.
func (t *Timeout) Deadline() (time.Time, bool) { return t.start().Deadline() }

// Done is that of [context.Context]. It starts the timer.
func (t *Timeout) Done() <-chan struct{} { return t.start().Done() }

// Err is that of [context.Context].
func (t *Timeout) Err() error { return t.now().Err() }

// Value is that of [context.Context].
func (t *Timeout) Value(key any) any { return t.now().Value(key) }

// now returns the context that holds without a start of the timer.
func (t *Timeout) now() context.Context {
	if r := t.running.Load(); r != nil {
		return r
	}
	return t.parent
}
