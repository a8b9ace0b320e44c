package count

import "slices"

// nextRefill returns what to do for indexes that are wanted. fresh says that the cell was just
// read.
func (m *Machine) nextRefill(in Input, fresh bool) Op {
	m.trim(in.Used)
	take, enough := m.take(in)
	switch c := m.known; {
	case in.Want == 0:
		return Op{}
	case !enough && !fresh:
		return Op{Kind: Read, Why: Doubt} // the maximum may have been raised
	case !enough:
		return Op{Why: Exhausted}
	default:
		r := c.Record
		r.From, r.Next = r.Next, r.Next+take // (1)
		r.Most = max(r.Most, r.Next)
		return in.write(Refill, c, r, Range{r.From, r.Next})
	}
}

// take is how many indexes a refill takes: those that are wanted, or as many as are left. enough
// reports whether these are of use.
func (m *Machine) take(in Input) (n uint64, enough bool) {
	room, left := m.room(in.Used), m.known.Record.Left()
	want := in.Want
	if in.Need > room { // a call waits, and a part of its numbers is reserved already
		want -= room
	}
	n = min(want, left) // (2)
	return n, n > 0 && n+room >= in.Need
}

// grant notes that a range is ours. One that adjoins the last extends it.
func (m *Machine) grant(r Range, upto uint64) []Event {
	m.top = r.To
	switch n := len(m.owned); {
	case m.ordered: // its calls have it
	case n > 0 && m.owned[n-1].To == r.From:
		m.owned = append(slices.Clip(m.owned[:n-1]), Range{m.owned[n-1].From, r.To})
	default:
		m.owned = append(slices.Clip(m.owned), r)
	}
	return []Event{{Kind: Granted, Range: r, Upto: upto}}
}

// nextClose returns the write that gives the unused indexes at the end of the owned ranges back. The
// window is sealed. It writes without any as well if a write is in flight, which can then no
// longer land and lose its indexes.
func (m *Machine) nextClose(in Input) Op {
	c := m.known
	low := c.Record.Next
	if n := len(m.owned); n > 0 && m.owned[n-1].To == low { // (3)
		low = max(m.owned[n-1].From, min(in.Used, low))
	}
	if low == c.Record.Next && len(m.pending) == 0 {
		return Op{}
	}
	r := c.Record
	r.From, r.Next = low, low
	return in.write(Close, c, r, Range{low, c.Record.Next})
}

// giveBack notes that a range is not ours any more.
func (m *Machine) giveBack(back Range) []Event {
	var owned []Range
	for _, r := range m.owned {
		if r.To = min(r.To, back.From); r.From < r.To {
			owned = append(owned, r)
		}
	}
	m.owned = owned
	return []Event{{Kind: GivenBack, Range: back}}
}
