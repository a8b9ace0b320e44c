// Package monoclock tells the time of day from a clock that no step can reach.
//
// You need these names:
//
//   - [New]: makes a [Clock].
//   - [Clock.Now]: the time of day, which never goes back.
//   - [Interface]: any clock that a generator or a lease accepts.
//   - [Clock.Drift]: the wall clock's time minus the Clock's.
//   - [WithResync]: lets the Clock catch up with a wall clock that is ahead.
//   - [AwaitWall]: waits until the wall clock was set.
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
//   - A suspend reaches a Clock within a second after the machine wakes on Linux, where its
//     length is added, and at once on Windows. On macOS it is lost: the Clock lags by its length.
//   - A virtual machine that its hypervisor stops, or restores from a snapshot, may find
//     both clocks behind. The Clock stays behind when the wall clock is stepped ahead.
//
// [WallError] tells how far the wall clock may be off, as the kernel says, and [AwaitWall] waits until that is little:
// make the Clock then. [Clock.Drift] shows each difference between the two clocks. [WithResync] lets a Clock catch up
// with a wall clock that is ahead of it; nothing makes it go back. What each fault does to the clocks of Linux, as
// measured, is in docs/evidence.md of the repository.
//
// Do not use a Clock to learn the exact time of day, or to compare instants between
// machines. Use it where order matters more than agreement, as in the time field of an
// ID.
package monoclock

import (
	"math"
	_ "sync/atomic" // or its methods, reached through package word, are not inlined
	"time"

	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/internal/word"
)

// Source is where a [Clock] reads time from. The default is the machine's own wall and
// monotonic clocks; tests give a source in which the two move apart.
//
// A Source may also have BootTime() time.Duration, which is Elapsed with the time of suspends. A Clock
// then adds the suspends.
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

	// boot and mono differ by the time that the machine was suspended, and a constant. Both are nil where
	// no clock tells.
	boot, mono func() time.Duration
	// awake is their difference without the suspends since the Clock was made, or more. It changes only
	// when a growth is not believed; ignored counts that.
	awake, ignored word.Int64

	moved seam.Moved // see there for its invariants
}

// resync says when and how far a Clock may catch up with the wall clock.
type resync struct{ threshold, limit time.Duration }

func (r resync) on() bool { return r.limit > r.threshold }

// lookInterval is the elapsed time between two looks at the machine's clocks. A look costs a microsecond.
const lookInterval = time.Second

// longestSleep is the longest suspend that is believed at once. Beyond it, the process was more likely
// moved to a machine that has run for another time.
const longestSleep = 366 * 24 * time.Hour

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
	word.Name(&c.moved.Slept, "slept")
	word.Name(&c.moved.CaughtUp, "caughtUp")
	word.Name(&c.moved.Due, "due")
	word.Name(&c.awake, "awake")
	for _, opt := range opts {
		if opt != nil {
			opt(c)
		}
	}
	c.start = time.Now()
	wall, elapsed := c.read()
	c.base = min(max(int64(wall.Sub(time.Unix(0, 0))), 0), latest) - elapsed
	if s, ok := c.source.(interface{ BootTime() time.Duration }); ok {
		c.boot, c.mono = s.BootTime, c.source.Elapsed
	} else if c.source == nil && isMonotonic(c.start) {
		c.boot, c.mono = bootTime, monotonic
	}
	c.moved.Due.Store(math.MaxInt64)
	if c.boot != nil || c.resync.on() {
		c.moved.Due.Store(elapsed + int64(lookInterval))
	}
	if c.boot != nil {
		// After the wall clock was read, so that no suspend counts twice. A pause between two readings of
		// these clocks makes the difference too large in this order, and the first suspend too short.
		mono := c.mono()
		awake := c.boot() - mono
		mono = c.mono()
		c.awake.Store(int64(min(awake, c.boot()-mono)))
	}
	return c
}

// isMonotonic reports whether an instant of time.Now carries a monotonic reading: not in a bubble of
// testing/synctest, nor from 2157-03-16 on.
func isMonotonic(now time.Time) bool { return now != now.Round(0) }

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
	if elapsed >= c.moved.Due.Load() {
		c.look(elapsed)
	}
	return c.base + elapsed + c.moved.By()
}

// Drift returns the wall clock's time minus the Clock's: positive when the wall clock
// is ahead. Steps, slews, suspends that are not counted, and a wrong start all show here. It saturates at the
// limits of [time.Duration], 292 years.
func (c *Clock) Drift() time.Duration {
	_, drift := c.compare(c.moved.CaughtUp.Load())
	return drift
}

// compare returns the Clock's time with this much caught up, in nanoseconds since 1970, and the drift
// from it. The wall clock is read first, and suspends count as long as they can be: what passes between two
// readings, a suspend too, makes the drift too small, so that nothing is caught up that is added elsewhere.
func (c *Clock) compare(caughtUp int64) (now int64, drift time.Duration) {
	wall, elapsed := c.read()
	now = c.base + elapsed + c.countSleep() + caughtUp
	return now, wall.Sub(time.Unix(0, now))
}

// Slept returns the time of the suspends that the Clock has added since it was made, and the growth of
// the machine's suspended time that it did not believe: more than a year at once, as when CRIU restores
// the process on another host.
func (c *Clock) Slept() (counted, ignored time.Duration) {
	return time.Duration(c.moved.Slept.Load()), time.Duration(c.ignored.Load())
}

// Source returns the source given by [WithSource], or nil when the Clock reads the
// machine's own clocks.
func (c *Clock) Source() Source { return c.source }

// read returns the wall time, and the elapsed time after it. It asks time.Since, which has the
// monotonic reading of start also when time.Now has none, from 2157-03-16 on.
func (c *Clock) read() (wall time.Time, elapsed int64) {
	if c.source != nil {
		return c.source.Wall().Round(0), int64(c.source.Elapsed())
	}
	wall = time.Now().Round(0)
	return wall, int64(time.Since(c.start))
}

// look counts suspends and catches up with the wall clock, if no other reader has since the look was due.
func (c *Clock) look(elapsed int64) {
	due := c.moved.Due.Load()
	if elapsed < due || !c.moved.Due.CompareAndSwap(due, elapsed+int64(lookInterval)) {
		return
	}
	if !c.resync.on() {
		c.countSleep()
		return
	}
	// CaughtUp is read before the drift. A caller that is held up here until another
	// has caught up fails the swap; an addition would count the same drift twice.
	before := c.moved.CaughtUp.Load()
	now, drift := c.compare(before)
	if drift > c.resync.threshold && drift <= c.resync.limit && int64(drift) <= latest-now {
		c.moved.CaughtUp.CompareAndSwap(before, before+int64(drift))
	}
}

// countSleep raises Slept to the suspends since the Clock was made. It is a maximum and no sum, so that
// several callers may count the same suspend. The result is no less than Slept will be by these suspends.
func (c *Clock) countSleep() (most int64) {
	if c.boot == nil {
		return 0
	}
	awake := c.awake.Load()
	early := c.mono()
	boot := c.boot()
	grown := int64(boot-c.mono()) - awake // a pause between the two readings makes it too small, never too large
	slept := c.moved.Slept.Load()
	for ; grown > slept; slept = c.moved.Slept.Load() {
		if more := grown - slept; more > int64(longestSleep) {
			if c.awake.CompareAndSwap(awake, awake+more) { // another caller may have met it too
				c.ignored.Add(more)
			}
			return slept
		}
		if c.moved.Slept.CompareAndSwap(slept, grown) {
			break
		}
	}
	return max(slept, int64(boot-early)-awake)
}
