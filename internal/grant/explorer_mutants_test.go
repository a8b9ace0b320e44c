package grant

import (
	"slices"
	"testing"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/explore"
)

// mutant is a way to break the protocol, of those below.
type mutant string

// next changes an operation.
func (x mutant) next(s *state, p *proc, in Input, op Op) Op {
	switch {
	case p.again != nil && !in.Closing:
		op = *p.again
		op.Version = s.cells[op.Node].version
	case op.Kind != Swap:
	case x == "M2" && (op.Why == Claim || op.Why == Extend):
		op.Record.Limit = max(op.Record.Limit-1, op.Record.Floor, p.win.used)
	case x == "M12" && op.Why == Claim:
		op.Record.Floor = in.Now
	case x == "M13" && op.Why == Release:
		op.Record.Limit = max(p.win.issued, 1)
	case x == "RAISE" && op.Why == Raise:
		op.Record.Past, op.Record.Floor, op.Record.Limit = "", p.m.held.Limit, p.m.held.Limit
	case x == "LOWER" && op.Why == Extend:
		op.Record.Limit = min(in.Now+p.m.Window, p.m.End)
	}
	return op
}

// result changes what the machine is told.
func (x mutant) result(p *proc, in Input, op Op, r Result) Result {
	switch {
	case x == "M9_REFRESH" && op.Why == Claim:
		p.again = nil
		if r.Status == Failed {
			again := op // so that others are not copied to the heap
			p.again = &again
		}
	case x == "M9_SUCCESS" && op.Why == Claim && r.Status == Failed:
		return Result{Version: 1 << 40} // any
	case x == "M9_VERSION" && op.Why == Outcome && r.Status == OK:
		if i := slices.IndexFunc(p.m.claims, func(c Pending) bool { return c.Node == op.Node }); i >= 0 && r.Cell.Version != p.m.claims[i].Version {
			r.Cell.Record.Write = p.m.claims[i].Name
		}
	case x == "MISSED" && op.Why == Doubt && r.Cell.Record.Limit < p.m.held.Limit:
		limit := p.m.held.Limit
		r.Cell.Version = max(r.Cell.Version, 1)
		r.Cell.Record = cell.Node{Holder: "another", Floor: limit, Limit: limit, Write: "another's", Last: []string{p.m.held.Write}}
	case x == "PINNED" && op.Why == First:
		r.Cell.Record = cell.Node{}
	case x == "TOKEN" && op.Why == Doubt && r.Status == OK && r.Cell.Record.Holder == p.m.token:
		p.m.held.Pending = remember(p.m.held.Pending, "ours", maxPending)
		r.Cell.Record.Write = "ours"
	}
	return r
}

// moving is a world in which the fleet moves.
var moving = world{procs: 2, cells: 2, ticks: 3, moves: true}

// oldRows is a world in which a number is given to the past.
var oldRows = world{procs: 2, cells: 1, ticks: 2, past: true}

// mutants are the ways to break the protocol, each with a small world in which a search finds a
// tick that is stamped twice; with ALWAYS, a limit that is pushed ahead in vain, and with MISSED, the use of a grant that the
// store has lost.
var mutants = []struct {
	mutant
	change string
	in     world
}{
	{"M2", "what a process issues is reported from time to time, and not before", world{procs: 2, cells: 1, ticks: 2}},
	{"M5", "the grant is checked before use, and not at use", world{procs: 2, cells: 1, ticks: 2}},
	{"M9_REFRESH", "a claim of unknown outcome is sent again with the cell's new version", world{procs: 2, cells: 1, ticks: 2, net: 1}},
	{"M9_SUCCESS", "a claim of unknown outcome is taken for a success", world{procs: 2, cells: 1, ticks: 2, net: 1}},
	{"M9_VERSION", "a claim of unknown outcome is read back by the version of the cell", world{procs: 2, cells: 1, ticks: 2, net: 1}},
	{"TOKEN", "an extension of unknown outcome is read back by the holder", world{procs: 2, cells: 1, ticks: 2, net: 1, untold: true}},
	{"M11_EARLY", "the cell is released before the window is sealed", world{procs: 2, cells: 1, ticks: 2, net: 1}},
	{"M11_UNSEAL", "the window is unsealed when the release has an unknown outcome", world{procs: 2, cells: 1, ticks: 2, net: 1}},
	{"M12", "a claim begins at the clock, though the limit is above", world{procs: 2, cells: 1, ticks: 2, net: 1}},
	{"M13", "a release goes to the last stamp, though the own floor is above", world{procs: 2, cells: 2, ticks: 2}},
	{"LOWER", "an extension goes to the clock and a window, though the limit is above", world{procs: 2, cells: 1, ticks: 3}},
	{"LOWERED", "a release lowers the limit, though the window does not know what was stamped", world{procs: 2, cells: 1, ticks: 2, apart: true}},
	{"LATE", "a release lowers it until a moment after the program was started", world{procs: 2, cells: 1, ticks: 2, apart: true}},
	{"ALWAYS", "a release keeps it before the program was started", world{procs: 1, cells: 1, ticks: 2, apart: true}},
	{"ONLY_CLAIMED", "only a number that was claimed gets a final cell", world{procs: 2, cells: 2, ticks: 2, net: 1, moves: true}},
	{"ONLY_HELD", "only a number that is held gets a final cell", world{procs: 2, cells: 2, ticks: 2, net: 1, moves: true}},
	{"EARLY_LIMIT", "the limit is read before the cell is final", moving},
	{"EARLY_FOUND", "the new store has its fleet before the cell is final", moving},
	{"FORGETS", "a final cell forgets its limit", moving},
	{"FREE_FORGETS", "that of a number that no process holds", moving},
	{"NO_FLOOR", "what creates the new store's fleet is made without the fleet's floor", world{procs: 2, cells: 2, ticks: 3, moves: true, floor: 2}},
	{"LOWEST", "the new fleet's floor is the lowest limit", moving},
	{"NO_FAR", "a limit far ahead of the clock is dropped", moving},
	{"CELL_FIRST", "the new fleet's cell comes before the reservation", moving},
	{"HELD", "a number that had a holder is given to the past", oldRows},
	{"FLOOR", "a number is given to the past in a fleet with a floor", world{procs: 1, cells: 2, ticks: 3, past: true, moves: true, floor: 2}},
	{"LIMIT", "a cell that is given to the past keeps its limit", world{procs: 2, cells: 2, ticks: 2, past: true, moves: true}},
	{"ORDER", "a cell is given to the past before its lanes are defined", oldRows},
	{"MOVED", "a past number is used in the new store, too", world{procs: 1, cells: 2, ticks: 2, past: true, moves: true}},
	{"RESTORED", "past numbers are not retired when the store went back", world{procs: 1, cells: 1, ticks: 2, past: true, back: true, kept: 1}},
	{"MISSED", "a store that went back is taken for another process", world{procs: 2, cells: 1, ticks: 2, back: true, kept: 1}},
	{"RAISE", "raising a cell drops the mark of the past", world{procs: 2, cells: 1, ticks: 2, past: true, back: true, kept: 1, word: true}},
	{"PINNED", "a pinned number is claimed though it was given to the past", world{procs: 1, cells: 1, ticks: 2, past: true, pinned: true}},
}

// TestMutants makes sure that a search finds each way to break the protocol.
func TestMutants(t *testing.T) {
	var list []explore.Mutant[state]
	for _, m := range mutants {
		m.in.broken, m.in.window = m.mutant, 1
		want := errUnique
		switch m.mutant {
		case "ALWAYS":
			want = errAhead
		case "MISSED":
			want = errMissed
		}
		list = append(list, explore.Mutant[state]{Name: string(m.mutant), Change: m.change, Model: &m.in, Err: want})
	}
	explore.Mutants(t, list)
}
