package grant

import (
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
)

// nextHeld returns what to do with the held cell: read it, extend it or release it.
func (m *Machine) nextHeld(in Input) Op {
	h := m.held
	switch {
	case m.suspect:
		return Op{Kind: Read, Why: Suspicion, Node: h.Node}
	case m.doubt:
		return Op{Kind: Read, Why: Doubt, Node: h.Node}
	case in.Closing:
		// (3) While the window has another grant, used says nothing about this one, and no slot
		// of it was taken.
		limit := h.Floor
		switch {
		case in.Apart:
			limit = h.Limit
		case in.Grant.To > 0 && in.Grant.Node == h.Node && in.Grant.From == h.Floor:
			limit = min(max(h.Floor, m.used), h.Limit)
		}
		return Op{Kind: Swap, Why: Release, Node: h.Node, Version: h.Version, Record: m.unheld(in, h.Floor, limit, h.names)}
	case !in.Due:
		return Op{}
	}
	limit := min(max(h.Limit+1, in.front()+m.Window, in.Wanted+1), m.End) // (2)
	return Op{Kind: Swap, Why: Extend, Node: h.Node, Version: h.Version, Record: m.record(in, h.Floor, limit, h.names)}
}

// doneExtend notes the outcome of an extension. After a conflict, too, it may have landed: a
// driver may have sent it twice.
func (m *Machine) doneExtend(op Op, r Result) []Event {
	if r.Status != OK {
		m.doubt = true
		m.held.Pending = remember(m.held.Pending, op.Record.Write, maxPending)
		return nil
	}
	return m.extended(r.Version, op.Record)
}

// extended notes that the cell has this record of ours.
func (m *Machine) extended(version uint64, r cell.Node) []Event {
	m.held = holdOf(m.held.Node, version, r)
	m.doubt = false
	m.most = max(m.most, r.Limit)
	return []Event{{Kind: Extended, Range: m.held.span()}}
}

// doneRelease notes the outcome of sealing or of a release.
func (m *Machine) doneRelease(op Op, r Result) []Event {
	switch {
	case op.Kind == Seal:
		m.sealed, m.used = true, r.Used
		return nil
	case r.Status != OK:
		// An extension of unknown outcome has landed, or the cell was taken, or a driver has
		// sent the release twice: then another process may have claimed from there on already.
		m.doubt = true
		m.held.Pending = remember(m.held.Pending, op.Record.Write, maxPending)
		m.held.Limit = op.Record.Limit
		return nil
	}
	return m.released(op.Record)
}

func (m *Machine) released(r cell.Node) []Event {
	e := Event{Kind: Released, Range: m.held.span(), Record: r}
	m.drop()
	return []Event{e}
}

// doneDoubt says whose the held cell is, after it was read.
func (m *Machine) doneDoubt(in Input, r Result) []Event {
	h, c := &m.held, r.Cell.Record
	switch {
	case r.Status == Damaged && m.Pinned >= 0:
		return []Event{{Kind: Broken, Range: h.span()}}
	case r.Status == Damaged: // no process claims a damaged cell
		return m.lose(in, c)
	case r.Status != OK:
		return nil
	}
	pending := slices.Contains(h.Pending, c.Write) // (4) The record of no cell has no name.
	// Every other writer keeps the limit or raises it, and no other claim begins below it.
	back := r.Cell.Version == 0 || c.Limit < h.Limit || c.Floor < h.Limit && c.Holder != m.token ||
		c.Holder == m.token && c.Floor == h.Floor && c.Limit < h.acknowledged // a write before our last one
	switch {
	case pending && c.Holder == "":
		return m.released(c)
	case pending && !back:
		return append(m.trust(), m.extended(r.Cell.Version, c)...)
	case c.Write == h.Write: // no other write has landed so far
		h.Version = r.Cell.Version // our write may have landed a second time, in a store that went back
		m.doubt = false
		return m.trust()
	case !back && slices.Contains(c.Last, h.Write):
		return append(m.trust(), m.lose(in, c)...) // (2)
	case back && !m.suspect: // (6)
		m.suspect = true
		return []Event{{Kind: Suspected, Range: h.span(), Record: c}}
	case back, m.suspect && h.isMissing(c): // (7)
		m.raise = raise{due: true, version: r.Cell.Version, found: c}
		return nil
	}
	return m.lose(in, c) // (2) After a suspicion, others have written so often since that the cell does not tell.
}

// isMissing reports whether a record proves that the cell does not have our last write: it names a write
// before ours, or all writes that the cell ever had, and not ours.
func (h *Held) isMissing(r cell.Node) bool {
	return len(r.Last) < cell.Kept || slices.ContainsFunc(r.Last, func(name string) bool { return slices.Contains(h.names, name) })
}

// trust ends a suspicion.
func (m *Machine) trust() []Event {
	if !m.suspect {
		return nil
	}
	m.suspect = false
	return []Event{{Kind: Trusted, Range: m.held.span()}}
}

// lose notes that another process has the cell, or none can. The rest of the grant stays ours, unless a
// suspicion has not ended: then it stays revoked, and no later claim begins below.
func (m *Machine) lose(in Input, found cell.Node) []Event {
	e := Event{Kind: Lost, Range: m.held.span(), Record: found}
	if m.suspect {
		m.least = max(m.most, m.held.Limit)
	}
	if found.Holder == m.token { // a copy of this process's memory
		m.token = in.Name
	}
	m.over = m.Pinned >= 0
	m.drop()
	return []Event{e}
}

// nextRaise raises the cell of a store that went back. Its limit becomes ours again, so that no
// later claim is granted our ticks a second time.
func (m *Machine) nextRaise(in Input) Op {
	found := &m.raise.found
	limit := max(m.held.Limit, found.Limit) // another process may have been granted more
	r := m.unheld(in, limit, limit, found.Names())
	// What has left stays final.
	r.MovedTo, r.Later = found.MovedTo, found.Later
	if found.Past != "" { // (P6)
		r = Retire(r, m.End)
	}
	return Op{Kind: Swap, Why: Raise, Node: m.held.Node, Version: m.raise.version, Record: r}
}

// doneRaise notes the outcome. The next read tells whether the write landed, and what another
// process wrote meanwhile.
func (m *Machine) doneRaise(r Result) []Event {
	found := m.raise.found
	m.raise = raise{}
	if r.Status == OK || r.Status == Damaged { // no process claims a damaged cell
		return m.wentBack(found)
	}
	return nil
}

// wentBack notes that the store has lost an acknowledged write: a process that started later
// may have been granted our ticks as well.
func (m *Machine) wentBack(found cell.Node) []Event {
	e := Event{Kind: WentBack, Range: m.held.span(), Record: found}
	m.least = max(m.most, m.held.Limit)
	m.claims = nil
	m.drop()
	return []Event{e}
}

// drop forgets the held cell.
func (m *Machine) drop() {
	m.held, m.doubt, m.suspect, m.raise = Held{}, false, false, raise{}
}
