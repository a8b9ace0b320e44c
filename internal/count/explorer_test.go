package count

import (
	"errors"
	"strconv"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/explore"
)

// world is a model for [explore.Search]: processes that run the real Machine, one cell of a store, a
// network, an operator, and what must hold after every step.
//
// A process may do any of its steps at any time, and never has to do one: so a pause, a slow
// network and a context that ended need no steps of their own. A process reads the cell, writes and is
// answered in one step: whatever happens in between is as if it happened before or after, or makes the write
// meet another one. In ordered mode other calls may come in between. If the outcome of a write is
// unknown, it lands at any later time or never.
type world struct {
	procs   int
	numbers uint64 // the indexes are 0 to numbers-1
	step    uint64 // a grant has 1 to step numbers
	batch   uint64 // a call takes 1 to batch numbers in a row
	ordered bool   // the mode
	calls   int    // in ordered mode: that wait in one process at a time
	writes  uint64 // the most writes of the cell, or 0 for any number
	flying  int    // the most writes in flight; 0: any number; answered: none
	kept    int    // how many names of writes before the last one the cell keeps

	others  bool // processes beyond procs are granted numbers, and an operator raises next
	maximum bool // an operator changes the maximum
	clean   bool // one process at a time that is closed before the next begins, and no fault: no gap
	lose    bool // answers are lost, processes crash
	back    bool // the store goes back, once
	stale   int  // a read returns an older state of the cell: one of so many
	restore bool // the memory of a process is copied, and restored beside or in place of the original
	remove  bool // the sequence is deleted, and created anew

	plain bool // everything is in the key, to check that what is left out does not matter
	mutant
}

const (
	most     = 4 // processes
	answered = -1
)

// state is a state of a world. What its pointers lead to is not changed.
type state struct {
	now     *stored
	drawn   uint16  // names and versions so far
	flight  []write // that may still land
	running [most]*process
	issued  uint16 // the numbers that were issued, or that no process can issue any more
	high    uint8  // in ordered mode: above the highest number that was returned

	// Of a store that goes back, or is read stale: the states of the cell that may come again.
	past    []*stored
	history struct {
		begun, over bool  // of a store that goes back; begun: also of a memory that was copied
		peak, safe  uint8 // the highest next ever; next as the operator has raised it after the mark
		returned    bool  // something was given back
	}
	copied *process // the memory to be restored
}

// stored is a state of the cell.
type stored struct {
	Cell
	write // that made it
}

// write is a write that was sent.
type write struct {
	owner    int8   // its process, or nobody
	why      Why    // Refill, Close or Mark
	version  uint64 // that it is conditional on
	record   *cell.Sequence
	from, to uint8  // that it grants or gives back
	arrived  uint64 // the last call that began before it was sent
}

const nobody = -1

// process is a process. It is not changed, but copied.
type process struct {
	machine  Machine
	window   few
	closing  bool
	restored bool // and the machine was not told so far
	revoked  bool // what it owns is not in the window

	arrived uint64 // calls so far
	sentBy  uint64 // the last call before the last write was sent
	calls   []call // that wait
	mutated mutated

	// For the checks.
	seen struct {
		writes, most, marks uint8 // of the cell, as read or written last
		write               string
	}
	top   uint8 // the end of its last grant
	knows bool  // it has read a cell that shows that the store went back,
	proof bool  // and a stale read does not
}

type call struct {
	arrival uint64
	floor   uint8 // above all numbers that were returned before it began
	n       uint8
}

// tokens are the names of writes.
var tokens = func() (list [1 << 12]string) {
	for i := range list {
		list[i] = "w" + strconv.Itoa(i)
	}
	return list
}()

// draw returns a version, and the name of a write.
func (s *state) draw() (uint64, string) {
	s.drawn++
	return uint64(s.drawn), tokens[s.drawn]
}

func (w *world) Start() []state {
	var s state
	mode := "segmented"
	if w.ordered {
		mode = "ordered"
	}
	version, name := s.draw()
	s.now = &stored{Cell: Cell{Version: version, Record: cell.Sequence{
		ID: "a", Creation: 1, Mode: mode, Stride: 1, Max: int64(w.numbers) - 1, MinStep: 1, MaxStep: int64(w.step),
		Writes: 1, Write: name,
	}}, write: write{owner: nobody}}
	for i := range w.procs {
		if !w.plain {
			s.running[i] = w.open(&s)
		}
	}
	return []state{s}
}

// Steps tries all steps.
func (w *world) Steps(s *state, yield func(explore.Step, *state, error)) {
	t := &try{world: w, was: s, yield: yield}
	idle := false // dead processes are alike
	for i := range w.procs {
		switch p := s.running[i]; {
		case p != nil:
			t.process(int8(i), p)
		case !idle:
			idle = true
			t.begin(int8(i))
		}
	}
	t.network()
	t.outside()
}

// try makes the states after one.
type try struct {
	*world
	was   *state
	next  state
	again bool // a write has met another one, and the process tries again at once
	yield func(explore.Step, *state, error)
}

// copy returns a state that is like the one before the step.
func (t *try) copy() *state {
	t.next = *t.was
	return &t.next
}

// copyOf also copies a process, to be changed.
func (t *try) copyOf(i int8) (*state, *process) {
	s := t.copy()
	p := *s.running[i]
	s.running[i] = &p
	return s, &p
}

// done ends a step: it drops what does not matter any more, and checks what must hold.
func (t *try) done(a explore.Step, s *state, err error) {
	if err == nil {
		t.tidy(s)
		err = t.check(s)
	}
	t.yield(a, s, err)
}

var (
	errTwice    = errors.New("a number is issued twice")
	errOwners   = errors.New("a number has two owners")
	errMaximum  = errors.New("a number above the maximum is granted")
	errEarly    = errors.New("a call is served by a write that was sent before it began")
	errOrder    = errors.New("a call returns a number that is not above all that were returned before it began")
	errGap      = errors.New("a number is left out")
	errAlarm    = errors.New("the store kept its word, and looks as if it went back")
	errKnown    = errors.New("a number is granted to a process that has read that the store went back")
	errOwnTop   = errors.New("a grant begins below an earlier one of the same process")
	errRead     = errors.New("a number is granted of which the process has read that it was granted")
	errMarked   = errors.New("a number is granted from a marked cell")
	errUnsafe   = errors.New("a number is granted below the next that an operator has raised")
	errDeleted  = errors.New("a number of a deleted sequence is granted or given back")
	errCell     = errors.New("the cell says what cannot be")
	errStarved  = errors.New("a process gets no number, though the store answers")
	errOverfull = errors.New("the store may have gone back, and the window has numbers")
)

// tidy brings states that are alike to one form.
func (t *try) tidy(s *state) {
	// A write that is conditional on a version that does not come again cannot land. A grant of
	// a process that has ended is a step of the network.
	for i := 0; i < len(s.flight); i++ {
		if f := s.flight[i]; !s.mayLand(&f, t.world) {
			s.flight = append(s.flight[:i:i], s.flight[i+1:]...)
			i--
		}
	}
	if !t.clean && !t.back {
		s.issued |= s.gone()
	}
}

// mayLand reports whether a write may land now, or after the store went back.
func (s *state) mayLand(f *write, w *world) bool {
	if f.version == s.now.Version || w.blind != nil && w.blind(f) {
		return true
	}
	for _, p := range s.past {
		if w.back && !s.history.over && f.version == p.Version {
			return true
		}
	}
	return false
}

// gone are the numbers that are granted, and that no process can issue any more.
func (s *state) gone() uint16 {
	all := uint16(1)<<s.now.Record.Next - 1
	for _, p := range s.running {
		if p != nil {
			all &^= p.owned(s)
		}
	}
	for i := range s.flight {
		if f := &s.flight[i]; f.why == Close {
			all &^= bits(f.from, f.to)
		}
	}
	return all
}

// bits are the numbers from up to, but not including, to.
func bits(from, to uint8) uint16 {
	if from >= to {
		return 0
	}
	return uint16(1)<<to - uint16(1)<<from
}

// owned are the numbers that a process may still issue or give back, for all that it knows.
func (p *process) owned(s *state) uint16 {
	var all uint16
	for n := uint8(0); n < 16; n++ {
		if p.window.has(n) {
			all |= 1 << n
		}
	}
	if p.restored {
		return all // it forgets the rest
	}
	for _, r := range p.machine.owned {
		all |= bits(max(uint8(r.From), p.window.used), uint8(r.To))
	}
	for _, q := range p.machine.pending {
		found := names(s.now.Cell, q.Name)
		for _, c := range s.past {
			found = found || names(c.Cell, q.Name)
		}
		if !q.Back && found {
			all |= bits(uint8(q.From), uint8(q.To))
		}
	}
	return all
}

// check is what must hold in each state.
func (t *try) check(s *state) error {
	if t.back {
		return nil
	}
	var all uint16
	for _, p := range s.running {
		if p == nil {
			continue
		}
		var mine uint16
		for n := uint8(0); n < 16; n++ {
			if p.window.has(n) {
				mine |= 1 << n
			}
		}
		switch {
		case mine>>s.now.Record.Next != 0, mine&all != 0:
			return errOwners
		case mine&s.issued != 0:
			return errTwice
		}
		all |= mine
		if p.machine.Suspects() && mine != 0 {
			return errOverfull
		}
		if t.stale > 0 && !p.flows(s.now.Cell) {
			return errStarved
		}
		if t.back || p.restored || p.closing && !p.machine.doubt { // it does not read any more
			continue
		}
		// In a store that keeps its word, it must not look as if it had not, whenever a process reads. And
		// next does not fall below a grant, unless its process has given it back: so the key
		// needs neither where that grant ended nor where the last write began.
		past := p.machine.past(s.now.Cell)
		if t.lax {
			continue
		}
		if past != shown && past != unclear || !p.closing && s.now.Record.Next < p.machine.top {
			return errAlarm
		}
	}
	return nil
}

// flows reports whether a process gets a number, or finds that none is left, when the store answers and
// nothing else happens.
func (p *process) flows(now Cell) bool {
	m := p.machine
	if p.closing || p.window.rest() > 0 {
		return true
	}
	for range 6 {
		in := Input{Name: "x", Want: 1, Need: 1, Used: uint64(p.window.used)}
		op := m.Next(in)
		switch {
		case op.Kind == None:
			return op.Why == Exhausted
		case op.Kind == Swap && op.Why == Refill && op.Version == now.Version:
			return true
		case op.Kind == Swap:
			m.Done(in, op, Result{Status: Conflict})
			continue
		}
		for _, e := range m.Done(in, op, Result{Cell: now}) {
			if e.Kind == Granted || e.Kind == Trusted && len(e.Ranges) > 0 {
				return true
			}
		}
	}
	return false
}

// issue notes that a process issues n numbers.
func (t *try) issue(s *state, p *process, from, n uint8) error {
	for i := from; i < from+n; i++ {
		switch {
		case t.back && p.knows:
			return errKnown
		case !t.back && s.issued>>i&1 != 0:
			return errTwice
		case !t.back && uint64(i) >= s.now.Record.Next:
			return errOwners
		}
		if !t.back {
			s.issued |= 1 << i
		}
	}
	return nil
}

// mayOpen reports whether a process can open the sequence.
func (s *state) mayOpen() bool {
	r := &s.now.Record
	return s.now.Version != 0 && !r.Lost && !r.Deleted
}

// open returns a process that has opened the sequence.
func (w *world) open(s *state) *process {
	p := &process{machine: New(s.now.Cell, w.ordered)}
	if w.token {
		_, p.mutated.token = s.draw()
	}
	p.learn(&s.now.Record)
	return p
}

// begin starts a process.
func (t *try) begin(i int8) {
	if s := t.copy(); s.mayOpen() {
		s.running[i] = t.open(s)
		t.done(say(i, "opens"), s, nil)
	}
}

// learn notes, for the checks, what a process has read.
func (p *process) learn(r *cell.Sequence) {
	p.seen.writes, p.seen.most, p.seen.marks = uint8(r.Writes), uint8(r.Most), uint8(r.Creation)
	p.seen.write = r.Write
}

func (t *try) process(i int8, p *process) {
	t.issues(i, p)
	t.asks(i, p)
	if !p.closing {
		s, p := t.copyOf(i)
		p.closing, p.window.sealed = true, !t.early
		p.calls = nil
		in := p.input("")
		op := t.ops(p, in)
		p.restored = false
		_, err := t.tell(s, i, p, in, op, Result{Used: uint64(p.window.used)})
		t.done(say(i, "closes"), s, err)
	}
	if t.lose {
		s := t.copy()
		t.end(s, i)
		t.done(say(i, "ends"), s, nil)
	}
}

// end ends a process. Its writes may still land.
func (t *try) end(s *state, i int8) {
	s.running[i] = nil
	if !t.plain && s.mayOpen() {
		s.running[i] = t.open(s) // a process that has just begun is like none
	}
	flight := append([]write(nil), s.flight...)
	s.flight = flight[:0]
	for _, f := range flight {
		if f.owner == i {
			f.owner = nobody
			if f.why == Refill && t.others {
				continue // an operator's raise is alike
			}
		}
		s.flight = append(s.flight, f)
	}
	s.now = s.now.without(i)
}

// leave ends a process that has closed.
func (t *try) leave(s *state, i int8) error {
	t.end(s, i)
	if t.clean && s.issued != 1<<s.now.Record.Next-1 {
		return errGap
	}
	return nil
}

// without is the cell when a process that may have written it has ended.
func (c *stored) without(i int8) *stored {
	if c.owner != i {
		return c
	}
	copied := *c
	copied.owner = nobody
	return &copied
}

func (t *try) issues(i int8, p *process) {
	if t.ordered {
		if !p.closing && len(p.calls) < t.calls {
			for n := uint8(1); uint64(n) <= t.batch; n++ {
				s, p := t.copyOf(i)
				p.arrived++
				p.calls = append(p.calls[:len(p.calls):len(p.calls)], call{p.arrived, s.high, n})
				t.done(say(i, "begins a call for %d", int(n)), s, nil)
			}
		}
		for k := range p.calls {
			s, p := t.copyOf(i)
			p.calls = append(p.calls[:k:k], p.calls[k+1:]...)
			t.done(say(i, "ends call %d", k+1), s, nil)
		}
		return
	}
	for n := uint8(1); uint64(n) <= t.batch; n++ {
		s, p := t.copyOf(i)
		if from, ok := p.window.count(n); ok {
			t.done(say(i, "issues %d", int(n)), s, t.issue(s, p, from, n))
		}
	}
}

// asks has the machine say what it does next.
func (t *try) asks(i int8, p *process) {
	if p.closing {
		t.ask(i, 0, 0)
		return
	}
	if t.ordered {
		var n uint64
		for _, c := range p.calls {
			n += uint64(c.n)
		}
		t.ask(i, n, n)
		return
	}
	t.ask(i, 0, 0)
	for want := uint64(1); want <= t.step; want++ {
		if w := &p.window; w.pt == w.pf && (uint64(w.rest()) <= t.step && !t.exact() || w.rest() <= 1) {
			t.ask(i, want, 0)
		}
	}
	for need := uint8(1); uint64(need) <= t.batch; need++ {
		w := p.window
		if _, ok := w.count(need); ok {
			continue
		}
		for want := uint64(need); want <= max(t.step, uint64(need)); want++ {
			t.ask(i, want, uint64(need))
		}
	}
}

func (p *process) input(name string) Input {
	return Input{Name: name, Used: uint64(p.window.used), Arrived: p.arrived, Closing: p.closing, Restored: p.restored}
}

func (t *try) ask(i int8, want, need uint64) {
	s, p := t.copyOf(i)
	t.step1(s, i, p, want, need)
}

// step1 has the machine of a process say what it does next, and carries it out: reading
// is one step with the write that follows, and sending a write with what becomes of it.
func (t *try) step1(s *state, i int8, p *process, want, need uint64) {
	_, name := s.draw()
	in := p.input(name)
	in.Want, in.Need = want, need
	op := t.ops(p, in)
	p.restored = false
	switch op.Kind {
	case None:
		var err error
		if p.closing {
			err = t.leave(s, i)
		}
		t.done(in.says(i, "has nothing to do"), s, err)
	case Read:
		t.reads(i, p, s, in, op)
	case Seal:
		p.window.sealed = !t.early
		_, err := t.tell(s, i, p, in, op, Result{Used: uint64(p.window.used)})
		t.done(in.says(i, "seals"), s, err)
	default:
		t.sends(i, p, s, in, op)
	}
}

// say is a step of process i.
func say(i int8, what string, numbers ...int) explore.Step {
	return explore.Say("process %d "+what, append([]int{int(i)}, numbers...)...)
}

// says is a step of process i that was asked for something.
func (in *Input) says(i int8, what string) explore.Step {
	return explore.Say("process %d "+what+", asked for %d, %d", int(i), int(in.Want), int(in.Need))
}
