package generator

import (
	"math"
	"time"

	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/strategies"
)

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

// reserve reserves up to n slots of one tick by take, or else by acquire. If this memory is a copy, it drops
// them, since its original issues them, and tries again.
func (g *Generator) reserve(c *call, now int64, n uint64) (span *window.Span, slot, end uint64, err error) {
	for {
		span = g.window.Span()
		var ok bool
		if slot, end, ok = g.take(span, now, g.queue.gate.Load(), n); !ok {
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

// acquire reserves up to n slots of one tick as take does, but carries out the
// strategy's decisions for as long as take fails. Calls that wait are served in the order
// of the queue.
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
		if c.place == nil {
			g.reopen(now)
		}
		if c.place != nil || g.queue.gate.Load() == 0 {
			if p := c.place; g.serve(p) {
				return p.span, p.slot, p.end, nil
			}
		}
		if c.place == nil {
			if slot, end, ok := g.take(front.Span, now, g.queue.gate.Load(), n); ok {
				return front.Span, slot, end, nil
			}
		}
		tick, next := g.tick(now), front.Slot>>g.seqBits
		if max(tick, next) >= front.Limit>>g.seqBits {
			if err := c.awaitGrant(g, front, changed); err != nil {
				return nil, 0, 0, err
			}
			continue
		}
		if now >= 0 && next <= tick+g.allowed {
			continue // another caller got ahead
		}
		s := strategies.Situation{Cause: g.cause(front, now), Lead: g.leadOf(next, now), Waited: c.waited - c.ungranted}
		g.counters.lead(s.Lead)
		switch d := g.strategy.Decide(s); d.Action {
		case strategies.ActionBorrow:
			if end, ok := front.Span.TakeAt(front.Slot, n); ok {
				g.counters.borrow(next)
				return front.Span, front.Slot, end, nil
			}
		case strategies.ActionWait:
			if err := c.wait(g, front.Slot, waitOf(d, s.Lead), s.Lead, changed); err != nil {
				return nil, 0, 0, err
			}
		default:
			g.counters.rejections.Add(1)
			return nil, 0, 0, &LeadError{Cause: s.Cause, Lead: s.Lead, Limit: d.Limit, Waited: s.Waited}
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

// noteBorrow notes that a slot of tick was taken by a reading of now. It writes
// only new values: a borrow is on the fast path, and another write to a shared
// word for every ID would double its cost. Before it writes, it reads the clock
// again, because now is old if the caller was suspended.
func (g *Generator) noteBorrow(tick uint64, now int64) {
	if tick < g.counters.borrowedEnd.Load() && int64(g.leadOf(tick, now)) <= g.counters.maxLead.Load() {
		return
	}
	if lead := g.leadOf(tick, g.now()); lead > 0 {
		g.counters.borrow(tick)
		g.counters.lead(lead)
	}
}

// nanoClock is how the generator reads its clock: in nanoseconds since 1970,
// from 0 on.
type nanoClock interface{ UnixNano() int64 }

// wallNanos reads any clock.
type wallNanos struct{ monoclock.Interface }

// UnixNano counts a time before 1970 as 1970, and saturates in 2262.
func (c wallNanos) UnixNano() int64 {
	return max(int64(c.Now().Sub(time.Unix(0, 0))), 0)
}

// nanosOf reads a monoclock without a time.Time, which saves about 10 ns.
func nanosOf(clock monoclock.Interface) nanoClock {
	if m, ok := clock.(*monoclock.Clock); ok {
		return m
	}
	return wallNanos{clock}
}

// now is the clock's reading in nanoseconds since the epoch, below zero before
// it. Next and streams read a steady clock without this call.
func (g *Generator) now() int64 { return g.nanos.UnixNano() - g.epoch }

// tick is the tick that now lies in, and 0 before the epoch.
func (g *Generator) tick(now int64) uint64 { return uint64(max(now, 0)) / uint64(g.tickNs) }

// leadOf is the time from now to the start of tick. Each lies within 292 years of
// the epoch, perhaps on different sides of it, so the result saturates.
func (g *Generator) leadOf(tick uint64, now int64) time.Duration {
	start := int64(tick) * g.tickNs
	if now < start-math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(start - now)
}
