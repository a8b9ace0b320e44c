package monoclock

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/internal/seam"
)

// Interface is any clock: [*Clock] for production, the real and mock clocks of
// github.com/benbjohnson/clock, and every type with this method. It must be safe for
// use by several goroutines at once.
//
// A clock that reads the raw wall clock is a supported choice: after a step back the
// generator's strategy decides. Times before 1970 count as 1970.
//
// A caller waits for a clock by its After(time.Duration) <-chan time.Time, like
// [time.After], if it has one. A fake clock must have it, or callers wait in real time
// for a clock that stands still. A wait that is cut short is measured by Elapsed()
// time.Duration, the clock's monotonic time, if it has that.
type Interface interface {
	Now() time.Time
}

// Waiting returns how to wait for a clock, and its monotonic time since a fixed instant, and is for this module alone.
// after is nil if the clock goes by the machine's own time: the caller may then wait in any way.
func Waiting(c Interface, _ seam.Inside) (after func(time.Duration) <-chan time.Time, elapsed func() time.Duration) {
	began := time.Now()
	elapsed = func() time.Duration { return time.Since(began) }
	var source any = c
	if m, ok := c.(*Clock); ok {
		source = m.source
	}
	if isMachine(source) {
		return nil, elapsed
	}
	if s, ok := source.(interface {
		After(time.Duration) <-chan time.Time
	}); ok {
		after = s.After
		if s, ok := source.(interface{ Elapsed() time.Duration }); ok {
			elapsed = s.Elapsed
		}
	}
	return after, elapsed
}

// Steady returns base, start and moved such that a clock always reads base, in nanoseconds since 1970,
// plus time.Since(start) plus what moved says, and is for this module alone. A caller that reads the clock all the time
// computes this by itself, which saves a call, and reads the clock once Due has come. moved is nil unless the clock is
// a *Clock that reads the machine's own clocks.
func Steady(c Interface, _ seam.Inside) (start time.Time, base int64, moved *seam.Moved) {
	m, ok := c.(*Clock)
	if !ok || m == nil || m.source != nil {
		return time.Time{}, 0, nil
	}
	return m.start, m.base, &m.moved
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
