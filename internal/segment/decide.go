package segment

import "github.com/tickflake/tickflake/internal/cell"

// State is the knowledge of a process before a round writes. All numbers are indexes.
type State struct {
	Name string // of this round's write, new and random

	// Want is how many indexes the process would have, and Need the fewest of use: for
	// fewer it writes nothing. Room counts the indexes that it owns at the end of its last
	// range: together with a grant that adjoins them they count for Need.
	Want, Need, Room uint64
	Closing          bool   // the window is sealed: the rest is to be given back
	Used             uint64 // the first unused index of the window
	Owned            []Range
	Seen             Seen
	Pending          []Pending // writes of unknown outcome; all are conditional on one version
	Proof            bool      // the store went back, and the mark has not landed so far
}

// Range is the indexes from From up to, but not including, To.
type Range struct{ From, To uint64 }

// Seen is the most that a process has read or owned of a cell.
type Seen struct {
	*cell.Sequence        // the last record that it read or wrote; not changed
	Top            uint64 // the end of its last grant
}

// Pending is a write of unknown outcome.
type Pending struct {
	Name string
	Range
	Upto uint64 // in ordered mode: the last call that began before the write was sent
}

// MaxPending is how many names of writes of unknown outcome are remembered. A forgotten
// write that lands looks like another process's write: its indexes are never used.
const MaxPending = 64

// Cell is the cell of a sequence as it was read.
type Cell struct {
	Version uint64 // 0: there is none
	Record  cell.Sequence
}

// Kind says what a [Decision] does.
type Kind uint8

const (
	// Nothing: there is nothing to do.
	Nothing Kind = iota
	// Adopt: a write of unknown outcome has landed. Range was granted.
	Adopt
	// Grant, GiveBack and Mark are writes: Version and Record. Grant makes Range the
	// process's own. GiveBack gives Range back. Mark says that the store has lost writes.
	Grant
	GiveBack
	Mark
	// GivenBack: our own give-back has landed.
	GivenBack
	// Marked: a process has found that the store lost writes.
	Marked
	// Raised: the cell was marked, and next was raised since. The indexes that this process
	// owns may have been granted to others before the mark.
	Raised
	// Exhausted: fewer indexes are left than the process needs.
	Exhausted
	// Deleted: the sequence was deleted, and perhaps created anew.
	Deleted
	// Exported: the sequence was moved to another store. The process keeps what it owns.
	Exported
)

// Writes reports whether a decision of this kind is a write.
func (k Kind) Writes() bool { return k == Grant || k == GiveBack || k == Mark }

// Decision is what a round does.
type Decision struct {
	Kind    Kind
	Version uint64
	Record  cell.Sequence
	Range   Range
	Upto    uint64 // of the pending write that Adopt has found
}

// Decide returns what a round does. The result depends only on the arguments.
func Decide(s State, c Cell) Decision {
	r := c.Record
	if s.unsure(r) { // (3)
		s.Owned, s.Pending, s.Seen.Top = nil, nil, 0
	}
	switch {
	case c.Version == 0:
		return s.mark(c)
	case r.ID != s.Seen.ID && r.Lost:
		return Decision{Kind: Marked}
	case r.ID != s.Seen.ID && r.Creation <= s.Seen.Creation:
		return s.mark(c) // created anew in a store that lost all, or restored from before a deletion
	case r.ID != s.Seen.ID || r.Deleted:
		return Decision{Kind: Deleted}
	case WentBack(s.Seen, s.Pending, r): // (7)
		return s.mark(c)
	case r.Lost:
		return Decision{Kind: Marked}
	case r.Creation != s.Seen.Creation: // (7)
		return Decision{Kind: Raised}
	case s.Proof: // others have written more meanwhile
		return s.mark(c)
	}
	for _, p := range s.Pending {
		switch {
		case p.Name != r.Write: // (4)
		case r.Next == p.From:
			return Decision{Kind: GivenBack, Range: p.Range}
		default:
			return Decision{Kind: Adopt, Range: p.Range, Upto: p.Upto}
		}
	}
	switch {
	case s.Closing && !r.Move.Exported():
		return s.giveBack(c)
	case s.Closing, s.Want == 0:
		return Decision{Kind: Nothing}
	case r.Move.Exported(): // (8)
		return Decision{Kind: Exported, Record: r}
	}
	return s.grant(c)
}

// WentBack reports whether a record proves that the store has lost a write that this process
// has read or made.
func WentBack(seen Seen, pending []Pending, r cell.Sequence) bool {
	if r.Writes < seen.Writes || r.Most < seen.Most || r.Writes == seen.Writes && r.Write != seen.Write {
		return true
	}
	if r.Write == seen.Write {
		return false
	}
	for _, p := range pending {
		if r.Write == p.Name {
			return false
		}
	}
	return r.From < seen.Top // every later grant begins at or above the end of ours
}

// unsure reports whether a give-back may have landed before the write of another process. Then
// others may have been granted the indexes. If the cell was written once, that write came in
// place of ours.
func (s State) unsure(r cell.Sequence) bool {
	if r.Writes == s.Seen.Writes+1 {
		return false
	}
	unsure := false
	for _, p := range s.Pending {
		if r.Write == p.Name || r.Write == s.Seen.Write {
			return false
		}
		unsure = unsure || p.From < p.To && p.From < s.Seen.Next // no mark
	}
	return unsure
}

// grant takes Want indexes, or as many as are left.
func (s State) grant(c Cell) Decision {
	r, left := c.Record, c.Record.Left()
	take := min(s.Want, left) // (2)
	have := take
	if n := len(s.Owned); n > 0 && s.Owned[n-1].To == r.Next {
		if s.Need > s.Room { // a call waits, and a part of its numbers is reserved already
			take = min(s.Want-s.Room, left)
		}
		have = take + s.Room
	}
	if take == 0 || have < s.Need {
		return Decision{Kind: Exhausted, Record: r}
	}
	r.From, r.Next = r.Next, r.Next+take // (1)
	r.Most = max(r.Most, r.Next)
	return s.write(Grant, c, r, Range{r.From, r.Next})
}

// giveBack gives back the unused indexes at the end of the owned ranges. It writes without
// any as well if a write is in flight, which can then no longer land and lose its indexes. If
// another process has written since, it can no longer land anyway.
func (s State) giveBack(c Cell) Decision {
	r := c.Record
	low := r.Next
	for i := len(s.Owned) - 1; i >= 0 && s.Owned[i].To == low; i-- { // (3)
		low = max(s.Owned[i].From, min(s.Used, low))
		if low > s.Owned[i].From {
			break
		}
	}
	if low == r.Next && (len(s.Pending) == 0 || r.Write != s.Seen.Write) {
		return Decision{Kind: Nothing}
	}
	back := Range{low, r.Next}
	r.From, r.Next = low, low
	return s.write(GiveBack, c, r, back)
}

// mark says that the store has lost writes. A newcomer in an emptied store finds the mark
// instead of no sequence.
func (s State) mark(c Cell) Decision {
	r := *s.Seen.Sequence
	if c.Record.ID == r.ID && c.Record.Writes > r.Writes { // Set has changed them since
		r.Max, r.MinStep, r.MaxStep = c.Record.Max, c.Record.MinStep, c.Record.MaxStep
	}
	if c.Record.Move.Exported() {
		r.Move = c.Record.Move // (8)
	}
	most := c.Record.Most
	if c.Record.ID != r.ID { // another sequence that the cell has had meanwhile counts as deleted
		r.Before = max(r.Before, c.Record.Granted())
		most = min(r.Index(c.Record.Granted()), cell.MaxIndex)
	}
	r.Most = max(r.Most, s.Seen.Top, most)
	r.Writes, r.Creation = max(r.Writes, c.Record.Writes), max(r.Creation, c.Record.Creation)+1
	r.Next, r.From, r.Lost, r.Deleted = r.Most, r.Most, true, false
	r.Max = max(r.Max, r.LastNumber())
	return s.write(Mark, c, r, Range{})
}

func (s State) write(kind Kind, c Cell, r cell.Sequence, grant Range) Decision {
	r.Writes++
	r.Write, r.Last = s.Name, c.Record.Names()
	return Decision{Kind: kind, Version: c.Version, Record: r, Range: grant}
}
