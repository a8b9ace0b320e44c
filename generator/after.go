package generator

import (
	"context"
	"fmt"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// NextAfter issues one ID that is larger than seen, an ID of the same layout from whatever
// machine, or gives up when ctx ends. So a reply has a larger ID than the message that it answers,
// although the clocks of their machines disagree. In all else it is [Generator.NextContext].
//
// If the IDs above seen begin ahead of the clock, the strategy decides as for a clock that is
// behind:
//
//   - A call that waits for seen delays no call of Next: it stands outside the queue, and takes its
//     slot when the clock reaches it, up to about a millisecond late.
//   - A call that borrows moves the generator ahead to seen, and later calls find it there. Beyond the
//     lease's grant it asks the keeper for one that reaches seen, until the call ends.
//   - Else the error is a [*LeadError] that names seen and matches [ErrBehind].
//
// So a wrong seen moves the generator no further than the strategy borrows; with a strategy that
// borrows without bound, call NextAfter only with IDs that you trust. Below seen, free slots of its tick are
// dropped.
//
// The other errors are those of NextContext, one that wraps [snowflake.ErrRange] if seen is not an
// ID of the layout, and one that wraps [lease.ErrEndOfTime] if the layout has none above it.
// After those two, a call with another seen may succeed.
func (g *Generator) NextAfter(ctx context.Context, seen snowflake.ID) (snowflake.ID, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	if uint64(seen)>>(g.layout.TimeBits+g.layout.NodeBits+g.layout.SequenceBits) != 0 { // also if it is negative
		_, err := g.layout.Decode(seen)
		return 0, err
	}
	span, now := g.window.Span(), g.now()
	if g.above(seen, span.Node()) <= max(span.Free(), g.tick(now)<<g.seqBits) {
		if slot, _, ok := g.take(span, now, g.queue.gate.Load(), 1); ok && span.Original() {
			return g.id(slot, span), nil
		}
	}
	return g.acquireAfter(&call{ctx: ctx}, seen)
}

// above is the first slot of node whose ID is larger than seen.
func (g *Generator) above(seen snowflake.ID, node int64) uint64 {
	id, nodeBits := int64(seen), g.layout.NodeBits
	if g.layout.Order == snowflake.TimeSequenceNode {
		slot := uint64(id >> nodeBits)
		if id&(1<<nodeBits-1) >= node {
			slot++
		}
		return slot
	}
	// From 0, if the node number of seen is smaller, to the whole tick, if it is larger.
	sequence := id&(1<<(nodeBits+int(g.seqBits))-1) + 1 - node<<g.seqBits
	return uint64(id>>(nodeBits+int(g.seqBits))<<g.seqBits + min(max(sequence, 0), 1<<g.seqBits))
}

// acquireAfter issues an ID above seen in all cases.
func (g *Generator) acquireAfter(c *call, seen snowflake.ID) (snowflake.ID, error) {
	defer c.leave(g)
	for {
		// In the order of acquire, for its reasons.
		changed := g.window.Changed()
		front := g.window.Front()
		now := g.now()
		if err := g.over(front, now); err != nil {
			return 0, err
		}
		floor := g.above(seen, front.Node)
		if floor >= g.end {
			return 0, fmt.Errorf("%w: the layout has no ID above the seen ID %d: check where that comes from", lease.ErrEndOfTime, seen)
		}
		tick, next := g.tick(now), floor>>g.seqBits
		if floor <= max(front.Slot, tick<<g.seqBits) {
			c.apart = false
			span, slot, _, err := g.acquire(c, 1)
			if err != nil {
				return 0, err
			}
			if id := g.id(slot, span); id > seen {
				if span.Original() {
					return id, nil
				}
				span.Abandon()
			}
			continue // the node number has become a smaller one, or this memory is a copy; the slot is dropped
		}
		c.apart = true
		// The slot lies beyond the next one, so while calls are in the queue it is not free: they
		// would be served first.
		if g.queue.gate.Load() == 0 {
			g.serve(nil)
		}
		decision, lead := strategies.Decision{Action: strategies.ActionBorrow}, g.leadOf(next, now)
		if now < 0 || next > tick+g.allowed {
			decision = g.strategy.Decide(strategies.Situation{Cause: strategies.Behind, Lead: lead, Waited: c.waited - c.ungranted})
		}
		switch decision.Action {
		case strategies.ActionBorrow:
			if max(tick, next) >= front.Limit>>g.seqBits {
				g.window.Want(next)
				err := c.awaitGrant(g, front, changed)
				if !c.began.IsZero() || g.window.Err() != nil { // else the next extension is for it: this call does not wait
					g.window.Unwant(next)
				}
				if err != nil {
					return 0, err
				}
				continue
			}
			if front.Span.TakeOver(front.Slot, floor) {
				if !front.Span.Original() {
					front.Span.Abandon()
					continue
				}
				g.noteBorrow(next, now)
				return g.id(floor, front.Span), nil
			}
		case strategies.ActionWait:
			if err := c.wait(g, floor, waitOf(decision, lead), lead, changed); err != nil {
				return 0, err
			}
		default:
			g.counters.rejections.Add(1)
			return 0, &LeadError{Cause: strategies.Behind, Lead: lead, Limit: decision.Limit, Waited: c.waited - c.ungranted, Seen: seen}
		}
	}
}
