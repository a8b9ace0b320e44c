package generator

import (
	"context"

	"github.com/tickflake/tickflake/snowflake"
)

// NextAfter issues one ID that is larger than seen, an ID of the same layout from whatever machine, or gives up
// when ctx ends. So a reply has a larger ID than the message that it answers, although the clocks of their
// machines disagree. In all else it is [Generator.NextContext].
//
// If the IDs above seen begin ahead of the clock, the strategy decides as for a clock that is behind:
//
//   - If it waits, the call delays no call of Next: it stands outside the queue, and takes its slot when the
//     clock reaches it, up to about a millisecond late.
//   - If it borrows, the call moves the generator ahead to seen, and later calls find it there. If seen lies
//     beyond the grant, the call asks the keeper for a grant that reaches seen, until the call ends.
//   - Else the error is a [*LeadError] that names seen and matches [ErrBehind].
//
// So a wrong seen moves the generator no further than the strategy borrows. With a strategy that borrows
// without bound, call NextAfter only with IDs that you trust. Free slots of seen's tick that lie below seen are
// dropped.
//
// The other errors are those of NextContext, one that wraps [snowflake.ErrRange] if seen is not an ID of the
// layout, and one that wraps [lease.ErrEndOfTime] if the layout has none above it. After those two, a call with
// another seen may succeed.
func (g *Generator) NextAfter(ctx context.Context, seen snowflake.ID) (snowflake.ID, error) {
	if err := checkContext(ctx); err != nil {
		return 0, err
	}
	if uint64(seen)>>(g.layout.TimeBits+g.layout.NodeBits+g.layout.SequenceBits) != 0 { // also if it is negative
		_, err := g.layout.Decode(seen)
		return 0, err
	}
	span, slot, _, err := g.reserve(&call{ctx: ctx, seen: seen, after: true}, g.now(), 1)
	if err != nil {
		return 0, err
	}
	return g.id(slot, span), nil
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
