package generator

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// This file is a call from its beginning to its end, for when [Generator.quick] has no slot: the clock is read and a
// slot is taken (reserve, take); else the cause is found, the strategy decides, and the decision is carried out
// (acquire); and what there is to wait for is waited for (wait, awaitGrant).

// call is the state of one call across its waits.
type call struct {
	ctx   context.Context
	n     uint64       // slots that it wants
	seen  snowflake.ID // the ID is above it, if after is set
	after bool

	waited    time.Duration // in all
	ungranted time.Duration // of that, for grants
	dry       time.Duration // of that, since it first saw the present end of the grant
	end       uint64        // that end, as a slot

	waits  bool          // the present reservation has begun to wait
	began  time.Duration // when it did, in elapsed time: time.Now has no monotonic reading from 2157 on
	before time.Duration // waited before that
	place  *place        // in the queue, or nil
	apart  bool          // wants a slot beyond the next one: it waits outside the queue, and without the turn
	turn   bool          // holds g.turn
	slept  uint64        // the slot that it slept for with the turn, plus 1, or 0
}

// reserve reserves up to n slots of one tick by take, or else by acquire. If this memory is a copy, it drops
// them, since its original issues them, and tries again.
func (g *Generator) reserve(c *call, now int64, n uint64) (span *window.Span, slot, end uint64, err error) {
	for {
		span = g.window.Span()
		ok := !c.after || g.above(c.seen, span.Node()) <= max(span.Free(), g.tick(now)<<g.seqBits)
		if ok {
			slot, end, ok = g.take(span, now, g.queue.gate.Load(), n)
		}
		if !ok {
			if span, slot, end, err = g.acquire(c, n); err != nil {
				return nil, 0, 0, err
			}
		}
		if span.Original() {
			return span, slot, end, nil
		}
		span.Abandon()
		now = g.now()
	}
}

// take reserves up to n slots of one tick, without waiting, as [window.Span.Take]
// does: those from slot up to, but not including, end. It fails when the next slot is
// further ahead of now than the strategy always borrows, when it is not granted, when the
// window is sealed or the time field is used up, and when now is not before gate, which is
// the queue's gate, or the lifetime for the first call in the queue. acquire then finds the
// reason, and acts on it.
func (g *Generator) take(span *window.Span, now int64, gate, n uint64) (slot, end uint64, ok bool) {
	if uint64(now) >= gate { // also when now lies before the epoch
		return 0, 0, false
	}
	tick := g.tick(now)
	slot, end, ok = span.Take(tick, g.allowed, g.below, n)
	if slot>>(g.seqBits&63) > tick {
		g.noteBorrow(slot>>(g.seqBits&63), now)
	}
	return slot, end, ok
}

// acquire reserves up to n slots of one tick as take does, but carries out the
// strategy's decisions for as long as take fails. Calls that wait are served in the order
// of the queue, but for those that wait for a slot beyond the next one, above an ID that they have seen.
func (g *Generator) acquire(c *call, n uint64) (span *window.Span, slot, end uint64, err error) {
	c.n = n
	defer c.leave(g)
	for {
		// Each event that is awaited below closes changed, so changed is loaded first.
		changed := g.window.Changed()
		// The clock is read after the front, so that a slot is not ahead of it only
		// because another caller, who took it, read the clock later.
		front := g.window.Front()
		now := g.now()
		if err := g.over(front, now); err != nil {
			return nil, 0, 0, err
		}
		g.reopen(now)
		next, tick := front.Slot, g.tick(now)
		if c.after {
			above := g.above(c.seen, front.Node)
			if above >= g.end {
				return nil, 0, 0, fmt.Errorf("%w: the layout has no ID above the seen ID %d: check where that comes from", lease.ErrEndOfTime, c.seen)
			}
			if c.apart = above > max(next, tick<<g.seqBits); c.apart {
				next = above
				if c.place != nil {
					c.leave(g) // the node number was another one when it joined the queue
				}
			}
		}
		switch open := g.queue.gate.Load() == 0; {
		case c.apart:
			if open {
				g.serve(nil) // these would be served before a slot beyond the next one is free
			}
		case c.place != nil || open:
			if p := c.place; g.serve(p) {
				if span, slot, end := p.span, p.slot, p.end; !c.after || g.id(slot, span) > c.seen {
					return span, slot, end, nil
				}
				c.leave(g) // the node number became a smaller one meanwhile; the slot is dropped
				continue
			}
		}
		if c.place == nil && !c.apart {
			if slot, end, ok := g.take(front.Span, now, g.queue.gate.Load(), n); ok {
				return front.Span, slot, end, nil
			}
		}
		free := now >= 0 && next>>g.seqBits <= tick+g.allowed
		granted := max(tick, next>>g.seqBits) < front.Limit>>g.seqBits
		switch {
		case c.apart: // a call that waits for the clock needs no grant yet
		case !granted:
			if err := c.awaitGrant(g, front, next, changed); err != nil {
				return nil, 0, 0, err
			}
			continue
		case free:
			continue // another caller got ahead
		}
		d, lead := strategies.Decision{Action: strategies.ActionBorrow}, g.leadOf(next>>g.seqBits, now)
		s := strategies.Situation{Cause: strategies.Behind, Lead: lead, Waited: c.waited - c.ungranted}
		if !c.apart {
			s.Cause = g.cause(front, now)
			g.counters.lead(lead)
		}
		if !free {
			d = g.strategy.Decide(s)
		}
		switch {
		case d.Action == strategies.ActionBorrow && granted:
			if end, ok := front.Span.TakeAt(front.Slot, next, n); ok {
				g.noteBorrow(next>>g.seqBits, now)
				return front.Span, next, end, nil
			}
		case d.Action == strategies.ActionBorrow:
			err = c.awaitGrant(g, front, next, changed)
		case d.Action == strategies.ActionWait:
			err = c.wait(g, next, waitOf(d, lead), lead, changed)
		default:
			g.counters.rejections.Add(1)
			rejected := &LeadError{Cause: s.Cause, Lead: lead, Limit: d.Limit, Waited: s.Waited}
			if c.apart {
				rejected.Seen = c.seen
			}
			err = rejected
		}
		if err != nil {
			return nil, 0, 0, err
		}
	}
}

// over returns the error of a generator that issues no ID any more, or nil.
func (g *Generator) over(front window.Front, now int64) error {
	if front.Sealed {
		return ErrClosed
	}
	if front.Slot >= g.end || now >= int64(g.lifetime) {
		return endOfTime(g.layout.Epoch.Add(time.Duration(g.lifetime)).UTC())
	}
	return nil
}

// cause is why the next slot lies ahead of now.
func (g *Generator) cause(front window.Front, now int64) strategies.Cause {
	if now >= 0 && !front.Fresh && front.Last == g.tick(now) {
		return strategies.Exhausted
	}
	return strategies.Behind
}

// waitOf is how long d waits for a slot that is lead ahead.
func waitOf(d strategies.Decision, lead time.Duration) time.Duration {
	if d.Wait <= 0 {
		return lead
	}
	return d.Wait
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
		before := g.elapsed()
		runtime.Gosched() // lets the calls that were served run before this processor sleeps
		if d -= g.elapsed() - before; d > 0 {
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
		c.waited = c.before + g.elapsed() - c.began
	}
	if c.ctx.Err() != nil {
		return fmt.Errorf("context ended after %s of waiting for a slot %s ahead of the clock: %w", c.waited, span.Text(lead), pause.Ended(c.ctx))
	}
	return nil
}

// enter notes that c waits, and puts it in the queue.
func (c *call) enter(g *Generator) {
	if !c.waits {
		c.waits, c.began, c.before = true, g.elapsed(), c.waited
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
		c.waited = c.before + g.elapsed() - c.began
	case over:
		c.waited += d // in the clock's own time, not the machine's
	default:
		c.waited += min(d, g.elapsed()-begin)
	}
}

// leave ends the waiting for one reservation.
func (c *call) leave(g *Generator) {
	if !c.waits {
		return
	}
	g.counters.waits.Add(1)
	g.counters.waited.Add(int64(c.waited - c.before))
	c.waits = false
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

// awaitGrant waits for a change of the window, in which no slot from front on is
// granted. The caller looks at the window again after it. The patience is the longer wait of
// the strategy: newGenerator sets it. If the grant has another end than before, there was a
// grant that other calls used up, and the patience begins anew.
func (c *call) awaitGrant(g *Generator, front window.Front, next uint64, changed <-chan struct{}) error {
	if c.apart { // the keeper cannot see it from the clock or the word
		tick := next >> g.seqBits
		g.window.Want(tick)
		defer func() {
			if c.waits || g.window.Err() != nil { // else the next extension is for it: this call does not wait
				g.window.Unwant(tick)
			}
		}()
	}
	g.window.Ask() // no Take did if the clock is behind
	patience := g.patience
	if _, ok := c.ctx.Deadline(); ok {
		patience = math.MaxInt64
	}
	if end := front.End(); end != c.end {
		c.end, c.dry = end, 0
	}
	if c.dry >= patience || stores.KindOf(g.window.Err()) == stores.Refused {
		return c.notGranted(g, front, nil)
	}
	c.enter(g)
	before := c.waited
	c.pause(g, changed, min(patience-c.dry, coarseWait))
	c.ungranted += c.waited - before
	c.dry += c.waited - before
	if c.ctx.Err() != nil {
		return c.notGranted(g, front, pause.Ended(c.ctx))
	}
	return nil
}

func (c *call) notGranted(g *Generator, front window.Front, ended error) error {
	limit := front.End() >> g.seqBits
	return &GrantError{
		Node: front.Node, Limit: g.layout.Epoch.Add(time.Duration(limit) * g.layout.Tick).UTC(), Past: -g.leadOf(limit, g.now()),
		Waited: c.waited, Err: g.window.Err(), Context: ended,
	}
}

// checkContext returns an error if ctx had ended before the call.
func checkContext(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("context had ended before an ID was issued: %w", pause.Ended(ctx))
	}
	return nil
}
