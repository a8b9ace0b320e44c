package monoclock

import (
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

func init() {
	seam.Steady = func(c interface{ Now() time.Time }) (start time.Time, base int64, moved *seam.Moved) {
		m, ok := c.(*Clock)
		if !ok || m == nil || m.source != nil {
			return time.Time{}, 0, nil
		}
		return m.start, m.base, &m.moved
	}
}
