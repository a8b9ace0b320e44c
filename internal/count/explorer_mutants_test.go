package count

import (
	"testing"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/explore"
)

// mutant says how a world differs from the real one: its machine, store, operator, driver or window.
type mutant struct {
	name, change string
	catch        error

	next  func(t *try, p *process, in Input) Op                       // in place of Next
	done  func(t *try, p *process, in Input, op Op, r Result) []Event // in place of Done
	blind func(*write) bool                                           // the store does not look at the version
	lower bool                                                        // an operator lowers next
	early bool                                                        // the window is not sealed
	keeps bool                                                        // the window is not revoked
	token bool                                                        // all writes of a process have one name
	lax   bool                                                        // only a number that is issued or owned twice is looked for
}

// mutated is what a mutant keeps in a process.
type mutated struct {
	token string
	again *Op // that is sent again
}

func (m *mutated) key(k *keys) {
	if m.again != nil {
		k.Add(m.again.Range.From, m.again.Range.To)
	}
	k.Add(k.role(m.token))
}

func (t *try) ops(p *process, in Input) Op {
	if t.mutant.next != nil {
		return t.mutant.next(t, p, in)
	}
	return p.machine.Next(in)
}

func (t *try) events(p *process, in Input, op Op, r Result) []Event {
	if t.mutant.done != nil {
		return t.mutant.done(t, p, in, op, r)
	}
	return p.machine.Done(in, op, r)
}

// hide has the machine read a cell as if it knew something else of it.
func hide(change func(m *Machine, read Cell)) func(*try, *process, Input, Op, Result) []Event {
	return func(_ *try, p *process, in Input, op Op, r Result) []Event {
		m := &p.machine
		if op.Kind != Read || r.Status != OK {
			return m.Done(in, op, r)
		}
		known, top, most := m.known, m.top, m.back.most
		change(m, r.Cell)
		hidden := m.known
		events := m.Done(in, op, r)
		if m.known.Version == hidden.Version && m.known.Record.Write == hidden.Record.Write { // it has learned nothing
			m.known = known
		}
		m.top, m.back.most = max(m.top, top), most
		return events
	}
}

// reading changes the cells that the machine reads.
func reading(change func(m *Machine, read *cell.Sequence)) func(*try, *process, Input, Op, Result) []Event {
	return func(_ *try, p *process, in Input, op Op, r Result) []Event {
		if op.Kind == Read && r.Status == OK {
			change(&p.machine, &r.Cell.Record)
		}
		return p.machine.Done(in, op, r)
	}
}

var (
	plainWorld = world{procs: 2, numbers: 4, step: 2, batch: 1, kept: 1, lose: true}
	farWorld   = world{procs: 2, numbers: 4, step: 2, batch: 1, lose: true}
	backWorld  = world{procs: 2, numbers: 3, step: 2, batch: 1, kept: 1, writes: 4, flying: 1, back: true, lose: true}
	// Few names and few kinds of steps, so that long ways are found soon.
	backFar      = world{procs: 2, numbers: 4, step: 2, batch: 1, writes: 4, flying: answered, back: true, lose: true}
	backAgain    = world{procs: 2, numbers: 3, step: 1, batch: 1, writes: 4, flying: 1, back: true, lose: true}
	backSet      = world{procs: 2, numbers: 2, step: 1, batch: 1, writes: 5, back: true}
	deletedWorld = world{procs: 2, numbers: 4, step: 2, batch: 1, kept: 1, lose: true, remove: true}
	orderedWorld = world{procs: 2, numbers: 4, step: 2, batch: 1, kept: 1, calls: 2, ordered: true, lose: true}
)

var mutants = []struct {
	world
	mutant
}{
	{plainWorld, mutant{
		name: "S1_REFRESH", change: "machine: an unknown refill is taken for a failure, and the same range is sent again with the cell's new version", catch: errOwners, lax: true,
		done: func(_ *try, p *process, in Input, op Op, r Result) []Event {
			if op.Why == Refill {
				p.mutated.again = nil
				if r.Status == Failed {
					p.mutated.again = &op
				}
			}
			return p.machine.Done(in, op, r)
		},
		next: func(t *try, p *process, in Input) Op {
			again := p.mutated.again
			if again == nil || in.Closing {
				return p.machine.Next(in)
			}
			r := t.was.now.Record
			r.From, r.Next = again.Range.From, again.Range.To
			r.Most = max(r.Most, r.Next)
			return in.write(Refill, t.was.now.Cell, r, again.Range)
		},
	}},
	{plainWorld, mutant{
		name: "S1_SUCCESS", change: "machine: an unknown refill is believed, and not read back", catch: errOwners, lax: true,
		done: func(_ *try, p *process, in Input, op Op, r Result) []Event {
			if op.Why == Refill && r.Status == Failed {
				r.Status = OK
			}
			return p.machine.Done(in, op, r)
		},
	}},
	{plainWorld, mutant{
		name: "S1_VALUE", change: "machine: read back by value: next is as we wrote it, so it was ours", catch: errOwners, lax: true,
		done: reading(func(m *Machine, r *cell.Sequence) {
			for _, p := range m.pending {
				if !p.Back && p.To == r.Next {
					r.Write = p.Name
				}
			}
		}),
	}},
	{plainWorld, mutant{
		name: "S1_TOKEN", change: "machine: a write has the name of its process, and is read back by that", catch: errOwners, lax: true, token: true,
		next: func(_ *try, p *process, in Input) Op {
			in.Name = p.mutated.token
			return p.machine.Next(in)
		},
	}},
	{plainWorld, mutant{name: "S2_EARLY", change: "driver: the rest is given back before the window is sealed", catch: errOwners, lax: true, early: true}},
	{plainWorld, mutant{
		name: "S2_UNSEAL", change: "driver: unsealed when the give-back timed out", catch: errOwners, lax: true,
		done: func(_ *try, p *process, in Input, op Op, r Result) []Event {
			if op.Why == Close && r.Status == Failed {
				p.window.sealed = false
			}
			return p.machine.Done(in, op, r)
		},
	}},
	{plainWorld, mutant{name: "S3_VERSION", change: "store: a give-back ignores the version", catch: errOwners, lax: true, blind: func(f *write) bool { return f.why == Close }}},
	{plainWorld, mutant{
		name: "S3_NEXT", change: "machine: the give-back does not look whether the rest is still the last range", catch: errOwners, lax: true,
		next: func(_ *try, p *process, in Input) Op {
			op := p.machine.Next(in)
			m := &p.machine
			n := len(m.owned) - 1
			if op.Kind != None || !in.Closing || n < 0 || m.owned[n].unused(in.Used) == 0 {
				return op
			}
			r := m.known.Record
			r.Next = max(m.owned[n].From, in.Used)
			r.From = r.Next
			return in.write(Close, m.known, r, Range{r.Next, m.owned[n].To})
		},
	}},
	{farWorld, mutant{
		name: "S3_AGAIN", change: "machine: a give-back of unknown outcome is repeated with another version of the cell", catch: errTwice, lax: true,
		done: func(_ *try, p *process, in Input, op Op, r Result) []Event {
			events := p.machine.Done(in, op, r)
			if op.Why == Close {
				p.machine.pending = nil
			}
			return events
		},
	}},
	{plainWorld, mutant{
		name: "S3_BOTH", change: "machine: two ranges that do not adjoin are given back as one", catch: errOwners, lax: true,
		next: func(_ *try, p *process, in Input) Op {
			if m := &p.machine; in.Closing && len(m.owned) > 1 {
				m.owned = []Range{{m.owned[0].From, m.owned[len(m.owned)-1].To}}
			}
			return p.machine.Next(in)
		},
	}},
	{plainWorld, mutant{
		name: "S4", change: "driver: a refill that a call waits for and a prefetch both put the range into the window", catch: errTwice, lax: true,
		done: func(_ *try, p *process, in Input, op Op, r Result) []Event {
			events := p.machine.Done(in, op, r)
			if len(events) > 0 && events[0].Kind == Granted {
				events = append(events, events[0])
			}
			return events
		},
	}},
	{orderedWorld, mutant{
		name: "S5", change: "machine: the calls that had arrived are looked up when the answer comes, not before the write is sent", catch: errEarly,
		done: func(_ *try, p *process, in Input, op Op, r Result) []Event {
			events := p.machine.Done(in, op, r)
			for i := range events {
				events[i].Upto = in.Arrived
			}
			return events
		},
	}},
	{backWorld, mutant{
		name: "S6", change: "machine: a store that went back is not noticed", catch: errKnown,
		done: hide(func(m *Machine, read Cell) { m.known.Record, m.top, m.back.most = read.Record, 0, 0 }),
	}},
	{backWorld, mutant{
		name: "S6_WRITES", change: "machine: fewer writes than it knows are no sign", catch: errKnown,
		done: hide(func(m *Machine, read Cell) {
			if read.Record.Writes < m.known.Record.Writes {
				m.known.Record.Writes = 0
			}
		}),
	}},
	{backWorld, mutant{
		name: "S6_SAME", change: "machine: the names of the last writes without the one that it knows are no sign", catch: errKnown,
		done: hide(func(m *Machine, read Cell) {
			if read.Record.Writes >= m.known.Record.Writes && !m.shows(read) {
				m.known.Record.Writes = 0
			}
		}),
	}},
	{backFar, mutant{
		name: "S6_MOST", change: "machine: a lower most is no sign", catch: errKnown,
		done: hide(func(m *Machine, _ Cell) { m.known.Record.Most, m.back.most = 0, 0 }),
	}},
	{backFar, mutant{
		name: "S6_FROM", change: "machine: a later grant that begins below the end of ours is no sign", catch: errOwnTop,
		done: hide(func(m *Machine, _ Cell) { m.top = 0 }),
	}},
	{backWorld, mutant{name: "S6_REVOKE", change: "driver: a process that finds it issues the rest of its range", catch: errKnown, keeps: true}},
	{backWorld, mutant{
		name: "S6_MARK", change: "machine: the mark is ignored", catch: errMarked,
		done: reading(func(_ *Machine, r *cell.Sequence) { r.Lost = false }),
	}},
	{backAgain, mutant{
		name: "S6_AGAIN", change: "machine: the mark meets another write, and the process forgets the proof", catch: errKnown,
		done: func(_ *try, p *process, in Input, op Op, r Result) []Event {
			events := p.machine.Done(in, op, r)
			if op.Why == Mark && r.Status != OK {
				p.machine.back = back{}
			}
			return events
		},
	}},
	{backSet, mutant{
		name: "S6_SET", change: "machine: a process that did not read the mark before next was raised keeps its range", catch: errUnsafe,
		done: reading(func(m *Machine, r *cell.Sequence) {
			if !r.Lost {
				r.Creation = m.known.Record.Creation
			}
		}),
	}},
	{plainWorld, mutant{
		name: "S7", change: "machine: a grant crosses the maximum", catch: errMaximum, lax: true,
		next: func(_ *try, p *process, in Input) Op {
			op := p.machine.Next(in)
			if op.Why == Refill {
				op.Range.To = op.Range.From + in.Want
				op.Record.Next = op.Range.To
				op.Record.Most = max(op.Record.Most, op.Record.Next)
			}
			return op
		},
	}},
	{deletedWorld, mutant{
		name: "DELETED", change: "machine: a deletion is ignored", catch: errDeleted,
		done: reading(func(_ *Machine, r *cell.Sequence) { r.Deleted = false }),
	}},
	{plainWorld, mutant{name: "SWAP", change: "store: writes ignore the version", catch: errOwners, lax: true, blind: func(*write) bool { return true }}},
	{plainWorld, mutant{name: "SET", change: "operator: lowers next", catch: errOwners, lax: true, lower: true}},
	{world{procs: 1, numbers: 5, step: 2, batch: 1, kept: 1, clean: true}, mutant{
		name: "GAP", change: "machine: of two ranges that adjoin only the last is given back", catch: errGap,
		next: func(_ *try, p *process, in Input) Op {
			if m := &p.machine; in.Closing && len(m.owned) > 0 {
				last := m.owned[len(m.owned)-1]
				m.owned = []Range{{max(last.From, m.known.Record.From), last.To}}
			}
			return p.machine.Next(in)
		},
	}},
}

// TestMutants makes sure that a search finds each way to break the protocol.
func TestMutants(t *testing.T) {
	var list []explore.Mutant[state]
	for _, m := range mutants {
		m.world.mutant = m.mutant
		list = append(list, explore.Mutant[state]{Name: m.mutant.name, Change: m.change, Model: &m.world, Err: m.catch})
	}
	explore.Mutants(t, list)
}
