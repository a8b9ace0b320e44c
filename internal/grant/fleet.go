package grant

import "github.com/tickflake/tickflake/internal/cell"

// The fleet's cell says which node numbers a store has, and from which tick on. A store that gives numbers
// away for good narrows that range, or ends it. Then the fleet of another store is created with the numbers.
// These rules keep the IDs of the two stores apart, at any clock reading, while processes still run, and when
// either step is repeated after a crash in its middle:
//
//	A. Every number that leaves gets a final cell by compare-and-swap, also one that was never claimed: a
//	   claim that read the fleet's cell before may still land. Final cells alone carry safety. That the
//	   fleet's cell changes first only helps claims to stop.
//	B. A final cell keeps for ever the larger of its limit and the fleet's floor. What creates the other fleet
//	   is made of final cells alone, once all are written.
//	C. In the other store, each number begins at or above its final limit, whether it was held, free or
//	   reserved: the floor is above all limits but those far ahead of the clock, and these are reserved. So
//	   a clock that ran ahead parks its number, and not the fleet.
//	D. The other fleet is created by writing the reservations first, and then the fleet's cell. If that was
//	   given up, it is completed, and that fleet is ended, before the numbers go elsewhere: else it may still
//	   land later.
//	E. A number belongs to one store at a time: what is printed is for one store. A final cell is no
//	   reservation, and only what keeps it final writes it again.
//	F. A range never grows and a floor never moves. Else every cell would have to change with it, or a claim
//	   that slept between its two reads would begin below.
//
// A store that is restored to before it gave numbers away would grant them again. So they are given away again
// before a process reaches it.

// Fleet is what a claim needs of the fleet's cell.
type Fleet struct {
	Nodes cell.Nodes // that this store has; none: it has ended
	Floor uint64     // no claim begins below
	First int64      // the number that a Locker begins with
}

// Far reports whether the limit in a cell is far ahead of now, the tick of a clock: by more than two windows of
// the last holder, or least. No limit at the fleet's floor is.
func Far(was cell.Node, floor, now, least uint64) bool {
	return was.Limit > max(floor, now+2*max(was.Window, least))
}

// Final is the final cell of a number that leaves to a store, and has this cell, or none. later says that its
// limit is far ahead of the clock (C): that stands in the cell, so that what creates the other fleet is the same
// whenever it is made. name is that of the write.
func Final(was cell.Node, floor uint64, later bool, to, name string) cell.Node {
	limit := max(was.Limit, floor) // (B), and (P5): no process claims a past number there either
	return cell.Node{Floor: limit, Limit: limit, Window: was.Window, MovedTo: to, Later: later || was.Past != "", Past: was.Past, Write: name, Last: was.Names(), Layout: was.Layout}
}

// Handover is what creates the fleet of another store with numbers that have left this one, of which all
// final cells were added (B).
type Handover struct {
	Floor uint64 // at first that of the fleet which they leave
	Later []Cell // the numbers that begin above, at their limits
}

// Add adds the final cell of a number.
func (h *Handover) Add(c Cell) {
	if c.Record.Later { // (C)
		h.Later = append(h.Later, c)
		return
	}
	h.Floor = max(h.Floor, c.Record.Limit)
}
