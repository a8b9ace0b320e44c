package count

import (
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
)

// past is what the cell that was read says of the write that the process knows.
type past uint8

const (
	shown   past = iota // it is in the past of the cell
	unclear             // it may be, but the cell keeps no name so old
	older               // the cell is an older one, or gone: so it looks to a stale read, too
	missing             // it is not in the past of the cell, and the cell is no older one
)

// past compares a cell with the one that the process knows. A store that keeps its word gives
// older only to a stale read, and never missing.
func (m *Machine) past(c Cell) past {
	r, k := c.Record, m.known.Record
	switch {
	case r.ID != k.ID && r.Creation <= k.Creation, r.ID == k.ID && r.Writes < k.Writes:
		return older // also one that is gone, or was created anew in a store that has lost all
	case r.ID != k.ID && r.Before < m.granted():
		return missing // the sequence that was deleted for it had lost numbers
	case r.ID != k.ID:
		return unclear
	case m.shows(c):
		return shown
	case r.Most < max(k.Most, m.back.most), r.From < m.top && !m.gaveBack():
		return missing // every later grant begins at or above the end of ours
	case r.Lost, r.Creation > k.Creation:
		return unclear // a mark may count more writes than there were
	case r.Creation < k.Creation, r.Writes-k.Writes <= uint64(len(r.Last)):
		return missing
	}
	return unclear
}

// granted is one above the highest number that was granted as far as the process knows.
func (m *Machine) granted() uint64 {
	k := m.known.Record
	k.Most = max(k.Most, m.top, m.back.most)
	return k.Granted()
}

// shows reports whether a cell names the known write, or one of ours that is conditional on it, as
// its own or one before it.
func (m *Machine) shows(c Cell) bool {
	if names(c, m.known.Record.Write) {
		return true
	}
	return slices.ContainsFunc(m.pending, func(p Pending) bool { return names(c, p.Name) })
}

func names(c Cell, write string) bool {
	return c.Record.Write == write || slices.Contains(c.Record.Last, write)
}

// gaveBack reports whether a give-back may have landed. Then others may have been granted the
// indexes.
func (m *Machine) gaveBack() bool {
	return slices.ContainsFunc(m.pending, func(p Pending) bool { return p.Back })
}

// doneRead says what a cell means that was read.
func (m *Machine) doneRead(in Input, c Cell) []Event {
	m.doubt = true
	if c.Version == 0 && m.known.Version == 0 { // no process has made it so far
		c = m.known
	}
	k, r := m.known.Record, c.Record
	past := m.past(c)
	switch {
	case past == older, past == missing: // (8)
		return m.suspect(c, past == missing)
	case r.Lost: // (9)
		return m.revoke(in, Marked, c)
	case r.ID != k.ID, r.Deleted: // (7)
		return m.revoke(in, Deleted, c)
	case r.Creation != k.Creation: // (9)
		events := m.revoke(in, Raised, c)
		m.doubt, m.fresh = false, true
		return events
	case m.back.proof: // (10)
		return m.suspect(c, true)
	}
	var events []Event
	switch {
	case past == shown && m.back.suspect: // (8)
		events = []Event{m.trust(in, c)}
	case past == unclear && (m.back.suspect || m.gaveBack()): // (10), (3)
		events = m.revoke(in, Unclear, c)
	}
	m.back = back{}
	for _, p := range m.pending {
		if names(c, p.Name) { // (4)
			events = append(events, m.landed(p)...)
			break // (5)
		}
	}
	m.learn(c)
	m.doubt, m.fresh = false, true
	return events
}

// learn notes that a cell is in the store. Writes in flight are conditional on the version before.
func (m *Machine) learn(c Cell) {
	if c.Version != m.known.Version {
		m.pending = nil // (5)
	}
	m.known = c
}

// revoke notes that the ranges are not ours any more.
func (m *Machine) revoke(in Input, kind EventKind, c Cell) []Event {
	e := Event{Kind: kind, Cell: c, Lost: m.Unused(in.Used)}
	m.owned, m.pending, m.back = nil, nil, back{}
	if c.Record.ID == m.known.Record.ID {
		m.learn(c)
	}
	return []Event{e}
}

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
