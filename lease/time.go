package lease

import (
	"math"
	"time"

	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
)

// Clock tells a [Keeper] what time it is: [*monoclock.Clock], or anything with this
// method that is safe for use by several goroutines at once.
//
// A fake clock must have After(time.Duration) <-chan time.Time, as [time.After], or the
// Keeper waits in real time for a clock that stands still. A fake clock whose monotonic
// time is not its wall time also has Elapsed() time.Duration.
type Clock interface{ Now() time.Time }

// timing returns the monotonic time that a keeper on this clock goes by, and how to wait
// for it. A fake clock is known by its methods: one that has Elapsed, or one that can be
// set, has a time of its own. Every other goes with the machine's time, also the real clock
// of github.com/benbjohnson/clock, which has After but no Set.
func timing(clock Clock) (elapsed func() time.Duration, after func(time.Duration) <-chan time.Time) {
	began := time.Now()
	elapsed = func() time.Duration { return time.Since(began) }
	var source any = clock
	if m, ok := clock.(*monoclock.Clock); ok {
		source = m.Source()
	}
	if isNil(source) {
		return elapsed, time.After
	}
	own, hasElapsed := source.(interface{ Elapsed() time.Duration })
	_, canBeSet := source.(interface{ Set(time.Time) })
	if hasElapsed {
		elapsed = own.Elapsed
	}
	if fake, ok := source.(interface {
		After(time.Duration) <-chan time.Time
	}); ok && (hasElapsed || canBeSet) {
		return elapsed, fake.After
	}
	return elapsed, time.After
}

// timeline counts time in the ticks of a layout.
type timeline struct {
	layout snowflake.Layout
	spec   string // the layout's text
}

// nodes is how many node numbers there are: no more than there are keys.
func (t *timeline) nodes() int64 { return 1 << min(t.layout.NodeBits, 22) }

// end is the tick at which the layout's time ends.
func (t *timeline) end() uint64 { return 1 << t.layout.TimeBits }

// tickOf is the tick of an instant, or 0 before the epoch.
func (t *timeline) tickOf(at time.Time) uint64 {
	return uint64(max(at.Sub(t.layout.Epoch), 0) / t.layout.Tick)
}

// span is the time from one tick to another, as far as it can be told, and below
// zero if the second is the earlier one.
func (t *timeline) span(from, to uint64) time.Duration {
	if to < from {
		return -t.span(to, from)
	}
	if ticks := to - from; ticks <= uint64(math.MaxInt64/t.layout.Tick) {
		return time.Duration(ticks) * t.layout.Tick
	}
	return math.MaxInt64
}

// time is when tick begins, or the latest time that 64-bit nanoseconds can tell.
func (t *timeline) time(tick uint64) time.Time {
	latest := time.Unix(0, math.MaxInt64)
	if span := t.span(0, tick); span < latest.Sub(t.layout.Epoch) {
		return t.layout.Epoch.Add(span).UTC()
	}
	return latest.UTC()
}

const timeFormat = "2006-01-02T15:04:05.000Z"

// encode returns the value of a cell, with its limit as people read it.
func (t *timeline) encode(r protocol.Record) []byte {
	r.Until = t.time(r.Limit).Format(timeFormat)
	return r.Encode()
}
