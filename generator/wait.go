package generator

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/span"
)

// call is the state of one call across its waits.
type call struct {
	ctx context.Context
	n   uint64 // slots that it wants

	waited    time.Duration // in all
	ungranted time.Duration // of that, for grants
	dry       time.Duration // of that, since it first saw the present end of the grant
	end       uint64        // that end, as a slot

	began  time.Time     // when the present reservation began to wait, or zero
	before time.Duration // waited before that
	place  *place        // in the queue, or nil
	apart  bool          // waits for a slot beyond the next one, outside the queue and without the turn
	turn   bool          // holds g.turn
	slept  uint64        // the slot that it slept for with the turn, plus 1, or 0
}

// fineWait is the longest sleep on the thread. It is longer than
// the millisecond by which a runtime timer may be late, so that a wait that
// begins with a timer still ends with a sleep on the thread.
const fineWait = 1500 * time.Microsecond

// coarseWait is the longest wait without a look at the clock, which may have been
// stepped forward meanwhile.
const coarseWait = 100 * time.Millisecond

// wait waits for d or less, for slot, which is lead ahead, or until the context
// ends or the window changes. In all cases the caller looks at the
// clock and the window again. The error says that the context has ended.
//
// There are two ways to wait for the machine's time. A long wait is a timer. The
// runtime rounds timers up to the next millisecond (golang/go issue 53824), so
// the rest is a sleep on the thread, by the one caller that has the turn. When it
// wakes, it serves all calls in the queue. If the slot is not free after the sleep, because
// the clock stands still, the caller passes the turn on, so that each caller can see
// whether its wait is over.
func (c *call) wait(g *Generator, slot uint64, d, lead time.Duration, changed <-chan struct{}) error {
	c.enter(g)
	switch {
	case g.after != nil:
		c.pause(g, changed, d)
	case c.apart || d > fineWait:
		if !c.apart {
			d = max(d-fineWait, fineWait/4)
		}
		c.pause(g, changed, min(d, coarseWait))
	case c.turn && c.slept != slot+1:
		c.slept = slot + 1
		before := time.Now()
		runtime.Gosched() // lets the calls that were served run before this processor sleeps
		if d -= time.Since(before); d > 0 {
			nap(d)
		}
	case c.turn:
		c.release(g)
	default:
		select {
		case g.turn <- struct{}{}:
			c.turn = true
		case <-c.served():
		case <-c.ctx.Done():
		case <-changed:
		}
	}
	if g.after == nil {
		c.waited = c.before + time.Since(c.began)
	}
	if c.ctx.Err() != nil {
		return fmt.Errorf("context ended after %s of waiting for a slot %s ahead of the clock: %w", c.waited, span.Text(lead), drive.ContextError(c.ctx))
	}
	return nil
}

// enter notes that c waits, and puts it in the queue.
func (c *call) enter(g *Generator) {
	if c.began.IsZero() {
		c.began, c.before = time.Now(), c.waited
	}
	if c.place == nil && g.after == nil && !c.apart { // with a fake clock, each call waits by itself
		c.place = g.join(c.n)
	}
}

// served receives when c was served from the queue.
func (c *call) served() <-chan struct{} {
	if c.place == nil {
		return nil
	}
	return c.place.wake
}

// pause waits for d by the generator's clock, or until c was served, the context ends or the window
// changes. Meanwhile others have the turn: they may have less to wait for.
func (c *call) pause(g *Generator, changed <-chan struct{}, d time.Duration) {
	c.release(g)
	after := g.after
	if after == nil {
		after = time.After
	}
	begin, over := g.elapsed(), false
	select {
	case <-after(d):
		over = true
	case <-c.served():
	case <-c.ctx.Done():
	case <-changed:
	}
	switch {
	case g.after == nil:
		c.waited = c.before + time.Since(c.began)
	case over:
		c.waited += d // in the clock's own time, not the machine's
	default:
		c.waited += min(d, g.elapsed()-begin)
	}
}

// leave ends the waiting for one reservation.
func (c *call) leave(g *Generator) {
	if c.began.IsZero() {
		return
	}
	g.counters.waits.Add(1)
	g.counters.waited.Add(int64(c.waited - c.before))
	c.began = time.Time{}
	if c.place != nil {
		g.quit(c.place)
		c.place = nil
	}
	c.release(g)
}

// release passes the turn to the next caller.
func (c *call) release(g *Generator) {
	if c.turn {
		c.turn, c.slept = false, 0
		<-g.turn
	}
}

// ended returns an error if ctx had ended before the call.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("context had ended before an ID was issued: %w", drive.ContextError(ctx))
	}
	return nil
}
