package count

import (
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/explore"
)

// look notes what a process reads, for the checks. Fewer writes than it knows may be a stale read.
// If there are more writes since than the cell keeps names, that stays open, and the process may go on
// as one that has just begun.
func (t try) look(p *process, r *cell.Sequence) {
	if !t.back || uint8(r.Creation) != p.seen.marks {
		return
	}
	switch writes := uint8(r.Writes); {
	case writes < p.seen.writes:
		p.knows = true
	case writes == p.seen.writes && r.Write != p.seen.write, uint8(r.Most) < p.seen.most:
		p.knows, p.proof = true, true
	case !p.proof && int(writes-p.seen.writes) > len(r.Last):
		p.knows = false
	}
}

// sends sends a write.
func (t try) sends(s *state, i int8, p *process, in *Input, op Op, again bool) (explore.Step, error) {
	if op.Why == Refill && op.Range.To-op.Range.From > p.machine.Left(in.Used) {
		return in.says(i, "sends a write"), errMaximum
	}
	r := op.Record
	f := write{owner: i, why: op.Why, version: op.Version, record: &r, from: uint8(op.Range.From), to: uint8(op.Range.To), arrived: p.arrived}
	p.sentBy = p.arrived
	lands := f.version == s.now.Version || t.blind(&f)
	fate := t.pick(3)
	switch {
	case fate == 0 && t.lose && s.mayLand(&f, t.world) && (t.flying == 0 || len(s.flight) < t.flying):
		s.flight = append(s.flight[:len(s.flight):len(s.flight)], f)
		_, err := t.tell(s, i, p, *in, op, Result{Status: Failed})
		return in.says(i, "writes and hears nothing"), err
	case fate > 0 && !lands:
		events, err := t.tell(s, i, p, *in, op, Result{Status: Conflict})
		if fate == 2 && !again && events == 0 && err == nil {
			err = errAgain
		} else if fate == 2 {
			return explore.Impossible()
		}
		return in.says(i, "meets another write"), err
	case fate == 0 || !t.room(s) || fate == 2 && !t.ordered:
		return explore.Impossible()
	}
	what, err := "writes", t.land(s, f)
	s.running[i] = p // as it was
	if fate == 2 {   // while the answer is out, the calls end, and another one begins
		what = "writes, and other calls are there when it is answered"
		p.arrived++
		p.calls, in.Arrived = []call{{p.arrived, s.high, 1}}, p.arrived
	}
	if err == nil {
		_, err = t.tell(s, i, p, *in, op, Result{Version: s.now.Version})
	}
	if err == nil && op.Why == Close {
		err = t.leave(s, i)
	}
	return in.says(i, what), err
}

// network has a write land.
func (t try) network(s *state) (explore.Step, error) {
	k := t.pick(len(s.flight) + 1)
	if k == len(s.flight) || !t.room(s) {
		return explore.Impossible()
	}
	f := s.flight[k]
	if f.version != s.now.Version && !t.blind(&f) {
		return explore.Impossible()
	}
	return explore.Say("write %d lands, of process %d", k, int(f.owner)), t.land(s, f)
}

// room reports whether the cell may be written once more.
func (t try) room(s *state) bool { return t.writes == 0 || s.now.Record.Writes < t.writes }

// land carries out a write.
func (t try) land(s *state, f write) error {
	old, r := &s.now.Record, f.record
	s.put(*r, f, t.world)
	if p := t.ownerOf(s, &f); p != nil && f.why == Refill && !t.lax && uint64(f.to-f.from) > p.machine.Unknown() {
		return errCell
	}
	for i, p := range s.running { // it may land once more, in a store that went back: then nothing is lost
		if p != nil && p.knows && p.seen.write == r.Write {
			p = s.change(int8(i))
			p.knows, p.proof = false, false
		}
	}
	if !t.lax && (r.Writes <= old.Writes || r.Most < max(old.Most, r.Next) || r.From > r.Next) {
		return errCell
	}
	switch f.why {
	case Refill:
		switch {
		case t.lax && !old.Lost:
		case old.Lost:
			return errMarked
		case old.Deleted:
			return errDeleted
		case r.Next > old.Indexes():
			return errMaximum
		case r.From != old.Next || r.Next <= r.From || r.Max != old.Max:
			return errCell
		case r.From < uint64(s.history.safe):
			return errUnsafe
		}
	case Close:
		s.history.returned = s.history.returned || r.Next < old.Next
		switch {
		case old.Lost:
			return errMarked
		case old.Deleted:
			return errDeleted
		case r.Next < uint64(s.history.safe):
			return errUnsafe
		case !t.lax && (r.Next > old.Next || r.Max != old.Max):
			return errCell
		case t.back:
		case s.issued&bits(uint8(r.Next), uint8(old.Next)) != 0:
			return errTwice
		}
		for i, p := range s.running {
			if !t.back && !t.lax && p != nil && int8(i) != f.owner && !p.machine.gaveBack() && p.owned(s)&bits(uint8(r.Next), uint8(old.Next)) != 0 {
				return errOwners
			}
		}
	case Mark:
		if !s.history.over && !t.lax {
			return errAlarm
		}
	}
	return nil
}

// ownerOf is the process that remembers a write of unknown outcome, or nil.
func (t try) ownerOf(s *state, f *write) *process {
	for _, p := range s.running {
		if p == nil || p.restored {
			continue
		}
		for _, q := range p.machine.pending {
			if q.Name == f.record.Write {
				return p
			}
		}
	}
	return nil
}

// put gives the cell a new state.
func (s *state) put(r cell.Sequence, f write, w *world) {
	version, _ := s.draw()
	if len(r.Last) > w.kept {
		r.Last = r.Last[:w.kept]
	}
	s.now = &stored{Cell: Cell{Version: version, Record: r}, write: f}
	s.history.peak = max(s.history.peak, uint8(r.Next))
}

// outside has the steps of an operator, of processes beyond ours, of a store that goes back, and of memory that
// is copied.
func (t try) outside(s *state) (explore.Step, error) {
	old, what, n := s.now.Record, "", uint64(0)
	// between picks from low to high, or too much if there is nothing between.
	between := func(low, high uint64) uint64 {
		if low > high {
			return 1 << 32
		}
		return low + uint64(t.pick(int(high-low)+1))
	}
	r := old
	r.Last = old.Names()
	_, r.Write = s.draw()
	r.Writes++
	usable := !old.Deleted && !old.Lost
	switch kind := t.pick(8); {
	case kind == 0 && t.others && usable:
		if n = between(old.Next+1, min(t.numbers, old.Indexes())); n <= t.numbers {
			what, r.Next = "an operator raises next to %d", n
		}
	case kind == 1 && t.maximum && usable:
		if n = between(max(old.Next, 1), t.numbers) - 1; n < t.numbers && n+1 != old.Indexes() {
			what, r.Max = "an operator changes the maximum to %d", int64(n)
		}
	case kind == 2 && t.remove && !old.Deleted:
		what, r.Deleted = "the sequence is deleted, %d", true
	case kind == 2 && t.remove && old.Creation < 3:
		what, r.Before, r.Deleted = "the sequence is created anew, %d", old.Granted(), false
		_, r.ID = s.draw()
		r.Creation++
		r.Next = r.Index(r.Before)
		r.Most = r.Next
	case kind == 3 && t.broken == "SET" && old.Next > 0:
		what, n, r.Next = "an operator lowers next to %d", old.Next-1, old.Next-1
	case kind == 4 && t.back && old.Lost:
		n = uint64(s.history.peak)
		what, r.Next, r.Lost, s.history.safe = "an operator raises next above all in use, to %d", n, false, s.history.peak
		for i, p := range s.running {
			if p != nil && p.knows {
				p = s.change(int8(i))
				p.knows, p.proof = false, false
			}
		}
	case kind == 5 && len(s.past) < t.stale && (len(s.past) == 0 || s.past[len(s.past)-1].Version != s.now.Version):
		s.past = append(s.past[:len(s.past):len(s.past)], s.now)
		return explore.Say("a replica stops here"), nil
	case kind == 6 && t.back:
		return t.goesBack(s)
	case kind == 7 && t.restore:
		return t.copies(s)
	}
	if what == "" || !t.room(s) {
		return explore.Impossible()
	}
	r.From, r.Most = r.Next, max(r.Most, r.Next)
	s.put(r, write{owner: nobody}, t.world)
	return explore.Say(what, int(n)), nil
}

// goesBack copies the cell, and restores it: with its version, as it was.
func (t try) goesBack(s *state) (explore.Step, error) {
	switch b := &s.history; {
	case !b.begun:
		b.begun, s.past = true, []*stored{s.now}
		return explore.Say("the store is copied"), nil
	case !b.over && s.past[0].Version != s.now.Version:
		b.over, s.now, s.past = true, s.past[0], nil
		return explore.Say("the store goes back"), nil
	}
	return explore.Impossible()
}

// copies copies the memory of a process, and restores it in the place of one that has ended.
func (t try) copies(s *state) (explore.Step, error) {
	i := int8(t.pick(t.procs))
	switch p := s.running[i]; {
	case s.copied != nil:
		t.end(s, i)
		s.running[i] = s.copied
		p = s.change(i)
		p.restored, s.copied = true, nil
		p.window.revoke()
		return say(i, "ends, and is restored from the copy"), nil
	case p != nil && !s.history.begun:
		s.copied, s.history.begun = p, true
		return say(i, "is copied"), nil
	}
	return explore.Impossible()
}

// tell gives the machine the outcome of its operation, and acts on the events as a driver does.
func (t try) tell(s *state, i int8, p *process, in Input, op Op, r Result) (int, error) {
	sentBy := p.sentBy
	if op.Kind == Read && s.now.owner == i {
		sentBy = s.now.arrived
	}
	events := t.events(p, in, op, r)
	p.restored = false
	for _, e := range events {
		if err := t.act(s, i, p, e, sentBy); err != nil {
			return 0, err
		}
	}
	switch {
	case op.Kind == Read && r.Status == OK && !p.knows:
		p.learn(&r.Cell.Record)
	case op.Kind == Swap && r.Status == OK:
		p.learn(&op.Record)
	}
	return len(events), nil
}

// act does what a driver does with an event.
func (t try) act(s *state, i int8, p *process, e Event, sentBy uint64) error {
	switch e.Kind {
	case Granted:
		from, to := uint8(e.Range.From), uint8(e.Range.To)
		switch {
		case t.back && p.knows:
			return errKnown
		case t.back && from < p.top:
			return errOwnTop
		case t.back && !s.history.returned && from < p.seen.most:
			return errRead
		}
		p.top = to
		if !t.ordered {
			p.window.queue(from, to)
			return nil
		}
		return p.serve(s, from, to, e.Upto, sentBy)
	case Trusted:
		for _, r := range e.Ranges {
			p.window.queue(uint8(r.From), uint8(r.To))
		}
		return nil
	case GivenBack, Forgot, Unclear:
		return nil
	case Suspected, WentBack, Marked, Raised, Deleted:
		if t.broken == "S6_REVOKE" {
			return nil
		}
		p.window.revoke()
		if !s.history.over && t.stale == 0 && !t.lax && (e.Kind == Suspected || e.Kind == WentBack || e.Kind == Marked || e.Kind == Raised) {
			return errAlarm
		}
	}
	return nil
}

// serve gives the numbers of a write to the calls that it serves.
func (p *process) serve(s *state, from, to uint8, upto, sentBy uint64) error {
	var left []call
	high := s.high
	for _, c := range p.calls {
		switch {
		case c.arrival > upto || c.n > to-from:
			left = append(left, c)
			continue
		case c.arrival > sentBy:
			return errEarly
		case from < c.above:
			return errOrder
		}
		for range c.n {
			if s.issued>>from&1 != 0 {
				return errTwice
			}
			s.issued |= 1 << from
			from++
		}
		high = max(high, from)
	}
	p.calls, s.high = left, high
	return nil
}
