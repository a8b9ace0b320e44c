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
	wake     chan<- time.Time // or nil, where another clock wakes
	stop     func()           // ends the wait unwoken, or nil
}

// queue is those who wait, in the order in which they are woken, and those who
// wait for them to. It holds no lock.
type queue struct {
	waiters []waiter
	blocked []blocked
	stops   []func() // of tickers, which wait without a deadline
}

// blocked is a caller of BlockUntil, until enough closes.
type blocked struct {
	n      int
	enough chan struct{}
}

// join adds w behind everyone whose deadline is not later.
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

// drop removes everyone whose deadline is not after now.
func (q *queue) drop(now int64) {
	for ok := true; ok; {
		_, ok = q.next(now)
	}
}

// clear removes everyone, and returns how to stop those that another clock wakes.
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

// Waiting returns how much longer each waiter has to wait, in true time and in the
// order in which they are woken. It is empty if nobody waits.
//
// A caller that gave up its wait, as at the end of a context, counts until its
// deadline: it left its channel behind, and the clock cannot see that nobody
// listens. On a [Mock] these are the waits begun by After, Sleep, Timer and
// AfterFunc; a Timer that was stopped or reset counts until its first deadline,
// and Tickers do not count.
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

// BlockUntil returns once at least n wait, as Waiting counts them. It
// neither spins nor sleeps. If ctx ends first, its error says how many wait, and
// wraps that of ctx. An n <= 0 is reached at once.
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
	// b stays behind until enough wait, when nobody hears it. That does no harm.
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Errorf("clocktest: %d wait, not %d: %w", len(c.queue.waiters), n, ctx.Err())
}
