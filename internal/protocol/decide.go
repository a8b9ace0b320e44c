package protocol

import (
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
)

// State is the knowledge of a keeper after a round has read. All times are ticks.
type State struct {
	// Parameters of the keeper, the same in every round.
	Token, Owner, Layout string
	Window               uint64 // the length of a grant
	End                  uint64 // the end of the layout's time: no limit is above it
	Node                 int64  // the only node number to claim, or -1 for any
	Locker               bool   // the store is a Locker: a cell that is not locked is free

	Now  uint64 // the clock's tick
	Used uint64 // the first unused tick of the window: no slot of it or of a later one was taken
	Name string // of this round's write, new and random
	Pick uint64 // random: chooses between equal candidates

	Due     bool // the grant is to be extended
	Closing bool // the window is sealed: the cell is to be released
	Issued  bool // the window has the grant of Held, so slots of it may be taken

	Held   *Held     // the cell that this process holds, or nil
	Claims []Pending // claims of unknown outcome
	Raise  *Raise    // a cell whose limit the store has lost, or nil
	Least  uint64    // no claim begins below: above 0 once the store went back
}

// Held is a cell that this process holds.
type Held struct {
	Node    int64
	Version uint64 // the last one that it wrote or adopted
	Floor   uint64 // of its claim
	Limit   uint64 // that the store is known to have, or that of a release that may have landed
	// Names are those of the write of Version and of the writes before it: see [cell.Node.Names].
	Names []string
	// Pending are the names of extensions and releases of unknown outcome. Each is
	// conditional on Version, so at most one of them can land.
	Pending []string
}

// Pending is a claim of unknown outcome.
type Pending struct {
	Node    int64
	Version uint64 // the claim lands only if the cell still has it
	Name    string
	Floor   uint64
}

// Raise is a cell with a limit that this process owned and the store has lost.
type Raise struct {
	Node  int64
	Limit uint64
}

// MaxPending is how many names of writes of unknown outcome are remembered. A forgotten
// write that lands looks like another process's write: it costs the number, and makes no
// duplicate.
const MaxPending = 64

// Read has the cells that a round has read.
type Read struct {
	// Held is the cell of State.Held or State.Raise, or nil if the round did not read it:
	// an ordinary extension does not.
	Held *Cell
	// Claimed has the cell of a claim that has landed, if any. Else Cells are the candidates
	// for a claim, and Others counts the other numbers that were read: they are held,
	// reserved or damaged. All are empty if this process holds a cell.
	Claimed, Cells []Cell
	Others         int
}

// Cell is the cell of a node number as it was read.
type Cell struct {
	Node    int64
	Version uint64 // 0: there is none
	Record  cell.Node
	Still   bool // its version has not changed for two windows of the reader's monotonic time
	Taken   bool // another process was faster, or a living process has locked it
	Damaged bool // it cannot be read
}

// Kind says what a [Decision] does.
type Kind uint8

const (
	// Nothing: there is nothing to do.
	Nothing Kind = iota
	// Adopt: a write of unknown outcome has landed. Held is the cell that the process holds.
	Adopt
	// Extend, Claim, Release and Lift are writes: Node, Version and Record. For Extend and
	// Claim, Held is the cell after the write is acknowledged, without the new
	// version. Lift raises the cell of State.Raise.
	Extend
	Claim
	Release
	Lift
	// Lifted: the cell of State.Raise has its limit again.
	Lifted
	// Released: our own release has landed.
	Released
	// Lost: another process took the cell of State.Held. The rest of the grant remains.
	Lost
	// WentBack: the cell of State.Held is gone, or its limit is below the one that this
	// process owns, or another claim of it began below that limit: the store lost an acknowledged
	// write.
	WentBack
	// Full: none of the candidates is free.
	Full
	// EndOfTime: no tick is left before State.End.
	EndOfTime
)

// Writes reports whether a decision of this kind is a write.
func (k Kind) Writes() bool { return k == Extend || k == Claim || k == Release || k == Lift }

// Decision is what a round does.
type Decision struct {
	Kind    Kind
	Node    int64
	Version uint64
	Record  cell.Node
	Held    Held
}

// Decide returns what a round does. The result depends only on the arguments.
func Decide(s State, r Read) Decision {
	switch {
	case s.Raise != nil:
		return s.lift(r.Held)
	case s.Held != nil:
		return s.keep(r.Held)
	}
	return s.claim(r)
}

// keep decides about the held cell. c is nil if the round did not read it.
func (s State) keep(c *Cell) Decision {
	h := *s.Held
	if c != nil {
		switch {
		case c.Damaged:
			return Decision{Kind: Lost, Node: h.Node}
		case slices.Contains(h.Pending, c.Record.Write) && c.Record.Holder == "":
			return Decision{Kind: Released, Node: h.Node, Record: c.Record} // (4)
		case c.Version == 0 || c.Record.Limit < h.Limit:
			// Every other writer keeps the limit or raises it. Only we may lower our limit.
			return Decision{Kind: WentBack, Node: h.Node, Record: c.Record}
		case c.Version == h.Version: // no write has landed so far
		case slices.Contains(h.Pending, c.Record.Write): // (4)
			h.Version, h.Limit, h.Names, h.Pending = c.Version, c.Record.Limit, c.Record.Names(), nil
			return Decision{Kind: Adopt, Node: h.Node, Held: h}
		case c.Record.Floor < h.Limit && c.Record.Holder != s.Token:
			// (1) is broken: another claim began below our limit. If the token is ours,
			// a copy of this process's memory has extended our claim.
			return Decision{Kind: WentBack, Node: h.Node, Record: c.Record}
		default: // (2)
			return Decision{Kind: Lost, Node: h.Node, Record: c.Record}
		}
	}
	switch {
	case s.Closing:
		// (3) While the window has another grant, Used says nothing about this one.
		limit := h.Floor
		if s.Issued {
			limit = min(max(h.Floor, s.Used), h.Limit)
		}
		r := s.record(h.Floor, limit, h.Names)
		r.Holder, r.Owner = "", ""
		return Decision{Kind: Release, Node: h.Node, Version: h.Version, Record: r}
	case !s.Due:
		return Decision{Kind: Nothing}
	}
	was := h
	h.Limit = max(h.Limit, min(s.front()+s.Window, s.End)) // (2)
	r := s.record(h.Floor, h.Limit, h.Names)
	h.Names, h.Pending = r.Names(), nil
	return Decision{Kind: Extend, Node: h.Node, Version: was.Version, Record: r, Held: h}
}

// claim decides which number to take.
func (s State) claim(r Read) Decision {
	for _, p := range s.Claims {
		for _, c := range r.Claimed {
			if c.Node == p.Node && c.Version != 0 && !c.Damaged && c.Record.Write == p.Name { // (4)
				return Decision{Kind: Adopt, Node: c.Node, Held: Held{Node: c.Node, Version: c.Version, Floor: p.Floor, Limit: c.Record.Limit, Names: c.Record.Names()}}
			}
		}
	}
	if s.Closing {
		return Decision{Kind: Nothing}
	}
	best, rank := s.Choose(r.Cells)
	switch {
	case rank == None && r.Others == 0 && s.over(r.Cells):
		return Decision{Kind: EndOfTime}
	case rank == None:
		return Decision{Kind: Full}
	}
	floor := s.floor(best) // (1)
	if floor >= s.End {
		return Decision{Kind: EndOfTime}
	}
	limit := min(max(floor, s.front())+s.Window, s.End)
	write := s.record(floor, limit, best.Record.Names())
	return Decision{
		Kind: Claim, Node: best.Node, Version: best.Version, Record: write,
		Held: Held{Node: best.Node, Floor: floor, Limit: limit, Names: write.Names()},
	}
}

// floor is where a claim of a cell begins: never below the cell's limit.
func (s State) floor(c Cell) uint64 { return max(s.Now, c.Record.Limit, s.Least) }

// lift decides about a cell of a store that went back. Its limit becomes at least ours
// again, so that no later claim is granted our ticks a second time.
func (s State) lift(c *Cell) Decision {
	if c == nil || c.Damaged || c.Version != 0 && c.Record.Limit >= s.Raise.Limit {
		return Decision{Kind: Lifted, Node: s.Raise.Node}
	}
	r := s.record(s.Raise.Limit, s.Raise.Limit, c.Record.Names())
	r.Holder, r.Owner = "", ""
	return Decision{Kind: Lift, Node: s.Raise.Node, Version: c.Version, Record: r}
}

// front is the first tick that is still needed: the clock's, or that of the next slot if
// it is ahead of the clock.
func (s State) front() uint64 { return max(s.Now, s.Used) }

// record is a write over the cell whose last writes have these names.
func (s State) record(floor, limit uint64, names []string) cell.Node {
	return cell.Node{Format: cell.Format, Holder: s.Token, Owner: s.Owner, Floor: floor, Limit: limit, Window: s.Window, Write: s.Name, Last: names, Layout: s.Layout}
}
