package clocktest

import (
	"sync"
	"sync/atomic"
	"time"
)

// faulty is the part that both clocks share: the dials, their lock, and the waiters.
// Each change of the dials publishes the readings in atomics, so a reading takes no
// lock.
type faulty struct {
	wall, mono, lost, passed atomic.Int64 // the dials' readings and true time

	onRead atomic.Pointer[func()]

	// truth returns the true time since construction if another clock keeps it. It is
	// nil if the dials keep it.
	truth func() int64

	mu    sync.Mutex // of all below
	dials dials
	waiters
}

// begin sets the wall to start and returns its reading.
func (c *faulty) begin(start time.Time) time.Time {
	c.dials.wall = int64(start.Sub(time.Unix(0, 0))) // saturates
	c.publish()
	return time.Unix(0, c.dials.wall).UTC()
}

// Step makes the wall jump by d, ahead or, if d is negative, back. The monotonic
// reading does not move. NTP does this after a large error, as does an operator who sets a
// clock by hand.
//
// A Step while the clock is frozen shows at once. The wall saturates in the years 1677
// and 2262 and stands still there.
func (c *faulty) Step(d time.Duration) {
	c.change(func() { c.dials.wall = add(c.dials.wall, int64(d)) })
}

// Slew makes the wall run at rate times true time for the next d of true time, while
// the monotonic reading keeps to true time. NTP does this after a small error: ntpd runs
// at most at 1.0005, while 0.5 here is half speed. Afterwards the wall keeps the
// difference.
//
// A Slew replaces the one before, and one of d <= 0 ends it. Its d counts on while the
// clock is frozen. A rate below 0 counts as 0, above 1000 as 1000, and NaN as 1. The
// wall is right to the nanosecond for 104 days of slewing, and to one part in 2^53
// beyond.
func (c *faulty) Slew(rate float64, d time.Duration) {
	c.change(func() { c.dials.slew(rate, int64(d)) })
}

// Freeze makes both readings stand still for the next d of true time. Then they go on
// from there, and stay behind by d. Waiters are woken by true time all the same. A
// hypervisor that does not update the clock does this.
//
// A Freeze replaces the one before. One of d <= 0 ends it now.
func (c *faulty) Freeze(d time.Duration) {
	c.change(func() { c.dials.thaw = add(c.dials.now, max(int64(d), 0)) })
}

// Coarse makes both readings advance only to multiples of granularity: the wall's
// counted from 1970, the monotonic's from zero. A clock that a timer updates does this,
// every 15.6 ms on older Windows.
//
// It never sets a reading back: a reading past the last multiple stands still until the
// next. A Step back below a multiple takes effect at once. No time is lost: the
// readings catch up when a granularity <= 0 ends it. A Coarse replaces the one before,
// and works on a frozen clock too.
func (c *faulty) Coarse(granularity time.Duration) {
	c.change(func() { c.dials.coarse(int64(granularity)) })
}

// Suspend makes the machine sleep for d: the wall and BootTime go on by d, and the monotonic
// reading does not, as on Linux. Waiters do not notice it, and still have to wait for
// the rest of their time. No true time passes, so a slew or a freeze lasts as long as
// before.
//
// A d <= 0 does nothing. The wall goes on even while it is frozen, since a machine that
// wakes takes the time from its hardware clock, and at true speed while it is slewed.
// It saturates in the year 2262.
func (c *faulty) Suspend(d time.Duration) {
	if d > 0 {
		c.change(func() {
			c.dials.runWall(int64(d))
			c.dials.lost = add(c.dials.lost, int64(d))
		})
	}
}

// LeapSecond makes the wall repeat one second: when it next reaches a whole second, it
// is set back by one. The monotonic reading does not move.
//
// The wall reaches a second by running, slewed or not, or in a Suspend. A Step passes
// over it; the leap second then comes at the next whole second. Coarse does not change
// which second is whole. A second LeapSecond before the first has come does nothing.
func (c *faulty) LeapSecond() {
	c.change(func() { c.dials.leap = true })
}

// Restart is a reboot: the monotonic reading begins again at zero, and the waiters of a [Virtual]
// are forgotten and never woken. The wall and true time go on, and the other faults stay.
// The reboot itself takes no time; call Suspend for its duration.
//
// The processes of before are gone too: make a new
// [github.com/tickflake/tickflake/monoclock.Clock] and a new generator. An old one
// would see its monotonic time go back.
func (c *faulty) Restart() {
	c.change(func() { c.dials.mono, c.dials.lost, c.waiters.queue = 0, 0, nil })
}

// Wall returns the wall reading in UTC, without a monotonic part.
func (c *faulty) Wall() time.Time {
	c.look()
	return c.shown()
}

// Now is the same as Wall, under the name that a
// [github.com/tickflake/tickflake/monoclock.Interface] has. A generator on this clock reads
// a raw wall clock.
func (c *faulty) Now() time.Time {
	c.look()
	return c.shown()
}

// Elapsed returns the monotonic reading. It begins at zero, decreases only in a
// Restart, and saturates at 292 years.
func (c *faulty) Elapsed() time.Duration {
	c.look()
	return time.Duration(c.mono.Load())
}

// BootTime returns the monotonic reading with the time of the suspends since it began, as
// CLOCK_BOOTTIME of Linux does. For a clock without, as that of macOS, wrap this one in a type that
// has Wall, Elapsed and After only.
func (c *faulty) BootTime() time.Duration {
	c.look()
	return time.Duration(add(c.lost.Load(), c.mono.Load()))
}

// Passed returns the true time since construction. It saturates at 292 years, where
// true time ends. It does not call the function of OnRead.
func (c *faulty) Passed() time.Duration {
	c.follow()
	return time.Duration(c.passed.Load())
}

// OnRead calls f before every reading by Now, Wall, Elapsed or BootTime, in the reader's
// goroutine and outside all locks. f may count, hold the reader between two readings,
// or change the clock, which the reading then shows. f must not read the clock, or it
// calls itself. A nil f ends it. A reading that has begun may still call the function
// before.
func (c *faulty) OnRead(f func()) {
	if f == nil {
		c.onRead.Store(nil)
		return
	}
	c.onRead.Store(&f)
}

// look runs before a reading.
func (c *faulty) look() {
	if f := c.onRead.Load(); f != nil {
		(*f)()
	}
	c.follow()
}

// follow brings the dials to the true time if another clock keeps it.
func (c *faulty) follow() {
	if c.truth == nil || c.truth() <= c.passed.Load() {
		return
	}
	c.change(func() {})
}

// change makes a change to the dials or the waiters at the true time.
func (c *faulty) change(do func()) {
	var now int64
	if c.truth != nil {
		now = c.truth()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.truth != nil {
		c.dials.advance(now)
	}
	do()
	c.publish()
}

// publish stores the readings for readers without the lock. The monotonic reading is stored
// before the wall's: who reads the wall first, as a Clock does, never finds it ahead by what has
// passed on both. True time is stored last, because follow goes by it.
func (c *faulty) publish() {
	wall, mono := c.dials.read()
	c.mono.Store(mono)
	c.lost.Store(c.dials.lost)
	c.wall.Store(wall)
	c.passed.Store(c.dials.now)
}

// shown is the wall reading, without a call of look.
func (c *faulty) shown() time.Time { return time.Unix(0, c.wall.Load()).UTC() }
