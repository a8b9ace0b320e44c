package clocktest

import (
	"sync"
	"sync/atomic"
	"time"
)

// faulty is what both clocks are made of: the dials, a lock for them, and those
// who wait. A reading costs as good as nothing, because whoever moves the dials
// leaves the readings behind.
type faulty struct {
	wall, mono, passed atomic.Int64 // the dials' readings and true time

	onRead atomic.Pointer[func()]

	// truth returns the true time since construction, where another clock keeps
	// it. It is nil where the dials do.
	truth func() int64

	mu    sync.Mutex // of all below
	dials dials
	queue queue
}

// begin sets the wall to start, and returns what it then shows.
func (c *faulty) begin(start time.Time) time.Time {
	c.dials.wall = int64(start.Sub(time.Unix(0, 0))) // saturates
	c.publish()
	return time.Unix(0, c.dials.wall).UTC()
}

// Step makes the wall jump by d, ahead or, if d is negative, back. The monotonic
// reading does not move. It is what NTP does with a large error, and an operator
// with a clock set by hand.
//
// A Step while the clock is frozen shows at once. The wall saturates in the years
// 1677 and 2262; stepped beyond, it stands there.
func (c *faulty) Step(d time.Duration) {
	c.change(func() { c.dials.step(int64(d)) })
}

// Slew makes the wall run at rate times true time for the next d of true time,
// while the monotonic reading keeps to true time. It is what NTP does with a
// small error, only stronger: 0.5 is half speed, 1.0005 the fastest of ntpd.
// Afterwards the wall keeps what it has gained or lost.
//
// A Slew replaces the one before. One of d <= 0 ends it. Its d counts on while the
// clock is frozen. A rate below 0 counts as 0, above 1000 as 1000, and NaN as 1.
// The wall is right to the nanosecond for 104 days of slewing, and to one part in
// 2^53 beyond.
func (c *faulty) Slew(rate float64, d time.Duration) {
	c.change(func() { c.dials.slew(rate, int64(d)) })
}

// Freeze makes both readings stand still for the next d of true time. Then they
// go on from where they stood, and stay behind by d. Whoever waits is woken by
// true time all the same. It is a clock that a hypervisor does not update.
//
// A Freeze replaces the one before. One of d <= 0 thaws the clock now.
func (c *faulty) Freeze(d time.Duration) {
	c.change(func() { c.dials.freeze(int64(d)) })
}

// Coarse makes both readings advance only to multiples of granularity: the wall's
// counted from 1970, the monotonic's from zero. It is a clock that is updated by
// a timer, such as every 15.6 ms on older Windows.
//
// It never sets a reading back: one that is past the last multiple stands until
// the next. A multiple that a Step back takes away is gone at once. No time is
// lost; the readings catch up when Coarse is ended, by a granularity <= 0. A Coarse
// replaces the one before, and works on a frozen clock too.
func (c *faulty) Coarse(granularity time.Duration) {
	c.change(func() { c.dials.coarse(int64(granularity)) })
}

// Suspend makes the machine sleep for d: the wall goes on by d, and the monotonic
// reading does not, as on Linux. Whoever waits does not notice either, and
// afterwards still has to wait for what was left. No true time passes, so a slew
// or a freeze lasts as long as it would have.
//
// A d <= 0 does nothing. The wall goes on even while it is frozen, since a machine
// that wakes takes the time from its hardware clock, and at true speed while it is
// slewed. It saturates in the year 2262.
func (c *faulty) Suspend(d time.Duration) {
	c.change(func() { c.dials.suspend(int64(d)) })
}

// LeapSecond makes the wall repeat one second: when it next reaches a whole
// second, it is set back by one. The monotonic reading does not move.
//
// The wall reaches a second by running, slewed or not, or in a Suspend. A Step
// leaps over it, and the leap second then comes at the next one. The second is
// whole by the clock itself, whatever Coarse makes of its reading. A second
// LeapSecond before the first has come does nothing.
func (c *faulty) LeapSecond() {
	c.change(func() { c.dials.leap = true })
}

// Restart is a reboot: the monotonic reading begins again at zero, and whoever
// waits is forgotten and never woken. The wall goes on, and true time with it. The
// other faults stay as they are. The reboot itself takes no time; Suspend for as
// long as it should.
//
// What ran before is gone too: make a new [github.com/tickflake/tickflake/monoclock.Clock] and
// a new generator. An old one would see its monotonic time go back.
//
// On a [Mock] it stops every Timer, Ticker and AfterFunc; a Reset would start them
// again. Contexts made by WithTimeout and WithDeadline end nevertheless.
func (c *faulty) Restart() {
	var stops []func()
	c.change(func() {
		c.dials.restart()
		stops = c.queue.clear()
	})
	for _, stop := range stops {
		stop() // takes the other clock's lock
	}
}

// Wall returns the wall reading in UTC, without a monotonic part.
func (c *faulty) Wall() time.Time {
	c.look()
	return c.shown()
}

// Now is the same as Wall, under the name that a
// [github.com/tickflake/tickflake/generator.Clock] has: a generator on this clock reads
// a raw wall clock.
func (c *faulty) Now() time.Time {
	c.look()
	return c.shown()
}

// Elapsed returns the monotonic reading. It begins at zero, never decreases but in
// a Restart, and saturates at 292 years.
func (c *faulty) Elapsed() time.Duration {
	c.look()
	return time.Duration(c.mono.Load())
}

// Passed returns the true time since construction, which is neither of the
// readings. It saturates at 292 years, where true time ends. It does not call
// what OnRead gave.
func (c *faulty) Passed() time.Duration {
	c.follow()
	return time.Duration(c.passed.Load())
}

// OnRead has f called before every reading by Now, Wall or Elapsed, in the reader's
// goroutine and outside all locks. It may count, hold the reader up between two
// readings, or change the clock, which the reading then shows. It must not read
// the clock, or it calls itself. A nil f ends it. Readers that have begun may still
// call the one before.
func (c *faulty) OnRead(f func()) {
	if f == nil {
		c.onRead.Store(nil)
		return
	}
	c.onRead.Store(&f)
}

// look is what comes before a reading.
func (c *faulty) look() {
	if f := c.onRead.Load(); f != nil {
		(*f)()
	}
	c.follow()
}

// follow brings the dials to the true time, where another clock keeps it.
func (c *faulty) follow() {
	if c.truth == nil || c.truth() <= c.passed.Load() {
		return
	}
	c.change(func() {})
}

// change makes a change to the dials, or to who waits, at the true time.
func (c *faulty) change(do func()) {
	var now int64
	if c.truth != nil {
		now = c.truth()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.truth != nil {
		c.dials.advance(now)
		c.queue.drop(c.dials.now) // the other clock has woken these
	}
	do()
	c.publish()
}

// publish leaves the readings where they can be read without the lock. True time
// is the last of them, for follow goes by it.
func (c *faulty) publish() {
	wall, mono := c.dials.read()
	c.wall.Store(wall)
	c.mono.Store(mono)
	c.passed.Store(c.dials.now)
}

// shown is the wall reading, without a look.
func (c *faulty) shown() time.Time { return time.Unix(0, c.wall.Load()).UTC() }
