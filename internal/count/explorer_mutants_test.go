package count

import (
	"testing"

	"github.com/tickflake/tickflake/internal/sim/explore"
)

// ops is what the machine of a process does next, or a mutant.
func (t try) ops(s *state, p *process, in Input) Op {
	m := &p.machine
	last := len(m.owned) - 1
	switch x := t.broken; {
	case x == "S1_REFRESH" && p.again != nil && !in.Closing:
		r := s.now.Record
		r.From, r.Next = p.again.From, p.again.To
		r.Most = max(r.Most, r.Next)
		return in.write(Refill, s.now.Cell, r, *p.again)
	case x == "S1_TOKEN":
		in.Name = p.token
	case x == "S3_BOTH" && in.Closing && last > 0:
		m.owned = []Range{{m.owned[0].From, m.owned[last].To}}
	case x == "GAP" && in.Closing && last >= 0:
		m.owned = []Range{{max(m.owned[last].From, m.known.Record.From), m.owned[last].To}}
	}
	op := m.Next(in)
	switch x := t.broken; {
	case x == "S3_NEXT" && op.Kind == None && in.Closing && last >= 0 && m.owned[last].unused(in.Used) > 0:
		r := m.known.Record
		r.Next = max(m.owned[last].From, in.Used)
		r.From = r.Next
		return in.write(Close, m.known, r, Range{r.Next, m.owned[last].To})
	case x == "S7" && op.Why == Refill:
		op.Range.To = op.Range.From + in.Want
		op.Record.Next = op.Range.To
		op.Record.Most = max(op.Record.Most, op.Record.Next)
	}
	return op
}

// events is what the machine of a process makes of a result, or a mutant.
func (t try) events(p *process, in Input, op Op, r Result) []Event {
	m, c := &p.machine, &r.Cell.Record
	known, top, most := m.known, m.top, m.back.most
	read, hides := op.Kind == Read && r.Status == OK, false
	if read {
		switch t.broken {
		case "S1_VALUE":
			for _, q := range m.pending {
				if !q.Back && q.To == c.Next {
					c.Write = q.Name
				}
			}
		case "S6_MARK":
			c.Lost = false
		case "S6_SET":
			if !c.Lost {
				c.Creation = known.Record.Creation
			}
		case "DELETED":
			c.Deleted = false
		default:
			hides = t.hides(m, r.Cell)
		}
	}
	switch failed, x := r.Status == Failed, t.broken; {
	case x == "S1_REFRESH" && op.Why == Refill:
		if p.again = nil; failed {
			p.again = &op.Range
		}
	case (x == "S1_SUCCESS" || x == "LANE") && op.Why == Refill && failed:
		r.Status = OK
	case x == "S2_UNSEAL" && op.Why == Close && failed:
		p.window.sealed = false
	}
	hidden := m.known
	events := m.Done(in, op, r)
	switch x := t.broken; {
	case x == "S3_AGAIN" && op.Why == Close:
		m.pending = nil
	case x == "S4" && len(events) > 0 && events[0].Kind == Granted:
		events = append(events, events[0])
	case x == "S5":
		for i := range events {
			events[i].Upto = in.Arrived
		}
	case x == "S6_AGAIN" && op.Why == Mark && r.Status != OK:
		m.back = back{}
	case hides:
		if m.known.Version == hidden.Version && m.known.Record.Write == hidden.Record.Write { // it has learned nothing
			m.known = known
		}
		m.top, m.back.most = max(m.top, top), most
	}
	return events
}

// hides has the machine forget for one read what it knows of the cell, in part.
func (t try) hides(m *Machine, read Cell) bool {
	known := &m.known.Record
	fewer := read.Record.Writes < known.Writes
	switch t.broken {
	case "S6":
		*known, m.top, m.back.most = read.Record, 0, 0
	case "S6_WRITES":
		if fewer {
			known.Writes = 0
		}
	case "S6_SAME":
		if !fewer && !m.shows(read) {
			known.Writes = 0
		}
	case "S6_MOST":
		known.Most, m.back.most = 0, 0
	case "S6_FROM":
		m.top = 0
	default:
		return false
	}
	return true
}

// blind reports whether the store does not look at the version of a write.
func (w *world) blind(f *write) bool {
	return w.broken == "SWAP" || w.broken == "S3_VERSION" && f.why == Close
}

var (
	plainWorld = world{procs: 2, numbers: 4, step: 2, batch: 1, kept: 1, lose: true, lax: true}
	farWorld   = world{procs: 2, numbers: 4, step: 2, batch: 1, lose: true, lax: true}
	backWorld  = world{procs: 2, numbers: 3, step: 2, batch: 1, kept: 1, writes: 4, flying: 1, back: true, lose: true}
	// Few names and few kinds of steps, so that long ways are found soon.
	backFar      = world{procs: 2, numbers: 4, step: 2, batch: 1, writes: 4, flying: answered, back: true, lose: true}
	backAgain    = world{procs: 2, numbers: 3, step: 1, batch: 1, writes: 4, flying: 1, back: true, lose: true}
	backSet      = world{procs: 2, numbers: 2, step: 1, batch: 1, writes: 5, back: true}
	deletedWorld = world{procs: 2, numbers: 4, step: 2, batch: 1, kept: 1, lose: true, remove: true}
	orderedWorld = world{procs: 2, numbers: 4, step: 2, batch: 1, kept: 1, calls: 2, ordered: true, lose: true}
	cleanWorld   = world{procs: 1, numbers: 5, step: 2, batch: 1, kept: 1, clean: true}
)

// mutants are the ways to break the protocol: what differs from the real machine, store, operator, driver or
// window, the world in which a search finds it, and what it finds.
var mutants = []struct {
	name, change string
	in           world
	catch        error
}{
	{"S1_REFRESH", "machine: an unknown refill is taken for a failure, and the same range is sent again with the cell's new version", plainWorld, errOwners},
	{"S1_SUCCESS", "machine: an unknown refill is believed, and not read back", plainWorld, errOwners},
	{"LANE", "machine: a lane is drawn without knowing that its write landed", world{procs: 2, numbers: 2, step: 1, batch: 1, kept: 1, lose: true, lax: true, anew: true}, errOwners},
	{"S1_VALUE", "machine: read back by value: next is as we wrote it, so it was ours", plainWorld, errOwners},
	{"S1_TOKEN", "machine: a write has the name of its process, and is read back by that", plainWorld, errOwners},
	{"S2_EARLY", "driver: the rest is given back before the window is sealed", plainWorld, errOwners},
	{"S2_UNSEAL", "driver: unsealed when the give-back timed out", plainWorld, errOwners},
	{"S3_VERSION", "store: a give-back ignores the version", plainWorld, errOwners},
	{"S3_NEXT", "machine: the give-back does not look whether the rest is still the last range", plainWorld, errOwners},
	{"S3_AGAIN", "machine: a give-back of unknown outcome is repeated with another version of the cell", farWorld, errTwice},
	{"S3_BOTH", "machine: two ranges that do not adjoin are given back as one", plainWorld, errOwners},
	{"S4", "driver: a refill that a call waits for and a prefetch both put the range into the window", plainWorld, errTwice},
	{"S5", "machine: the calls that had arrived are looked up when the answer comes, not before the write is sent", orderedWorld, errEarly},
	{"S6", "machine: a store that went back is not noticed", backWorld, errKnown},
	{"S6_WRITES", "machine: fewer writes than it knows are no sign", backWorld, errKnown},
	{"S6_SAME", "machine: the names of the last writes without the one that it knows are no sign", backWorld, errKnown},
	{"S6_MOST", "machine: a lower most is no sign", backFar, errKnown},
	{"S6_FROM", "machine: a later grant that begins below the end of ours is no sign", backFar, errOwnTop},
	{"S6_REVOKE", "driver: a process that finds it issues the rest of its range", backWorld, errKnown},
	{"S6_MARK", "machine: the mark is ignored", backWorld, errMarked},
	{"S6_AGAIN", "machine: the mark meets another write, and the process forgets the proof", backAgain, errKnown},
	{"S6_SET", "machine: a process that did not read the mark before next was raised keeps its range", backSet, errUnsafe},
	{"S7", "machine: a grant crosses the maximum", plainWorld, errMaximum},
	{"DELETED", "machine: a deletion is ignored", deletedWorld, errDeleted},
	{"SWAP", "store: writes ignore the version", plainWorld, errOwners},
	{"SET", "operator: lowers next", plainWorld, errOwners},
	{"GAP", "machine: of two ranges that adjoin only the last is given back", cleanWorld, errGap},
}

// TestMutants makes sure that a search finds each way to break the protocol.
func TestMutants(t *testing.T) {
	var list []explore.Mutant[state]
	for _, m := range mutants {
		m.in.broken = m.name
		list = append(list, explore.Mutant[state]{Name: m.name, Change: m.change, Model: &m.in, Err: m.catch})
	}
	explore.Mutants(t, list)
}
