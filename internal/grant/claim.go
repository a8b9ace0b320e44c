package grant

import (
	"cmp"
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
)

// probe is what a claim has read so far.
type probe struct {
	asked   int    // how many claims of unknown outcome were read
	waiting []Cell // the cells of those that may still land
	landed  Cell   // the cell of a claim that has landed, until it is locked

	stage  stage
	fleet  Fleet
	search Search
	cells  []Cell // candidates
	others int64  // numbers that are held, reserved or damaged
	past   int64  // numbers that were given to the past
	parked int64  // how many of the others are reserved
	until  uint64 // the first end of a reservation

	locked bool  // a candidate is locked
	lock   int64 // the candidate that is locked, if one is
	read   bool  // the locked candidate was read since, as another process may have written it before unlocking it
	busy   bool  // the last candidate was locked by another process
}

// stage is how far a claim has come.
type stage uint8

const (
	fleetUnread stage = iota
	fleetMissing
	firstUnread
	searching
)

// nextClaim returns what to do to claim a number: it finds out what has become of claims of
// unknown outcome, reads the fleet's cell, then node numbers until it can claim one of them,
// locks it on a Locker, and claims it.
func (m *Machine) nextClaim(in Input) Op {
	p := &m.probe
	switch {
	case p.landed.Version != 0:
		return Op{Kind: Lock, Why: Adopt, Node: p.landed.Node}
	case p.asked < len(m.claims):
		return Op{Kind: Read, Why: Outcome, Node: m.claims[p.asked].Node}
	case in.Closing:
		return Op{}
	}
	switch p.stage {
	case fleetUnread:
		return Op{Kind: Read, Why: OfFleet, Node: FleetNode}
	case fleetMissing:
		return Op{Kind: Swap, Why: OfFleet, Node: FleetNode}
	case firstUnread:
		return m.nextFirst(in)
	}
	if len(p.waiting) >= maxClaims && !m.Locker {
		// A server that hangs may keep a connection for each number that was tried: try one of
		// those again, and no further number.
		if best, rank := m.choose(in, p.waiting); rank != NoRank {
			return m.claim(in, best)
		}
	}
	best, rank := m.choose(in, p.cells)
	switch {
	case !p.search.Settled(rank):
		return p.list(Candidate)
	case p.others == 0 && p.past < p.fleet.count() && m.timeIsOver(p.cells):
		return Op{Why: EndOfTime}
	case rank == NoRank:
		return Op{Why: Full}
	case !m.Locker:
		return m.claim(in, best)
	case !p.locked || p.lock != best.Node:
		p.locked = false
		return Op{Kind: Lock, Why: Candidate, Node: best.Node}
	case !p.read:
		return Op{Kind: Read, Why: Candidate, Node: best.Node}
	}
	return m.claim(in, best)
}

// nextFirst reads the pinned number, or the first block of numbers. A pinned number outside the store's range was
// refused before, by Keeper.checkInFleet of package lease.
func (m *Machine) nextFirst(in Input) Op {
	if m.Pinned >= 0 {
		return Op{Kind: Read, Why: First, Node: m.Pinned}
	}
	f := &m.probe.fleet
	m.probe.search = NewSearch(f.count(), in.Pick)
	if m.Locker {
		m.probe.search = Search{Nodes: f.count(), First: f.first()}
	}
	return m.probe.list(First)
}

// list returns the next block to read.
func (p *probe) list(why Why) Op {
	search := p.search
	from, n := search.Block()
	return Op{Kind: List, Why: why, Node: p.fleet.Nodes.From + from, N: n}
}

// claim claims a cell.
func (m *Machine) claim(in Input, c Cell) Op {
	floor := max(in.Now, c.Record.Limit, m.lowest()) // (1)
	if floor >= m.End {
		return Op{Why: EndOfTime}
	}
	limit := min(max(floor, in.front())+m.Window, m.End)
	return Op{Kind: Swap, Why: Claim, Node: c.Node, Version: c.Version, Record: m.record(in, floor, limit, c.Record.Names())}
}

// doneClaim notes the outcome of a claim. What is known of claims of unknown outcome is read anew
// before the next one.
func (m *Machine) doneClaim(op Op, r Result) []Event {
	p := &m.probe
	switch r.Status {
	case OK:
		return m.hold(holdOf(op.Node, r.Version, op.Record))
	case Failed:
		m.claims = remember(m.claims, Pending{Node: op.Node, Version: op.Version, Name: op.Record.Write, Floor: op.Record.Floor}, maxClaims)
	default:
		p.taken(op.Node, false)
	}
	p.asked, p.waiting, p.locked = 0, nil, false
	return nil
}

// holdOf is the holding of a cell with a record of ours.
func holdOf(node int64, version uint64, r cell.Node) Held {
	return Held{Node: node, Version: version, Write: r.Write, Floor: r.Floor, Limit: r.Limit, names: r.Names(), acknowledged: r.Limit}
}

// hold notes that a cell is ours.
func (m *Machine) hold(h Held) []Event {
	m.held, m.doubt, m.claims, m.probe = h, false, nil, probe{}
	m.most = max(m.most, h.Limit)
	return []Event{{Kind: Claimed, Range: h.granted()}}
}

// doneOutcome notes what has become of a claim of unknown outcome.
func (m *Machine) doneOutcome(r Result) []Event {
	p := &m.probe
	if r.Status == Failed {
		return nil
	}
	c, pending := r.Cell, m.claims[p.asked]
	switch {
	case c.Record.Write == pending.Name && m.Locker: // (4)
		p.landed = c
	case c.Record.Write == pending.Name: // (4)
		return m.hold(holdOf(c.Node, c.Version, c.Record))
	case r.Status != OK || c.Version != pending.Version: // (5) it can no longer land
		m.forgetClaim(p.asked)
	default:
		p.waiting = append(slices.Clip(p.waiting), c)
		p.asked++
	}
	return nil
}

func (m *Machine) forgetClaim(i int) {
	m.claims = append(slices.Clone(m.claims[:i]), m.claims[i+1:]...)
}

// doneAdopt notes whether a claim that has landed could be locked.
func (m *Machine) doneAdopt(r Result) []Event {
	p := &m.probe
	switch r.Status {
	case OK:
		return m.hold(holdOf(p.landed.Node, p.landed.Version, p.landed.Record))
	case Locked, Damaged: // another process is claiming it now
		m.forgetClaim(p.asked)
		p.landed = Cell{}
	}
	return nil
}

// lowest is the tick below which no claim begins, whatever the cell says.
func (m *Machine) lowest() uint64 { return max(m.least, m.probe.fleet.Floor) }

// doneFleet notes which numbers the store has.
func (m *Machine) doneFleet(op Op, r Result) []Event {
	p := &m.probe
	p.fleet = r.Fleet
	switch {
	case r.Status == Damaged:
		return []Event{{Kind: Broken, Range: number(FleetNode)}}
	case r.Status == Failed:
	case op.Kind == Swap && r.Status != OK: // another process was faster
		p.stage = fleetUnread
	case op.Kind == Read && r.Cell.Version == 0:
		p.stage = fleetMissing
	default:
		p.stage = firstUnread
	}
	return nil
}

// doneCandidate notes what a claim has found.
func (m *Machine) doneCandidate(in Input, op Op, r Result) []Event {
	p := &m.probe
	broken := r.Status == Damaged
	switch {
	case r.Status == Failed:
	case broken && m.Pinned >= 0:
		return []Event{{Kind: Broken, Range: number(op.Node)}}
	case op.Kind == Lock && r.Status == OK:
		p.locked, p.lock, p.read = true, op.Node, false
	case op.Kind == Lock:
		p.taken(op.Node, r.Status == Locked)
	case op.Kind == Read && op.Why == First:
		p.stage = searching
		p.search = Search{Nodes: 1, Done: 1}
		p.cells = []Cell{r.Cell}
	case op.Kind == Read && broken:
		p.taken(op.Node, false)
	case op.Kind == Read:
		p.read = true
		p.cells = slices.Clone(p.cells)
		for i := range p.cells {
			if p.cells[i].Node == op.Node {
				p.cells[i] = r.Cell
			}
		}
	default:
		m.doneList(in, op, r.Cells)
	}
	return nil
}

// doneList keeps the cells of a block that may be claimed, and counts the others. Numbers that have no
// cell yet may be claimed as well.
func (m *Machine) doneList(in Input, op Op, listed []Cell) {
	p := &m.probe
	p.search.Block()
	p.stage = searching
	cells := make([]Cell, op.N)
	for i := range cells {
		cells[i].Node = op.Node + int64(i)
	}
	for _, c := range listed {
		if i := c.Node - op.Node; i >= 0 && i < op.N {
			cells[i] = c
		}
	}
	p.cells = slices.Clip(p.cells)
	for _, c := range cells {
		if m.rank(in, &c) != NoRank {
			p.cells = append(p.cells, c)
		} else if c.Record.Past != "" {
			p.past++
		} else if c.Record.Reserved || c.Record.Limit < m.End {
			p.others++
			if c.Record.Reserved {
				p.parked++
				p.until = min(cmp.Or(p.until, c.Record.Limit), c.Record.Limit)
			}
		}
	}
}

// taken notes that a candidate cannot be claimed.
func (p *probe) taken(node int64, busy bool) {
	p.busy = busy
	p.cells = slices.Clone(p.cells)
	for i := range p.cells {
		if c := &p.cells[i]; c.Node == node && !c.Taken {
			c.Taken = true
			p.others++
		}
	}
}

// Sought is what a claim has found, for the error of [Full].
type Sought struct {
	Others int64  // numbers that are held, reserved, damaged or given to the past
	Until  uint64 // the first end of a reservation, if all of these are reserved, else 0
	Cells  []Cell // candidates
	Busy   bool   // the last of them was locked by another process
}

// Sought returns what the present claim has found.
func (m *Machine) Sought() Sought {
	p := &m.probe
	s := Sought{Others: p.others + p.past, Cells: p.cells, Busy: p.busy}
	if p.parked == s.Others {
		s.Until = p.until
	}
	return s
}
