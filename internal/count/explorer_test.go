package count

import (
	"errors"
	"slices"
	"strconv"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/explore"
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

	anew bool // there is no cell, and the first grant makes it, as that of a bucket of lanes

	plain bool // everything is in the key, to check that what is left out does not matter

	broken string // the name of a mutant
	lax    bool   // only a number that is issued or owned twice is looked for
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

	arrived uint64 // calls so far
	sentBy  uint64 // the last call before the last write was sent
	calls   []call // that wait
	token   string // mutant S1_TOKEN: the name of all its writes
	again   *Range // mutant S1_REFRESH: of the write that is sent again; not changed

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
	above   uint8 // all numbers that were returned before it began
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
	if w.anew {
		s.now.Version, s.now.Record.Writes, s.now.Record.Write = 0, 0, ""
	}
	for i := range w.procs {
		if !w.plain {
			s.running[i] = w.open(&s)
		}
	}
	return []state{s}
}

// Step has one thing happen.
func (w *world) Step(s *state, pick func(int) int) (explore.Step, error) {
	t := try{w, pick}
	says, err := t.picked(s)
	if err == nil {
		t.tidy(s)
		err = t.check(s)
	}
	return says, err
}

// try is a world that picks one of the steps that are possible.
type try struct {
	*world
	pick func(n int) int // 0 to n-1
}

// picked makes s the state after a step, and returns what that is.
func (t try) picked(s *state) (explore.Step, error) {
	switch i := t.pick(t.procs + 2); {
	case i == t.procs:
		return t.network(s)
	case i > t.procs:
		return t.outside(s)
	case s.running[i] != nil:
		return t.process(s, int8(i), s.change(int8(i)))
	case s.mayOpen() && !slices.Contains(s.running[:i], nil): // dead processes are alike
		s.running[i] = t.open(s)
		return say(int8(i), "opens"), nil
	}
	return explore.Impossible()
}

// change copies a process, to be changed.
func (s *state) change(i int8) *process {
	p := *s.running[i]
	s.running[i] = &p
	return &p
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
func (t try) tidy(s *state) {
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
	if f.version == s.now.Version || w.blind(f) {
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
	all := p.window.has()
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
func (t try) check(s *state) error {
	if t.back {
		return nil
	}
	var all uint16
	for _, p := range s.running {
		if p == nil {
			continue
		}
		mine := p.window.has()
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
		if t.lax || p.restored || p.closing && !p.machine.doubt { // the last does not read any more
			continue
		}
		// In a store that keeps its word, it must not look as if it had not, whenever a process reads. And
		// next does not fall below a grant, unless its process has given it back: so the key
		// needs neither where that grant ended nor where the last write began.
		past := p.machine.past(s.now.Cell)
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
func (t try) issue(s *state, p *process, from, n uint8) error {
	if t.back && p.knows {
		return errKnown
	}
	for i := from; i < from+n && !t.back; i++ {
		switch {
		case s.issued>>i&1 != 0:
			return errTwice
		case uint64(i) >= s.now.Record.Next:
			return errOwners
		}
		s.issued |= 1 << i
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
	if w.anew { // it has read nothing
		c := cell.Sequence{ID: s.now.Record.ID, Creation: 1, Mode: s.now.Record.Mode, Stride: 1, Max: s.now.Record.Max, MinStep: 1, MaxStep: s.now.Record.MaxStep}
		p.machine = New(Cell{Record: c}, w.ordered)
	}
	if w.broken == "S1_TOKEN" {
		_, p.token = s.draw()
	}
	p.learn(&s.now.Record)
	return p
}

// learn notes, for the checks, what a process has read.
func (p *process) learn(r *cell.Sequence) {
	p.seen.writes, p.seen.most, p.seen.marks = uint8(r.Writes), uint8(r.Most), uint8(r.Creation)
	p.seen.write = r.Write
}

func (t try) process(s *state, i int8, p *process) (explore.Step, error) {
	switch kind := t.pick(4); {
	case kind == 0 && t.ordered:
		return t.waits(s, i, p)
	case kind == 0:
		n := uint8(1 + t.pick(int(t.batch)))
		if from, ok := p.window.count(n); ok {
			return say(i, "issues %d", int(n)), t.issue(s, p, from, n)
		}
	case kind == 1:
		if want, need, ok := t.wants(p); ok {
			return t.work(s, i, p, want, need)
		}
	case kind == 2 && !p.closing:
		p.closing, p.calls, p.window.sealed = true, nil, t.broken != "S2_EARLY"
		return say(i, "is closed"), nil
	case kind == 3 && t.lose:
		t.end(s, i)
		return say(i, "ends"), nil
	}
	return explore.Impossible()
}

// end ends a process. Its writes may still land.
func (t try) end(s *state, i int8) {
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
	if s.now.owner == i {
		now := *s.now
		now.owner, s.now = nobody, &now
	}
}

// leave ends a process that has closed, and no other.
func (t try) leave(s *state, i int8) error {
	if !s.running[i].closing {
		return nil
	}
	t.end(s, i)
	if t.clean && s.issued != 1<<s.now.Record.Next-1 {
		return errGap
	}
	return nil
}

// waits begins or ends a call in ordered mode.
func (t try) waits(s *state, i int8, p *process) (explore.Step, error) {
	k := t.pick(1 + len(p.calls))
	switch begun := p.calls[:len(p.calls):len(p.calls)]; {
	case k > 0:
		p.calls = append(begun[:k-1:k-1], begun[k:]...)
		return say(i, "ends call %d", k), nil
	case p.closing || len(begun) >= t.calls:
		return explore.Impossible()
	default:
		n := 1 + t.pick(int(t.batch))
		p.arrived++
		p.calls = append(begun, call{p.arrived, s.high, uint8(n)})
		return say(i, "begins a call for %d", n), nil
	}
}

// wants picks what a process asks its machine for.
func (t try) wants(p *process) (want, need uint64, ok bool) {
	w := p.window
	if t.ordered || p.closing {
		for _, c := range p.calls {
			want += uint64(c.n)
		}
		return want, want, true
	}
	if need = uint64(t.pick(int(t.batch) + 1)); need > 0 {
		_, has := w.count(uint8(need))
		return need + uint64(t.pick(int(max(t.step, need)-need)+1)), need, !has
	}
	want = uint64(t.pick(int(t.step) + 1))
	return want, 0, want == 0 || w.pt == w.pf && (uint64(w.rest()) <= t.step && !t.exact() || w.rest() <= 1)
}

// work has the machine of a process say what it does next, and carries it out: reading
// is one step with the write that follows, and sending a write with what becomes of it.
func (t try) work(s *state, i int8, p *process, want, need uint64) (explore.Step, error) {
	for again := false; ; { // a write has met another one, and the process tries again at once
		_, name := s.draw()
		in := Input{Name: name, Want: want, Need: need, Used: uint64(p.window.used), Arrived: p.arrived, Closing: p.closing, Restored: p.restored}
		op := t.ops(s, p, in)
		p.restored = false
		switch op.Kind {
		case None:
			return in.says(i, "has nothing to do"), t.leave(s, i)
		case Read:
			c, what := s.now, "reads"
			if t.stale > 0 {
				if k := t.pick(1 + len(s.past)); k > 0 {
					c, what = s.past[k-1], "reads state "+string('0'+rune(k))
				}
			}
			t.look(p, &c.Record)
			read := c.Cell
			if read.Version == 0 {
				read = Cell{}
			}
			events, err := t.tell(s, i, p, in, op, Result{Cell: read})
			if err != nil || events > 0 && !p.closing {
				return in.says(i, what), err
			}
			continue
		}
		says, err := t.sends(s, i, p, &in, op, again)
		if err != errAgain {
			return says, err
		}
		again = true
	}
}

// errAgain: the process goes on at once.
var errAgain = errors.New("again")

// say is a step of process i.
func say(i int8, what string, numbers ...int) explore.Step {
	return explore.Say("process %d "+what, append([]int{int(i)}, numbers...)...)
}

// says is a step of process i that was asked for something.
func (in *Input) says(i int8, what string) explore.Step {
	return explore.Say("process %d "+what+", asked for %d, %d", int(i), int(in.Want), int(in.Need))
}

// few is window.Numbers in a few lines: what one process hands out, as one step each. Its own
// tests and the simulation of callers at every atomic operation tie the two together.
type few struct {
	used, to uint8 // the present range is [used, to),
	pf, pt   uint8 // the queued one [pf, pt)
	sealed   bool
}

// count takes n numbers in a row. The rest of a range that has too few is given up.
func (w *few) count(n uint8) (first uint8, ok bool) {
	switch {
	case w.sealed:
		return 0, false
	case w.used+n > w.to && w.pt-w.pf < n:
		return 0, false
	case w.used+n > w.to:
		w.used, w.to, w.pf, w.pt = w.pf, w.pt, 0, 0
	}
	w.used += n
	return w.used - n, true
}

// queue puts a range in behind the others.
func (w *few) queue(from, to uint8) {
	switch {
	case w.sealed:
	case w.pt > w.pf && from == w.pt:
		w.pt = to
	case w.pt > w.pf || w.used == w.to && from != w.to:
		*w = few{used: max(w.used, from), to: to} // it replaces both
	case from == w.to:
		w.to = to
	default:
		w.pf, w.pt = from, to
	}
}

// revoke takes back what was not taken.
func (w *few) revoke() {
	if !w.sealed {
		w.to, w.pf, w.pt = w.used, 0, 0
	}
}

// has are the numbers that the window would hand out.
func (w *few) has() uint16 {
	if w.sealed {
		return 0
	}
	return bits(w.used, w.to) | bits(w.pf, w.pt)
}

// rest is how many numbers are left.
func (w *few) rest() uint8 { return w.to - w.used + w.pt - w.pf }
