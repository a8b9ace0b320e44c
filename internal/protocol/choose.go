package protocol

// Rank is how good a candidate for a claim is. A lower one is better.
type Rank uint8

const (
	// Ready: slots can be taken at once, and no living process holds the number.
	Ready Rank = iota
	// Guess: the same, but its holder may live, with a clock that is behind.
	Guess
	// Ahead: the limit is ahead of the clock, so that slots must be waited for or borrowed.
	Ahead
	// None: it must not be claimed.
	None
)

// Choose returns the best candidate among cells, or [None].
//
// On a Locker, the cells that exist come first, to keep the store small, in the order of
// their numbers. Elsewhere equal ones are drawn from, so that processes that start in the
// same moment do not all try the same. Of those that are ahead, the nearest is best.
func (s State) Choose(cells []Cell) (best Cell, rank Rank) {
	rank = None
	n := uint64(0)
	for i := range cells {
		r := s.rank(&cells[i])
		if r == rank && r < Ahead && !s.Locker {
			n++
		}
		if r < rank {
			n = 1
		}
		if r < rank || r == rank && r != None && s.better(&cells[i], &best, r) {
			best, rank = cells[i], r
		}
	}
	if n <= 1 || rank >= Ahead {
		return best, rank
	}
	nth := s.Pick % n
	for i := range cells {
		if s.rank(&cells[i]) == rank {
			if nth == 0 {
				return cells[i], rank
			}
			nth--
		}
	}
	return best, rank
}

// better reports whether a is to be preferred to b, of the same rank.
func (s State) better(a, b *Cell, r Rank) bool {
	switch {
	case r == Ahead && a.Record.Limit != b.Record.Limit:
		return a.Record.Limit < b.Record.Limit
	case (a.Version == 0) != (b.Version == 0):
		return a.Version != 0
	}
	return a.Node < b.Node
}

func (s State) rank(c *Cell) Rank {
	switch {
	case c.Taken, c.Damaged, c.Record.Reserved && c.Record.Limit > s.Now:
		return None
	case s.Node >= 0:
		if c.Node != s.Node {
			return None
		}
		return Ready // whoever holds it: the last to start wins
	case c.Record.Limit >= s.End: // nothing is left of it
		return None
	}
	free, guess := s.free(c)
	switch {
	case !free:
		return None
	case max(c.Record.Limit, s.Least) > s.Now:
		return Ahead
	case guess:
		return Guess
	}
	return Ready
}

// free reports whether a number that nobody must have may be claimed, and whether that is
// a guess.
func (s State) free(c *Cell) (free, guess bool) {
	switch {
	case s.Locker, c.Version == 0, c.Record.Holder == "", c.Still: // of a Locker, the lock will tell
		return true, false
	}
	past := c.Record.Limit+c.Record.Window < s.Now // by a grace
	return past, past
}

// over reports whether no number is held, and so time is what is lacking.
func (s State) over(cells []Cell) bool {
	for i := range cells {
		if c := &cells[i]; c.Taken || c.Damaged || c.Record.Limit < s.End {
			return false
		}
	}
	return true
}
