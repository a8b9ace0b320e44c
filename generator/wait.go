package generator

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/monoclock"
)

// call is what one call carries from wait to wait.
type call struct {
	ctx    context.Context
	waited time.Duration // in all

	began  time.Time     // when the present reservation began to wait, or zero
	before time.Duration // waited before that
	turn   bool          // holds g.turn
}

// fineWait is the longest wait that is slept on the thread. It is longer than
// the millisecond by which a runtime timer may be late, so that a wait which
// begins on a timer still ends on the thread.
const fineWait = 1500 * time.Microsecond

// wait waits for d or less, for a slot that is lead ahead, or until the context
// ends or the generator is closed. Whatever the outcome, the caller looks at the
// clock and the generator again. The error is that the context has ended.
//
// The machine's own time is waited for in two ways. A long wait is a timer. The
// runtime rounds timers up to the next millisecond (golang/go issue 53824), so
// the last stretch is slept on the thread, by one caller at a time: the others
// queue for their turn, and find the tick begun when it comes.
func (c *call) wait(g *Generator, d, lead time.Duration) error {
	if c.began.IsZero() {
		c.began, c.before = time.Now(), c.waited
	}
	var over <-chan time.Time
	switch {
	case g.after != nil:
		over = g.after(d)
	case d > fineWait:
		timer := time.NewTimer(d - fineWait)
		defer timer.Stop()
		over = timer.C
	case c.turn:
		nap(d)
	default:
		select {
		case g.turn <- struct{}{}:
			c.turn = true
		case <-c.ctx.Done():
		case <-g.done:
		}
	}
	if over != nil {
		select {
		case <-over:
		case <-c.ctx.Done():
		case <-g.done:
		}
	}
	if g.after != nil {
		c.waited += d // in the clock's own time, whatever the machine's says
	} else {
		c.waited = c.before + time.Since(c.began)
	}
	if err := c.ctx.Err(); err != nil {
		return &ContextError{Waited: c.waited, Lead: lead, Err: err, Cause: context.Cause(c.ctx)}
	}
	return nil
}

// leave ends the waiting for one reservation.
func (c *call) leave(g *Generator) {
	if c.began.IsZero() {
		return
	}
	g.counters.waits.Add(1)
	g.counters.waited.Add(int64(c.waited - c.before))
	c.began = time.Time{}
	if c.turn {
		c.turn = false
		<-g.turn
	}
}

// ended returns an error if ctx ended before a call began, or is nil.
func ended(ctx context.Context) error {
	if ctx == nil {
		return &ConfigError{Option: "context", Err: fmt.Errorf("context %w: give context.Background(), or call the method without a context", errNil)}
	}
	if err := ctx.Err(); err != nil {
		return &ContextError{Err: err, Cause: context.Cause(ctx)}
	}
	return nil
}

// afterOf returns the clock's own way to wait, or nil where waiting in the
// machine's time is right: for a clock that reads it, and for one that gives
// no other way.
func afterOf(clock Clock) func(time.Duration) <-chan time.Time {
	if m, ok := clock.(*monoclock.Clock); ok {
		if m.Source() == nil {
			return nil
		}
		return m.Source().After
	}
	if a, ok := clock.(interface {
		After(time.Duration) <-chan time.Time
	}); ok {
		return a.After
	}
	return nil
}
