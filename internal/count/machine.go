package count

import (
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
)

// Input is what a [Machine] is told with each call. Its uniqueness rests on Used, Arrived, Name,
// Closing and Restored; the others decide only how much is written, and when. All numbers are
// indexes.
type Input struct {
	Name string // new and random: of the write that Next may return

	// Want is how many indexes the process would have, and Need the fewest of use: for
	// fewer nothing is written. Want is at least Need; both are 0 if a refill is not due.
	Want, Need uint64
	// Arrived is the number of the last call that had arrived in ordered mode.
	Arrived uint64
	// Used is the first unused index of the window. While the window is open, nothing is lowered by it.
	Used     uint64
	Closing  bool // the window was sealed, for good, before Used was read: the rest is to be given back
	Restored bool // the memory was restored or cloned since the last call, and the window was revoked
}

// Range is the indexes from From up to, but not including, To.
type Range struct{ From, To uint64 }

// Cell is the cell of a sequence as it was read or written.
type Cell struct {
	Version uint64 // 0: there is none
	Record  cell.Sequence
}

// Pending is a write of unknown outcome. It lands only on the version that the process knows.
type Pending struct {
	Name string
	Range
	Back bool   // it gives Range back, else Range is granted
	Upto uint64 // in ordered mode: the last call that had arrived when the write was sent
}

// maxPending is how many writes of unknown outcome are remembered. A forgotten write that
// lands looks like another process's write: its indexes are never used.
const maxPending = 64

// Machine is all that a process knows and decides about the protocol of one sequence. It is a
// plain value: a copy is independent. The driver calls Next and Done by turns until Next returns
// an operation of the kind [None]. An operation that is not carried out needs no Done.
type Machine struct {
	ordered bool

	known   Cell    // as it was last read or written, and believed
	doubt   bool    // the cell must be read before it is written
	fresh   bool    // the last operation has read the cell
	owned   []Range // granted and not used up, in ascending order; no two adjoin; none in ordered mode
	top     uint64  // the end of the last grant
	pending []Pending

	back back
}

// New returns the machine of a process that has read or created the cell of a sequence, or, with the version 0, of a
// cell that the first grant makes: of what c says, with no write.
func New(c Cell, ordered bool) Machine { return Machine{ordered: ordered, known: c} }

// OpKind is what an operation does.
type OpKind uint8

const (
	None OpKind = iota // nothing: see Why
	Read               // the cell
	Swap               // the cell from Version to Record
)

// Why says what an operation is for, or why there is none.
type Why uint8

const (
	Idle      Why = iota // there is nothing to do
	Exhausted            // None: fewer indexes are left than the process needs

	Doubt     // Read: what the cell has, and what became of the last write
	Suspicion // Read: the store may have gone back
	Refill    // Swap: grants Range
	Close     // Swap: gives Range back
	Mark      // Swap: says in the cell that the store went back
)

// Op is one operation.
type Op struct {
	Kind    OpKind
	Why     Why
	Version uint64
	Record  cell.Sequence
	Range   Range
	Upto    uint64 // of Refill: see [Pending]
}

// Status is how an operation ended.
type Status uint8

const (
	OK       Status = iota
	Conflict        // of a Swap: the cell has another version. It may be our own write, sent twice
	Failed          // of a Swap: it may have landed, and may land later
)

// Result is what an operation gave.
type Result struct {
	Status  Status
	Version uint64 // of Swap
	Cell    Cell   // of Read
}

// EventKind is what has happened.
type EventKind uint8

const (
	// Granted: Range is granted, in ordered mode to the calls up to Upto.
	Granted EventKind = iota
	// GivenBack: Range is not ours any more.
	GivenBack
	// Suspected: a read looks as if the store went back. The reserved numbers are taken back at
	// once.
	Suspected
	// Trusted ends a suspicion: Ranges are ours as before.
	Trusted
	// Unclear ends a suspicion: it cannot be known whether the store went back. The ranges are
	// given up.
	Unclear
	// WentBack: this process has marked the cell. Cell is the one that it has found.
	WentBack
	// Marked: another process has marked the cell.
	Marked
	// Raised: the cell was marked, and next was raised since. The indexes that this process
	// owned may have been granted to others before the mark.
	Raised
	// Deleted: the sequence was deleted, and perhaps created anew.
	Deleted
	// Forgot: the memory was restored, and nothing is owned any more. Range was granted to a copy
	// of this process as well: nobody uses it.
	Forgot
)

// Event is what has happened. The driver acts on each, in their order, before it calls Next. After
// WentBack, Marked and Deleted there is nothing to do until the next call of a user.
type Event struct {
	Kind   EventKind
	Range  Range
	Ranges []Range // of Trusted, without the indexes that are used; not to be changed
	Upto   uint64
	Cell   Cell // of the read that shows it
	// Lost is how many unused indexes the process owned, and owns no more: of Unclear, WentBack,
	// Marked, Raised and Deleted.
	Lost uint64
}

// Known is the cell as it was last read or written, and believed.
func (m *Machine) Known() Cell { return m.known }

// Suspects reports whether a read looked as if the store went back: nothing is granted until
// another one tells.
func (m *Machine) Suspects() bool { return m.back.suspect }

// Unused is how many indexes are owned and not used, if used is the first unused one of the window.
func (m *Machine) Unused(used uint64) (n uint64) {
	for _, r := range m.owned {
		n += r.unused(used)
	}
	return n
}

func (r Range) unused(used uint64) uint64 { return r.To - min(max(r.From, used), r.To) }

// Left is how many indexes the next batch may have at most: up to the maximum, and those of our own that
// adjoin them.
func (m *Machine) Left(used uint64) uint64 { return m.known.Record.Left() + m.room(used) }

// room is how many of our own indexes the next grant goes on from.
func (m *Machine) room(used uint64) uint64 {
	if n := len(m.owned); n > 0 && m.owned[n-1].To == m.known.Record.Next {
		return m.owned[n-1].unused(used)
	}
	return 0
}

// Unknown is how many indexes are granted besides, at most, if a write of unknown outcome has
// landed. At most one has.
func (m *Machine) Unknown() (n uint64) {
	for _, p := range m.pending {
		if !p.Back {
			n = max(n, p.To-p.From)
		}
	}
	return n
}

// Next returns what to do now.
func (m *Machine) Next(in Input) Op {
	if in.Restored {
		m.forget()
	}
	fresh := m.fresh
	m.fresh = false
	switch {
	case in.Closing && m.Unused(in.Used) == 0 && len(m.pending) == 0:
		return Op{} // there is nothing to give back
	case m.back.found != nil:
		return m.nextMark(in)
	case m.back.suspect:
		return Op{Kind: Read, Why: Suspicion}
	case m.doubt:
		return Op{Kind: Read, Why: Doubt}
	case in.Closing:
		return m.nextClose(in)
	}
	return m.nextRefill(in, fresh)
}

// Done takes the result of the operation that Next returned, and returns what has happened.
func (m *Machine) Done(in Input, op Op, r Result) []Event {
	if in.Restored {
		// The operation was that of the memory before it was restored: the original may have
		// made it as well.
		e := Event{Kind: Forgot}
		if op.Kind == Swap && r.Status == OK {
			m.known = Cell{r.Version, op.Record}
			if op.Why == Refill {
				e.Range = op.Range
			}
		}
		m.forget()
		return []Event{e}
	}
	switch {
	case op.Kind == Read && r.Status == OK:
		return m.doneRead(in, r.Cell)
	case op.Why == Refill, op.Why == Close:
		return m.wrote(op, r)
	case op.Why == Mark:
		return m.doneMark(in, op, r)
	}
	return nil
}

// trim drops the ranges that are used up.
func (m *Machine) trim(used uint64) {
	for len(m.owned) > 0 && m.owned[0].To <= used {
		m.owned = m.owned[1:]
	}
}

// forget drops what a restored memory owned. Its original may have given that back.
func (m *Machine) forget() {
	*m = Machine{ordered: m.ordered, known: m.known, doubt: true, back: back{proof: m.back.proof}}
}

// write returns a swap that replaces a cell.
func (in *Input) write(why Why, c Cell, r cell.Sequence, grant Range) Op {
	r.Writes++
	r.Write, r.Last = in.Name, c.Record.Names()
	return Op{Kind: Swap, Why: why, Version: c.Version, Record: r, Range: grant, Upto: in.Arrived}
}

// wrote notes the outcome of a refill or a give-back. After a conflict, too, it may have landed: a driver may have
// sent it twice.
func (m *Machine) wrote(op Op, r Result) []Event {
	p := Pending{Name: op.Record.Write, Range: op.Range, Back: op.Why == Close, Upto: op.Upto} // (6)
	if r.Status == OK {
		m.known, m.pending = Cell{r.Version, op.Record}, nil
		return m.landed(p)
	}
	m.doubt = true
	if len(m.pending) >= maxPending {
		m.pending = m.pending[1:]
	}
	m.pending = append(slices.Clip(m.pending), p)
	return nil
}

// landed notes that a write of ours has taken effect.
func (m *Machine) landed(p Pending) []Event {
	if p.Back {
		return m.giveBack(p.Range)
	}
	return m.grant(p.Range, p.Upto)
}
