package clocktest

import "time"

// Virtual is a clock whose true time passes only when the test says so, and in no real
// time. Take it for everything but timers and tickers. Make one with [NewVirtual]; the
// zero Virtual stands at the year 1970.
//
// It serves as the clock of a generator, which then reads a raw wall clock, and as the
// source of a [github.com/tickflake/tickflake/monoclock.Clock].
//
// A Virtual is safe for use by several goroutines at once. A reading takes a few
// nanoseconds and allocates nothing.
type Virtual struct {
	faulty
	auto bool // guarded by mu
}

// NewVirtual returns a Virtual whose wall stands at start, with nothing wrong. A
// start before 1677-09-21 or after 2262-04-11 counts as that day, since the wall
// is 64 bits of nanoseconds.
func NewVirtual(start time.Time) *Virtual {
	v := &Virtual{}
	v.begin(start)
	return v
}

// After returns a channel that receives the wall reading once d of true time has
// passed: in an Advance or WakeNext, or at once if d <= 0 or while AutoAdvance is on.
// The channel is buffered, so a receiver that has gone does not block the clock.
func (v *Virtual) After(d time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	v.mu.Lock()
	defer v.mu.Unlock()
	w := waiter{deadline: add(v.dials.now, int64(max(d, 0))), wake: c}
	switch {
	case d <= 0:
		v.wake(w)
	case v.auto:
		v.move(w.deadline)
		v.wake(w)
	default:
		v.queue.join(w)
	}
	return c
}

// Sleep returns once d of true time has passed. Otherwise it is like After.
func (v *Virtual) Sleep(d time.Duration) { <-v.After(d) }

// Advance lets d of true time pass and returns how many waiters woke. They wake in the
// order of their deadlines; of equal deadlines the wait that began first is first. When
// a waiter wakes, the clock stands at its deadline, and the waiter receives that
// reading. Advance does not wait for a waiter to run: to let each run at its own time,
// call WakeNext in turn.
//
// A d < 0 counts as 0, which wakes the waiters whose time is up. True time ends 292
// years after construction; from then on no time passes.
func (v *Virtual) Advance(d time.Duration) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.move(add(v.dials.now, int64(max(d, 0))))
}

// WakeNext lets true time pass up to the earliest deadline, and wakes exactly one
// waiter, of several the one that began first. It returns how much time passed, which
// is 0 for the others with the same deadline, or false without waiters.
func (v *Virtual) WakeNext() (time.Duration, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	began := v.dials.now
	if len(v.queue.waiters) == 0 {
		return 0, false
	}
	w, _ := v.queue.next(v.queue.waiters[0].deadline)
	v.wake(w)
	return time.Duration(w.deadline - began), true
}

// AutoAdvance, while on, lets a caller that waits move true time itself, by its own
// wait: After returns a channel that has already received, and Sleep returns at once.
// Earlier waiters that are due on the way are woken. One blocking generator then runs
// at full speed without a second goroutine; with several callers, each moves the time
// of the others.
func (v *Virtual) AutoAdvance(on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.auto = on
}

// move lets true time pass up to the instant to, wakes the waiters that are due, and
// returns their number. The caller holds the lock.
func (v *Virtual) move(to int64) (woken int) {
	for {
		w, ok := v.queue.next(to)
		if !ok {
			break
		}
		v.wake(w)
		woken++
	}
	v.dials.advance(to)
	v.publish()
	return woken
}

// wake wakes w with the clock at its deadline. The caller holds the lock.
func (v *Virtual) wake(w waiter) {
	v.dials.advance(w.deadline)
	v.publish()
	w.wake <- v.shown()
}
