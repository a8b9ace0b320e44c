package clocktest

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"
)

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

// waiters are the waits on a Virtual, in the order in which they end, and the callers of
// BlockUntil.
type waiters struct {
	queue   []waiter
	blocked []blocked
}

// waiter is one wait that has not ended.
type waiter struct {
	deadline int64 // in true time since construction
	wake     chan<- time.Time
}

// blocked is a caller of BlockUntil, which waits until enough closes.
type blocked struct {
	n      int
	enough chan struct{}
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
// passed: in an Advance, or at once if d <= 0 or while AutoAdvance is on.
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
		v.join(w)
	}
	return c
}

// Sleep returns once d of true time has passed. Otherwise it is like After.
func (v *Virtual) Sleep(d time.Duration) { <-v.After(d) }

// Advance lets d of true time pass and returns how many waiters woke. They wake in the
// order of their deadlines; of equal deadlines the wait that began first is first. When
// a waiter wakes, the clock stands at its deadline, and the waiter receives that
// reading. Advance does not wait for a waiter to run.
//
// A d < 0 counts as 0, which wakes the waiters whose time is up. True time ends 292
// years after construction; from then on no time passes.
func (v *Virtual) Advance(d time.Duration) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.move(add(v.dials.now, int64(max(d, 0))))
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

// Waiting returns the rest of each wait, in true time and in the order in which the
// waiters wake. A wait that its caller gave up, as at the end of a context, counts until
// its deadline: the clock cannot see that the receiver has gone.
func (v *Virtual) Waiting() []time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	left := make([]time.Duration, len(v.queue))
	for i, w := range v.queue {
		left[i] = time.Duration(w.deadline - v.dials.now)
	}
	return left
}

// BlockUntil returns once at least n callers wait, as Waiting counts them. It neither
// spins nor sleeps. If ctx ends first, the error says how many wait, and wraps the
// error of ctx. An n <= 0 returns at once.
func (v *Virtual) BlockUntil(ctx context.Context, n int) error {
	v.mu.Lock()
	if len(v.queue) >= n {
		v.mu.Unlock()
		return nil
	}
	b := blocked{n, make(chan struct{})}
	v.blocked = append(v.blocked, b)
	v.mu.Unlock()
	select {
	case <-b.enough:
		return nil
	case <-ctx.Done():
	}
	// b stays until enough wait. Closing its channel then does no harm.
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Errorf("clocktest: %d wait, not %d: %w", len(v.queue), n, ctx.Err())
}

// The methods below are for callers that hold the lock.

// join adds w behind all waiters whose deadline is not later, and ends the calls of BlockUntil that
// it is enough for.
func (v *Virtual) join(w waiter) {
	i := sort.Search(len(v.queue), func(i int) bool { return v.queue[i].deadline > w.deadline })
	v.queue = slices.Insert(v.queue, i, w)
	v.blocked = slices.DeleteFunc(v.blocked, func(b blocked) bool {
		if len(v.queue) < b.n {
			return false
		}
		close(b.enough)
		return true
	})
}

// move lets true time pass up to the instant to, wakes the waiters that are due, and
// returns their number.
func (v *Virtual) move(to int64) (woken int) {
	for len(v.queue) > 0 && v.queue[0].deadline <= to {
		v.wake(v.queue[0])
		v.queue = slices.Delete(v.queue, 0, 1)
		woken++
	}
	v.dials.advance(to)
	v.publish()
	return woken
}

// wake wakes w with the clock at its deadline.
func (v *Virtual) wake(w waiter) {
	v.dials.advance(w.deadline)
	v.publish()
	w.wake <- v.shown()
}
