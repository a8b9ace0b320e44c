package clocktest

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"
)

// waiter is one wait that has not ended.
type waiter struct {
	deadline int64            // in true time since construction
	wake     chan<- time.Time // nil if another clock wakes
	stop     func()           // ends the wait unwoken, or nil
}

// queue holds the waiters in the order in which they wake, and the callers of
// BlockUntil. It holds no lock.
type queue struct {
	waiters []waiter
	blocked []blocked
	stops   []func() // of tickers, which wait without a deadline
}

// blocked is a caller of BlockUntil, which waits until enough closes.
type blocked struct {
	n      int
	enough chan struct{}
}

// join adds w behind all waiters whose deadline is not later.
func (q *queue) join(w waiter) {
	i := sort.Search(len(q.waiters), func(i int) bool { return q.waiters[i].deadline > w.deadline })
	q.waiters = slices.Insert(q.waiters, i, w)
	q.blocked = slices.DeleteFunc(q.blocked, func(b blocked) bool {
		if len(q.waiters) < b.n {
			return false
		}
		close(b.enough)
		return true
	})
}

// next removes and returns the first waiter whose deadline is not after to.
func (q *queue) next(to int64) (w waiter, ok bool) {
	if len(q.waiters) == 0 || q.waiters[0].deadline > to {
		return waiter{}, false
	}
	w = q.waiters[0]
	q.waiters = slices.Delete(q.waiters, 0, 1)
	return w, true
}

// drop removes the waiters whose deadline is not after now.
func (q *queue) drop(now int64) {
	for ok := true; ok; {
		_, ok = q.next(now)
	}
}

// clear removes all waiters, and returns the functions that stop those that another
// clock wakes.
func (q *queue) clear() (stops []func()) {
	stops = q.stops
	for _, w := range q.waiters {
		if w.stop != nil {
			stops = append(stops, w.stop)
		}
	}
	q.waiters, q.stops = nil, nil
	return stops
}

// Waiting returns the rest of each wait, in true time and in the order in which the
// waiters wake. It is empty without waiters.
//
// A wait that its caller gave up, as at the end of a context, counts until its
// deadline: its channel stays behind, and the clock cannot see that the receiver has
// gone. On a [Mock] these are the waits begun by After, Sleep, Timer and AfterFunc; a
// Timer that was stopped or reset counts until its first deadline, and Tickers do not
// count.
func (c *faulty) Waiting() []time.Duration {
	c.follow()
	c.mu.Lock()
	defer c.mu.Unlock()
	left := make([]time.Duration, len(c.queue.waiters))
	for i, w := range c.queue.waiters {
		left[i] = time.Duration(w.deadline - c.dials.now)
	}
	return left
}

// BlockUntil returns once at least n callers wait, as Waiting counts them. It neither
// spins nor sleeps. If ctx ends first, the error says how many wait, and wraps the
// error of ctx. An n <= 0 returns at once.
func (c *faulty) BlockUntil(ctx context.Context, n int) error {
	c.follow()
	c.mu.Lock()
	if len(c.queue.waiters) >= n {
		c.mu.Unlock()
		return nil
	}
	b := blocked{n, make(chan struct{})}
	c.queue.blocked = append(c.queue.blocked, b)
	c.mu.Unlock()

	select {
	case <-b.enough:
		return nil
	case <-ctx.Done():
	}
	// b stays in the queue until enough wait. Closing its channel then does no harm.
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Errorf("clocktest: %d wait, not %d: %w", len(c.queue.waiters), n, ctx.Err())
}
