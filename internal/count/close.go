package count

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
