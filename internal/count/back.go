package count

import (
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
)

// back is what the process knows of a store that may have gone back.
type back struct {
	suspect bool   // a read looks so: nothing is granted, and the window has no range
	proof   bool   // and a stale read does not
	found   *Cell  // that a second read has found and is to be marked, or nil; not changed
	most    uint64 // of the marks of unknown outcome
}

// suspect notes a read that looks as if the store went back.
func (m *Machine) suspect(c Cell, proof bool) []Event {
	m.back.proof = m.back.proof || proof
	if m.back.suspect { // (9)
		m.back.found = &c
		return nil
	}
	m.back.suspect = true
	return []Event{{Kind: Suspected, Cell: c}}
}

// trust ends a suspicion.
func (m *Machine) trust(in Input, c Cell) Event {
	m.trim(in.Used)
	ranges := slices.Clone(m.owned)
	if len(ranges) > 0 {
		ranges[0].From = max(ranges[0].From, in.Used)
	}
	return Event{Kind: Trusted, Ranges: ranges, Cell: c}
}

// nextMark returns the write that says that the store went back. A newcomer in an emptied store
// finds the mark instead of no sequence.
func (m *Machine) nextMark(in Input) Op {
	c, r := *m.back.found, m.known.Record
	most := c.Record.Most
	switch {
	case c.Record.ID != r.ID: // another sequence that the cell has had meanwhile counts as deleted
		r.Before = max(r.Before, c.Record.Granted())
		most = min(r.Index(c.Record.Granted()), cell.MaxIndex)
	case c.Record.Writes > r.Writes: // Set has changed them since
		r.Max, r.MinStep, r.MaxStep = c.Record.Max, c.Record.MinStep, c.Record.MaxStep
	}
	r.Most = max(r.Most, m.top, m.back.most, most)
	r.Writes, r.Creation = max(r.Writes, c.Record.Writes), max(r.Creation, c.Record.Creation)+1
	r.Next, r.From, r.Lost, r.Deleted = r.Most, r.Most, true, false
	r.Max = max(r.Max, r.LastNumber())
	r.Before = r.Granted() // so a process that knows another sequence sees that it is covered
	return in.write(Mark, c, r, Range{})
}

// doneMark notes the outcome of a mark. Whatever another process wrote meanwhile, and whether the
// mark landed, the next read tells.
func (m *Machine) doneMark(in Input, op Op, r Result) []Event {
	m.doubt = true
	if r.Status != OK {
		m.back.found = nil
		m.back.most = max(m.back.most, op.Record.Most)
		return nil
	}
	e := Event{Kind: WentBack, Cell: *m.back.found, Lost: m.Unused(in.Used)}
	m.owned, m.pending, m.back = nil, nil, back{}
	m.known, m.top = Cell{r.Version, op.Record}, op.Record.Most
	return []Event{e}
}
