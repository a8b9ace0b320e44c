package protocol

// Rank is how good a candidate for a claim is. A lower one is better.
type Rank uint8

const (
	// Ready: slots are free at once, and no living process holds the number.
	Ready Rank = iota
	// Guess: as Ready, but the holder may be alive, with a clock that is behind.
	Guess
	// Ahead: the limit is ahead of the clock, so callers must wait for slots or borrow them.
	Ahead
	// None: the number must not be claimed.
	None
)

// Choose returns the best candidate among cells, or [None].
//
// On a Locker, existing cells come first, to keep the store small, and then lower numbers.
// On other stores the choice among equal candidates is random, so that processes that
// start at the same time try different numbers. Of candidates with the rank Ahead, the
// one with the lowest limit is best.
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

// better reports whether a is a better candidate than b, of the same rank.
func (s *State) better(a, b *Cell, r Rank) bool {
	switch {
	case r == Ahead && a.Record.Limit != b.Record.Limit:
		return a.Record.Limit < b.Record.Limit
	case (a.Version == 0) != (b.Version == 0):
		return a.Version != 0
	}
	return a.Node < b.Node
}

func (s *State) rank(c *Cell) Rank {
	switch {
	case c.Taken, c.Damaged, c.Record.Reserved && c.Record.Limit > s.Now:
		return None
	case s.Node >= 0:
		if c.Node != s.Node {
			return None
		}
		return Ready // even if it is held: the last process to start wins
	case c.Record.Limit >= s.End: // it has no tick left
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

// free reports whether a cell is free for a process that takes any number, and whether
// that is a guess.
func (s *State) free(c *Cell) (free, guess bool) {
	switch {
	case s.Locker, c.Version == 0, c.Record.Holder == "", c.Still: // on a Locker, the lock decides
		return true, false
	}
	past := c.Record.Limit+c.Record.Window < s.Now // one window of grace
	return past, past
}

// over reports whether no cell is held and none has a tick left: the layout's time is used
// up.
func (s State) over(cells []Cell) bool {
	for i := range cells {
		if c := &cells[i]; c.Taken || c.Damaged || c.Record.Limit < s.End {
			return false
		}
	}
	return true
}
