package count

import (
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/explore"
)

// reads carries out a read: of the cell, or of one of its older states.
func (t *try) reads(i int8, p *process, s *state, in Input, op Op) {
	saved, before := *s, *p
	read := func(c *stored, what string) {
		*s = saved
		p := new(process)
		*p = before
		s.running[i] = p
		t.look(p, &c.Cell.Record)
		events, err := t.tell(s, i, p, in, op, Result{Cell: c.Cell})
		if err == nil && (events == 0 || p.closing) {
			t.step1(s, i, p, in.Want, in.Need)
			return
		}
		t.done(in.says(i, what), s, err)
	}
	if t.stale > 0 {
		for k, c := range saved.past {
			read(c, "reads state "+string('0'+rune(k)))
		}
	}
	read(saved.now, "reads")
}

// look notes what a process reads, for the checks. Fewer writes than it knows may be a stale read.
// If there are more writes since than the cell keeps names, that stays open, and the process may go on
// as one that has just begun.
func (t *try) look(p *process, r *cell.Sequence) {
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
func (t *try) sends(i int8, p *process, s *state, in Input, op Op) {
	if op.Why == Refill && op.Range.To-op.Range.From > p.machine.Left(in.Used) {
		t.done(in.says(i, "sends a write"), s, errMaximum)
		return
	}
	r := op.Record
	f := write{owner: i, why: op.Why, version: op.Version, record: &r, from: uint8(op.Range.From), to: uint8(op.Range.To), arrived: p.arrived}
	p.sentBy = p.arrived
	saved, before := *s, *p
	outcome := func(what string, others bool, r Result, err error) {
		p := new(process)
		*p = before
		s.running[i] = p
		if others { // while the answer is out, the calls end, and another one begins
			p.arrived++
			p.calls, in.Arrived = []call{{p.arrived, s.high, 1}}, p.arrived
		}
		if err == nil {
			_, err = t.tell(s, i, p, in, op, r)
		}
		if err == nil && r.Status == OK && op.Why == Close {
			err = t.leave(s, i)
		}
		t.done(in.says(i, what), s, err)
	}
	conflict := func() {
		outcome("meets another write", false, Result{Status: Conflict}, nil)
		if t.again {
			return
		}
		t.again = true
		defer func() { t.again = false }()
		*s = saved
		p := new(process)
		*p = before
		s.running[i] = p
		if events, err := t.tell(s, i, p, in, op, Result{Status: Conflict}); events == 0 && err == nil {
			t.step1(s, i, p, in.Want, in.Need) // at once
		}
	}
	if !s.mayLand(&f, t.world) {
		conflict()
		return
	}
	if t.lose && t.mayFly(s) {
		s.flight = append(s.flight[:len(s.flight):len(s.flight)], f)
		outcome("writes and hears nothing", false, Result{Status: Failed}, nil)
		*s = saved
	}
	switch {
	case f.version != s.now.Version && (t.blind == nil || !t.blind(&f)):
		conflict()
	case t.room(s):
		err := t.land(s, f)
		after := *s
		outcome("writes", false, Result{Version: s.now.Version}, err)
		if *s = after; t.ordered {
			outcome("writes, and other calls are there when it is answered", true, Result{Version: s.now.Version}, err)
		}
	}
}

func (t *try) mayFly(s *state) bool {
	return t.flying == 0 || len(s.flight) < t.flying
}

// network has writes land.
func (t *try) network() {
	for k := range t.was.flight {
		f := &t.was.flight[k]
		if f.version != t.was.now.Version && (t.blind == nil || !t.blind(f)) || !t.room(t.was) {
			continue
		}
		s := t.copy()
		t.done(explore.Say("write %d lands, of process %d", k, int(f.owner)), s, t.land(s, *f))
	}
}

// room reports whether the cell may be written once more.
func (t *try) room(s *state) bool { return t.writes == 0 || s.now.Record.Writes < t.writes }

// land carries out a write.
func (t *try) land(s *state, f write) error {
	old, r := &s.now.Record, f.record
	s.put(*r, f, t.world)
	if p := t.ownerOf(s, &f); p != nil && f.why == Refill && !t.lax && uint64(f.to-f.from) > p.machine.Unknown() {
		return errCell
	}
	for i, p := range s.running { // it may land once more, in a store that went back: then nothing is lost
		if p != nil && p.knows && p.seen.write == r.Write {
			copied := *p
			copied.knows, copied.proof = false, false
			s.running[i] = &copied
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
func (t *try) ownerOf(s *state, f *write) *process {
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

// outside has the steps of an operator, of processes beyond ours, and of a store that goes back.
func (t *try) outside() {
	r := t.was.now.Record
	change := func(what string, n uint64, change func(*state, *cell.Sequence)) {
		if !t.room(t.was) {
			return
		}
		s := t.copy()
		r := r
		r.Last = r.Names()
		_, r.Write = s.draw()
		r.Writes++
		change(s, &r)
		r.From, r.Most = r.Next, max(r.Most, r.Next)
		s.put(r, write{owner: nobody}, t.world)
		t.done(explore.Say(what, int(n)), s, nil)
	}
	if t.others && !r.Deleted && !r.Lost {
		for n := r.Next + 1; n <= min(t.numbers, r.Indexes()); n++ {
			change("an operator raises next to %d", n, func(_ *state, r *cell.Sequence) { r.Next = n })
		}
	}
	if t.maximum && !r.Deleted && !r.Lost {
		for n := max(r.Next, 1); n <= t.numbers; n++ {
			if n != r.Indexes() {
				change("an operator changes the maximum to %d", n-1, func(_ *state, r *cell.Sequence) { r.Max = int64(n) - 1 })
			}
		}
	}
	if t.remove && !r.Deleted {
		change("the sequence is deleted, %d", 0, func(_ *state, r *cell.Sequence) { r.Deleted = true })
	}
	if t.remove && r.Deleted && r.Creation < 3 {
		change("the sequence is created anew, %d", 0, func(s *state, r *cell.Sequence) {
			r.Before = r.Granted()
			_, r.ID = s.draw()
			r.Creation++
			r.Deleted = false
			r.Next = r.Index(r.Before)
			r.Most = r.Next
		})
	}
	if t.lower && r.Next > 0 {
		change("an operator lowers next to %d", r.Next-1, func(_ *state, r *cell.Sequence) { r.Next-- })
	}
	if n := len(t.was.past); n < t.stale && (n == 0 || t.was.past[n-1].Version != t.was.now.Version) {
		s := t.copy()
		s.past = append(s.past[:n:n], s.now)
		t.done(explore.Say("a replica stops here"), s, nil)
	}
	if t.back {
		t.goesBack()
		if r.Lost {
			change("an operator raises next above all in use, to %d", uint64(t.was.history.peak), func(s *state, r *cell.Sequence) {
				r.Next, r.Lost = uint64(s.history.peak), false
				s.history.safe = s.history.peak
				for i, p := range s.running {
					if p != nil && p.knows {
						copied := *p
						copied.knows, copied.proof = false, false
						s.running[i] = &copied
					}
				}
			})
		}
	}
	if t.restore {
		t.copies()
	}
}

// goesBack copies the cell, and restores it: with its version, as it was.
func (t *try) goesBack() {
	b := &t.was.history
	switch {
	case !b.begun:
		s := t.copy()
		s.history.begun = true
		s.past = []*stored{s.now}
		t.done(explore.Say("the store is copied"), s, nil)
	case !b.over && t.was.past[0].Version != t.was.now.Version:
		s := t.copy()
		s.history.over = true
		s.now, s.past = s.past[0], nil
		t.done(explore.Say("the store goes back"), s, nil)
	}
}

// copies copies the memory of a process, and restores it in the place of one that has ended.
func (t *try) copies() {
	for i := range t.procs {
		if p := t.was.running[i]; p != nil && !t.was.history.begun {
			s := t.copy()
			s.copied, s.history.begun = p, true
			t.done(say(int8(i), "is copied"), s, nil)
		}
	}
	for i := range t.procs {
		if t.was.copied != nil {
			s := t.copy()
			t.end(s, int8(i))
			p := *t.was.copied
			p.restored, p.revoked = true, false
			p.window.revoke()
			s.running[i], s.copied = &p, nil
			t.done(say(int8(i), "ends, and is restored from the copy"), s, nil)
		}
	}
}

// tell gives the machine the outcome of its operation, and acts on the events as a driver does.
func (t *try) tell(s *state, i int8, p *process, in Input, op Op, r Result) (int, error) {
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
func (t *try) act(s *state, i int8, p *process, e Event, sentBy uint64) error {
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
		p.top, p.mutated.from = to, from
		if !t.ordered {
			p.window.queue(from, to)
			return nil
		}
		return p.serve(s, from, to, e.Upto, sentBy)
	case Trusted:
		for _, r := range e.Ranges {
			if p.revoked {
				p.window.queue(uint8(r.From), uint8(r.To))
			}
		}
		p.revoked = false
		return nil
	case GivenBack, Forgot:
		return nil
	case Suspected, WentBack, Marked, Unclear, Raised, Deleted:
		if t.keeps {
			return nil
		}
		p.window.revoke()
		p.revoked = e.Kind == Suspected && !p.closing
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
		case from < c.floor:
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
