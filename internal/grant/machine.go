package grant

import (
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/window"
)

// Config is what does not change in the life of a [Machine]. All times are ticks.
type Config struct {
	Owner, Layout string
	Window        uint64 // the length of a grant
	End           uint64 // the end of the layout's time: no limit is above it
	Pinned        int64  // the only node number to claim, or -1 for any
	Locker        bool   // the store has locks: a cell that is not locked is free
}

// Input is what a [Machine] is told with each call. Its uniqueness rests on Used, Grant, Name,
// Closing, Apart and Restored; the others decide only when something happens.
type Input struct {
	Now uint64 // the clock's tick
	// Used is the first unused tick of the window: no slot of it or of a later one was taken.
	// It is read after the window was sealed, if it was. While the window is open, nothing is
	// lowered by it.
	Used  uint64
	Grant window.Range // what the window was given last, even if it was revoked since
	Name  string       // a new random name for the write that Next may return
	Pick  uint64       // random: chooses between equal candidates

	Due      bool   // the grant is to be extended
	Wanted   uint64 // the grant is to reach the end of this tick at least
	Closing  bool   // the window is sealed, for good: the cell is to be released
	Apart    bool   // ticks may be stamped without the window, which does not see them: a release keeps the limit
	Restored bool   // the memory was restored or cloned since the last call, and the window was revoked
}

// Held is a cell that this process holds.
type Held struct {
	Node    int64
	Version uint64 // that it wrote or adopted last; 0: it holds none
	Write   string // the name of that write
	Floor   uint64 // of its claim
	Limit   uint64 // the limit that the store is known to have, or the one of a release that may have landed
	// Pending are the names of extensions and releases of unknown outcome. Each is
	// conditional on Version, so at most one of them can land.
	Pending []string

	names        []string // of the cell's last writes, the latest first
	acknowledged uint64   // the limit that it wrote or adopted last
}

// Pending is a claim of unknown outcome.
type Pending struct {
	Node    int64
	Version uint64 // the claim lands only if the cell still has it
	Name    string
	Floor   uint64
}

const (
	// maxPending is how many names of writes of unknown outcome are remembered. A forgotten
	// write that lands looks like another process's write: it costs the number, and makes no
	// duplicate.
	maxPending = 64
	// maxClaims is how many claims of unknown outcome are remembered. The next claim reads
	// each of them again, and if there are as many, takes one of their numbers.
	maxClaims = 8
)

// remember appends to list, and drops the oldest element if there are more than most. The
// copies of a machine share their lists, so none is changed in place.
func remember[T any](list []T, x T, most int) []T {
	if len(list) >= most {
		list = list[1:]
	}
	return append(slices.Clip(list), x)
}

// Machine is all that a keeper knows and decides about the protocol. It is a plain value: a
// copy is independent. The driver calls [Machine.Begin] at the start of a step, and then Next
// and Done by turns until Next returns an operation of the kind [None]. An operation that is not
// carried out needs no Done.
type Machine struct {
	Config
	token string

	held    Held
	doubt   bool // the held cell must be read before it is written
	suspect bool // a read looked as if the store went back: nothing is granted
	raise   raise

	claims []Pending
	most   uint64 // the highest limit that was read or owned, without reservations
	least  uint64 // no claim begins below it: it is most once the store went back
	over   bool   // the pinned number was lost: there is no other

	sealed bool   // by the operation Seal
	used   uint64 // its result

	probe probe
}

// raise is what a second read has found in the cell of a store that went back.
type raise struct {
	due     bool // the cell is to be raised
	version uint64
	found   cell.Node
}

// New returns a machine that holds nothing. token is random: of the holder.
func New(c Config, token string) Machine {
	return Machine{Config: c, token: token}
}

// OpKind is what an operation does.
type OpKind uint8

const (
	None OpKind = iota // nothing: see Why
	Read               // the cell of Node
	List               // the cells of N numbers from Node on
	Swap               // the cell of Node from Version to Record, or that of a new fleet
	Lock               // the cell of Node
	Seal               // the window, and then read how far it is used
)

// FleetNode stands for the fleet's cell, among the node numbers of operations.
const FleetNode = -1

// Why says what an operation is for, or why there is none.
type Why uint8

const (
	Idle      Why = iota // there is nothing to do
	Full                 // None: no candidate is free: see [Machine.Sought]
	EndOfTime            // None: no tick is left before the end of time
	Over                 // None: the pinned number was lost, and there is no other

	Doubt     // Read: a write of the held cell has an unknown outcome
	Suspicion // Read: the store may have gone back
	Outcome   // Read: what has become of a claim
	Adopt     // Lock: of a claim that has landed
	OfFleet   // Read, Swap: which numbers the store has
	First     // Read, List: the first candidates of a claim
	Candidate // List: further ones; Lock, Read: the best
	Claim     // Swap
	Extend    // Swap
	Release   // Seal, Swap
	Raise     // Swap: a cell of a store that went back
)

// Op is one operation.
type Op struct {
	Kind    OpKind
	Why     Why
	Node    int64
	N       int64
	Version uint64
	Record  cell.Node
}

// Status is how an operation ended.
type Status uint8

const (
	OK       Status = iota
	Conflict        // of a Swap: the cell has another version. It may be our own write, sent twice
	Locked          // of a Lock: another process has it
	Damaged         // the cell cannot be read
	Failed          // anything else; of a Swap: it may have landed, and may land later
)

// Cell is the cell of a node number as it was read.
type Cell struct {
	Node    int64
	Version uint64 // 0: there is none
	Record  cell.Node
	Still   bool // its version has not changed for two windows of the reader's monotonic time
	Taken   bool // another process was faster, or a living process has locked it
	Damaged bool // it cannot be read
}

// Result is what an operation gave.
type Result struct {
	Status  Status
	Version uint64 // of Swap
	Cell    Cell   // of Read; of the fleet's cell it has the version
	Cells   []Cell // of List: those that exist
	Fleet   Fleet  // of Read and Swap of the fleet's cell. One that has no number for this process is Failed
	Used    uint64 // of Seal
}

// EventKind is what has happened.
type EventKind uint8

const (
	// Claimed and Extended: Range is granted. Adopted with Extended: its outcome was unknown.
	Claimed EventKind = iota
	Extended
	// Released: the cell was released, with the limit in Record.
	Released
	// Lost: another process has the cell. Its Record was found in it. Range is what is left of the
	// grant, for the window to use up.
	Lost
	// Suspected: a read looks as if the store went back. What was granted is revoked at once.
	Suspected
	// Trusted ends a suspicion: Range is granted as before.
	Trusted
	// WentBack: the store has lost an acknowledged write of Range, and Record was found in
	// the cell. Nothing is granted.
	WentBack
	// Forgot: nothing is known any more, since the memory was restored.
	Forgot
	// Broken: the cell of Range.Node is damaged, and its number is pinned, so there is no
	// other.
	Broken
)

// Event is what has happened. The driver acts on each, in their order, before it calls Next.
type Event struct {
	Kind   EventKind
	Range  window.Range
	Record cell.Node
}

// Grant is the range that the window may have now. It has no ticks while nothing is held, or the
// store may have gone back.
func (m *Machine) Grant() window.Range {
	if m.suspect {
		return window.Range{}
	}
	return m.held.granted()
}

func (h *Held) granted() window.Range { return window.Range{Node: h.Node, From: h.Floor, To: h.Limit} }

// Held is the cell that the machine holds; its Version is 0 if there is none.
func (m *Machine) Held() Held { return m.held }

// Token is the name by which cells show this process as their holder.
func (m *Machine) Token() string { return m.token }

// Claims are the claims of unknown outcome, the oldest first.
func (m *Machine) Claims() []Pending { return m.claims }

// Suspects reports whether a read looked as if the store went back: nothing is granted until another
// read settles it.
func (m *Machine) Suspects() bool { return m.suspect }

// Rests reports whether Next has nothing to do unless an extension is due, or the input closes or restores.
// A machine that suspects or raises is in doubt.
func (m *Machine) Rests() bool { return m.held.Version != 0 && !m.doubt }

// Keeps reports whether the lock of a number is still needed. The driver unlocks all others after each
// call.
func (m *Machine) Keeps(node int64) bool {
	return m.held.Version != 0 && m.held.Node == node || m.probe.locked && m.probe.lock == node
}

// Begin begins a step: a claim reads the store anew.
func (m *Machine) Begin() { m.probe = probe{} }

// Next returns what to do now.
func (m *Machine) Next(in Input) Op {
	if in.Restored {
		m.forget(in)
	}
	if in.Closing && !m.sealed {
		return Op{Kind: Seal, Why: Release}
	}
	switch {
	case m.raise.due:
		return m.nextRaise(in)
	case m.held.Version != 0:
		return m.nextHeld(in)
	case m.over:
		return Op{Why: Over}
	}
	return m.nextClaim(in)
}

// Done takes the result of the operation that Next returned, and returns what has happened.
func (m *Machine) Done(in Input, op Op, r Result) []Event {
	if in.Restored {
		// The operation was begun before the memory was copied: the original may have made it
		// as well.
		m.forget(in)
		return []Event{{Kind: Forgot}}
	}
	if r.Status == OK {
		m.Learn(r.Cells...)
		m.Learn(r.Cell)
	}
	switch op.Why {
	case Doubt, Suspicion:
		return m.doneDoubt(in, r)
	case Outcome:
		return m.doneOutcome(r)
	case Adopt:
		return m.doneAdopt(r)
	case OfFleet:
		return m.doneFleet(op, r)
	case First, Candidate:
		return m.doneCandidate(in, op, r)
	case Claim:
		return m.doneClaim(op, r)
	case Extend:
		return m.doneExtend(op, r)
	case Release:
		return m.doneRelease(op, r)
	default: // Raise
		return m.doneRaise(r)
	}
}

// Learn notes the highest limit of cells that were read, but for those that lie ahead on purpose.
func (m *Machine) Learn(cells ...Cell) {
	for _, c := range cells {
		if !c.Damaged && !c.Record.Reserved && c.Record.Past == "" {
			m.most = max(m.most, c.Record.Limit)
		}
	}
}

// forget drops the state of a restored memory. It does not release the cell, which is
// the original's.
func (m *Machine) forget(in Input) {
	*m = Machine{Config: m.Config, token: in.Name, most: m.most, least: m.least, over: m.over, sealed: m.sealed, used: m.used}
}

// front is the first tick that is still needed: the clock's, or that of the next slot if
// it is ahead of the clock.
func (in *Input) front() uint64 { return max(in.Now, in.Used) }

// record is a record of this process's, for a cell whose last writes have these names.
func (m *Machine) record(in Input, floor, limit uint64, last []string) cell.Node {
	return cell.Node{
		Holder: m.token, Owner: m.Owner, Floor: floor, Limit: limit, Window: m.Window,
		Write: in.Name, Last: last, Layout: m.Config.Layout,
	}
}

// unheld is record without a holder.
func (m *Machine) unheld(in Input, floor, limit uint64, last []string) cell.Node {
	r := m.record(in, floor, limit, last)
	r.Holder, r.Owner = "", ""
	return r
}

// number is a number without ticks.
func number(node int64) window.Range { return window.Range{Node: node} }
