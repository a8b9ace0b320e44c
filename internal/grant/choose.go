package grant

import (
	"cmp"
	"slices"
)

// Rank is how good a candidate for a claim is. A lower one is better.
type Rank uint8

const (
	// Ready: slots are free at once, and no living process holds the number.
	Ready Rank = iota
	// Guess: as Ready, but the holder may be alive, with a clock that is behind.
	Guess
	// Ahead: the limit is ahead of the clock, so callers must wait for slots or borrow them.
	Ahead
	// NoRank: the number must not be claimed.
	NoRank
)

// choose returns the best candidate among cells, or [NoRank].
//
// On a Locker, existing cells come first, to keep the store small, and then the numbers that follow the
// first one of the store.
// On other stores the choice among equal candidates is random, so that processes that
// start at the same time try different numbers. Of candidates with the rank Ahead, the
// one with the lowest limit is best.
func (m *Machine) choose(in Input, cells []Cell) (Cell, Rank) {
	best := NoRank
	var equal []*Cell // that have this rank
	for i := range cells {
		switch r := m.rank(in, &cells[i]); {
		case r < best:
			best, equal = r, append(equal[:0], &cells[i])
		case r == best:
			equal = append(equal, &cells[i])
		}
	}
	switch {
	case best == NoRank:
		return Cell{}, best
	case m.Locker || best == Ahead:
		return *slices.MinFunc(equal, func(a, b *Cell) int { return m.compare(a, b, best) }), best
	}
	return *equal[in.Pick%uint64(len(equal))], best
}

// compare is negative if a is a better candidate than b, of the same rank.
func (m *Machine) compare(a, b *Cell, r Rank) int {
	limit := 0
	if r == Ahead {
		limit = cmp.Compare(a.Record.Limit, b.Record.Limit)
	}
	return cmp.Or(limit, cmp.Compare(min(b.Version, 1), min(a.Version, 1)), cmp.Compare(m.place(a), m.place(b)))
}

// place is how far a number is from the first one of the store.
func (m *Machine) place(c *Cell) int64 {
	f := &m.probe.fleet
	return (c.Node - f.Nodes.From - f.first() + f.count()) % f.count()
}

func (f *Fleet) count() int64 { return f.Nodes.To - f.Nodes.From }

// first is how far the number that a Locker begins with is from the least one of the store. It may have left.
func (f *Fleet) first() int64 {
	if !f.Nodes.Has(f.First) {
		return 0
	}
	return f.First - f.Nodes.From
}

func (m *Machine) rank(in Input, c *Cell) Rank {
	switch {
	case c.Taken, c.Damaged, c.Record.MovedTo != "", c.Record.Past != "", c.Record.Reserved && c.Record.Limit > in.Now, !m.probe.fleet.Nodes.Has(c.Node):
		return NoRank
	case m.Pinned >= 0:
		return Ready // even if it is held: the last process to start wins
	case c.Record.Limit >= m.End: // it has no tick left
		return NoRank
	}
	free, guess := m.isFree(in, c)
	switch {
	case !free:
		return NoRank
	case max(c.Record.Limit, m.lowest()) > in.Now:
		return Ahead
	case guess:
		return Guess
	}
	return Ready
}

// isFree reports whether a cell is free for a process that takes any number, and whether
// that is a guess.
func (m *Machine) isFree(in Input, c *Cell) (free, guess bool) {
	switch {
	case m.Locker, c.Record.Holder == "", c.Still: // on a Locker, the lock decides
		return true, false
	}
	past := c.Record.Limit+c.Record.Window < in.Now // one window of grace
	return past, past
}

// timeIsOver reports whether no cell is held and none has a tick left: the layout's time is used
// up.
func (m *Machine) timeIsOver(cells []Cell) bool {
	for i := range cells {
		if c := &cells[i]; c.Taken || c.Damaged || c.Record.Past != "" || c.Record.Reserved || c.Record.Limit < m.End {
			return false
		}
	}
	return true
}
