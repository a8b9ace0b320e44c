package base

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/monoclock"
)

// Waiting returns how to wait for a clock, and its monotonic time since a fixed instant.
// after is nil if the clock goes by the machine's own time: the caller may then wait in any way. own says that the
// monotonic time is the clock's, as that of a test, and so says nothing about this process.
func Waiting(c monoclock.Interface) (after func(time.Duration) <-chan time.Time, elapsed func() time.Duration, own bool) {
	began := time.Now()
	elapsed = func() time.Duration { return time.Since(began) }
	var source any = c
	if m, ok := c.(*monoclock.Clock); ok {
		source = m.Source()
	}
	if isMachine(source) {
		return nil, elapsed, false
	}
	if s, ok := source.(interface {
		After(time.Duration) <-chan time.Time
	}); ok {
		after = s.After
		if s, ok := source.(interface{ Elapsed() time.Duration }); ok {
			elapsed, own = s.Elapsed, true
		}
	}
	return after, elapsed, own
}

// isMachine reports whether c is the real clock of github.com/benbjohnson/clock, whose
// After is time.After. Its mock has the same methods, and Set.
func isMachine(c any) bool {
	_, real := c.(interface {
		After(time.Duration) <-chan time.Time
		Sleep(time.Duration)
		Since(time.Time) time.Duration
		Until(time.Time) time.Duration
		Tick(time.Duration) <-chan time.Time
		WithTimeout(context.Context, time.Duration) (context.Context, context.CancelFunc)
	})
	_, mock := c.(interface{ Set(time.Time) })
	return real && !mock
}
