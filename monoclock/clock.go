// Package monoclock tells the time of day from a clock that no step can reach.
//
// You need these names:
//
//   - [New]: makes a [Clock].
//   - [Clock.Now]: the time of day, which never goes back.
//   - [Interface]: any clock that a generator or a lease accepts.
//   - [Clock.Drift]: the wall clock's time minus the Clock's.
//   - [WithResync]: lets the Clock catch up with a wall clock that is ahead.
//
// A [Clock] reads the wall clock once, when it is made, and from then on adds the
// monotonic time that has passed. NTP may step the wall clock back an hour, an operator
// may set it to 1970, a leap second may repeat a second: a running Clock does not
// notice, and its readings never go back.
//
// This has a price:
//
//   - A wall clock that was wrong when the Clock was made stays wrong for the Clock's
//     lifetime. Start after the first NTP synchronisation if you can.
//   - Corrections made by slewing (running the wall clock a little faster or slower)
//     reach the Clock on Linux, where CLOCK_MONOTONIC is slewed alike, so that Drift does
//     not change. Elsewhere the two may drift apart during the slew: by up to 43 seconds
//     a day at ntpd's limit of 500 parts per million.
//   - Time spent in suspend is lost where the monotonic clock stops with the machine,
//     as on Linux: the Clock then lags by the length of the suspend.
//   - A virtual machine that its hypervisor stops, or restores from a snapshot, may find
//     both clocks behind. The Clock stays behind when the wall clock is stepped ahead.
//
// [Clock.Drift] shows each difference between the two clocks. [WithResync] lets a Clock
// catch up with a wall clock that is ahead of it; nothing makes it go back. The effect of
// each fault on the clocks of Linux, as measured, is in docs/kernel.md of the repository.
//
// Do not use a Clock to learn the exact time of day, or to compare instants between
// machines. Use it where order matters more than agreement, as in the time field of an
// ID.
package monoclock

import (
	"math"
	_ "sync/atomic" // or its methods, reached through package word, are not inlined
	"time"

	"github.com/tickflake/tickflake/internal/word"
)

// Source is where a [Clock] reads time from. The default is the machine's own wall and
// monotonic clocks; tests give a source in which the two move apart.
//
// A Source must be safe for use by several goroutines at once.
type Source interface {
	// Wall is the time of day. It may jump either way.
	Wall() time.Time
	// Elapsed is the monotonic time since a fixed instant. It never decreases.
	Elapsed() time.Duration
	// After sends once Elapsed has advanced by d, as [time.After] does. A caller that
	// waits for a Clock on this Source waits by it.
	After(d time.Duration) <-chan time.Time
}

// Clock gives the time of day as a base, fixed when it was made, plus monotonic
// elapsed time. Make one with [New]; the zero Clock is not usable.
//
// A Clock is safe for use by several goroutines at once. If one reading returns
// before another begins, the later reading is not smaller, also when the wall
// clock steps. It owns no goroutine and needs no closing.
type Clock struct {
	start  time.Time // carries the monotonic reading that elapsed time counts from
	base   int64     // Unix nanoseconds at elapsed time 0
	source Source    // nil: the machine's own clocks
	resync resync

	// caughtUp is the wall time, in nanoseconds, that resyncs have added to
	// base. It only grows; a reading that comes after a growth includes it.
	caughtUp word.Int64
	// nextResync is the elapsed time, in nanoseconds, from which the next reader looks
	// at the wall clock. It only grows. The reader whose compare-and-swap moves it does
	// the look, so there is at most one per interval.
	nextResync word.Int64
}

// resync says when and how far a Clock may catch up with the wall clock.
type resync struct{ threshold, limit time.Duration }

// resyncInterval is the elapsed time between two looks at the wall clock, so a Clock
// catches up about a second after the machine wakes from suspend. A look costs one
// wall-clock read.
const resyncInterval = time.Second

// latest is the latest wall time that a Clock accepts, in Unix nanoseconds: 2200-01-01.
const latest = 7_258_118_400 * int64(time.Second)

// Option configures a [Clock] in [New].
type Option func(*Clock)

// WithResync lets the Clock catch up when the wall clock runs ahead of it. Once a
// second, a reader of the Clock also looks at the wall clock; if that is ahead by more
// than threshold and by no more than limit, the Clock jumps ahead by the difference.
//
// A difference beyond limit is ignored, so that a wild step of the wall clock cannot
// move IDs years ahead; it stays visible in [Clock.Drift]. Set limit to the longest
// suspend that you expect. A Clock never follows a wall clock that is behind it or
// beyond the year 2200.
//
// The option is off by default. A negative threshold counts as zero; with a limit that
// is not above the threshold the Clock never catches up.
func WithResync(threshold, limit time.Duration) Option {
	return func(c *Clock) { c.resync = resync{max(threshold, 0), limit} }
}

// WithSource makes the Clock read from s in place of the machine's own clocks.
// It is meant for tests. A nil s is the machine's own clocks.
func WithSource(s Source) Option {
	return func(c *Clock) { c.source = s }
}

// New returns a Clock that starts at the wall clock's reading of now. A reading
// before 1970 counts as 1970, and one after 2200 as 2200, which leaves 62 years
// until nanoseconds since 1970 no longer fit in 64 bits.
func New(opts ...Option) *Clock {
	c := &Clock{}
	word.Name(&c.caughtUp, "caughtUp")
	word.Name(&c.nextResync, "nextResync")
	for _, opt := range opts {
		if opt != nil {
			opt(c)
		}
	}
	c.start = time.Now()
	wall, elapsed := c.read()
	c.base = min(max(int64(wall.Sub(time.Unix(0, 0))), 0), latest) - elapsed
	c.nextResync.Store(math.MaxInt64)
	if c.resync.limit > c.resync.threshold {
		c.nextResync.Store(elapsed + int64(resyncInterval))
	}
	return c
}

// Now returns the Clock's time of day in UTC, without a monotonic reading, so
// that two results compare as the instants they show.
func (c *Clock) Now() time.Time { return time.Unix(0, c.UnixNano()).UTC() }

// UnixNano returns the same instant as [Clock.Now] in nanoseconds since 1970. It costs
// about as much as one [time.Since], little more than half of [time.Now].
func (c *Clock) UnixNano() int64 {
	var elapsed int64
	if c.source == nil {
		elapsed = int64(time.Since(c.start))
	} else {
		elapsed = int64(c.source.Elapsed())
	}
	if elapsed >= c.nextResync.Load() {
		c.catchUp(elapsed)
	}
	return c.base + elapsed + c.caughtUp.Load()
}

// Drift returns the wall clock's time minus the Clock's: positive when the wall clock
// is ahead. Steps, slews, suspends and a wrong start all show here. It saturates at the
// limits of [time.Duration], 292 years.
func (c *Clock) Drift() time.Duration {
	wall, elapsed := c.read()
	return wall.Sub(time.Unix(0, c.base+elapsed+c.caughtUp.Load()))
}

// Source returns the source given by [WithSource], or nil when the Clock reads the
// machine's own clocks.
func (c *Clock) Source() Source { return c.source }

// read returns the wall time and the elapsed time of one instant. The machine's
// clocks are read in one call; a pause between two calls would show as drift.
func (c *Clock) read() (wall time.Time, elapsed int64) {
	if c.source != nil {
		return c.source.Wall().Round(0), int64(c.source.Elapsed())
	}
	now := time.Now()
	return now.Round(0), int64(now.Sub(c.start))
}

// catchUp looks at the wall clock if no other reader has since the look was due, and
// moves the Clock ahead if resync says so.
func (c *Clock) catchUp(elapsed int64) {
	due := c.nextResync.Load()
	if elapsed < due || !c.nextResync.CompareAndSwap(due, elapsed+int64(resyncInterval)) {
		return
	}
	// caughtUp is read before the drift. A caller that is held up here until another
	// has caught up fails the swap; an addition would count the same drift twice.
	before := c.caughtUp.Load()
	drift := c.Drift()
	now := c.base + elapsed + before
	if drift > c.resync.threshold && drift <= c.resync.limit && int64(drift) <= latest-now {
		c.caughtUp.CompareAndSwap(before, before+int64(drift))
	}
}
