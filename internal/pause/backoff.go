// Package pause has the pauses between tries, how a context has ended, and what the opening of a store knows. The pace of keepers is in internal/grant/pace.go.
package pause

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff has the pauses between the tries of an operation. They double from First up to Last, and
// up to half of each is left out at random, so that processes that began at once do not go on at
// once. It is for one goroutine.
type Backoff struct {
	First, Last time.Duration // above 0; 0 stands for 20 ms and 1 s

	pause time.Duration // at most Last: it doubles without an overflow
}

// Pause returns the next pause: First/2 to Last.
func (b *Backoff) Pause() time.Duration {
	b.pause = min(max(2*b.pause, cmp.Or(b.First, 20*time.Millisecond)), cmp.Or(b.Last, time.Second))
	return b.pause - rand.N(b.pause/2+1)
}

// Wait waits for the next pause and returns nil, or the error of ctx if that ends before.
func (b *Backoff) Wait(ctx context.Context) error {
	timer := time.NewTimer(b.Pause())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return Ended(ctx)
	case <-timer.C:
		return nil
	}
}

// Retry calls try again and again, with pauses, until it succeeds, again refuses its error, or ctx ends. The error is
// the last one that the end of ctx has not caused, and wraps that of ctx if it has ended.
func Retry(ctx context.Context, again func(error) bool, try func() error) error {
	var last error
	var pauses Backoff
	for {
		err := try()
		if err == nil {
			return nil
		}
		Note(ctx, err)
		end, more := ContextError(ctx), again(err)
		if last == nil || end == nil || !more {
			last = err
		}
		if more {
			end = pauses.Wait(ctx)
		}
		if end != nil && !errors.Is(last, end) {
			last = fmt.Errorf("%w: %w", end, last)
		}
		if end != nil || !more {
			return last
		}
	}
}

// Ended returns nil, or the error of a context that has ended, with its cause, or the cause alone if that
// wraps the error.
func Ended(ctx context.Context) error {
	err, cause := ContextError(ctx), context.Cause(ctx)
	switch {
	case err == nil || cause == nil:
		return err
	case errors.Is(cause, err):
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// ContextError returns the context's error, or that of its deadline by the clock: the timer
// of a deadline may be late, while a driver that looks at the clock is on time.
func ContextError(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
