package grant

import (
	"errors"
	"slices"
	"strconv"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/explore"
	"github.com/tickflake/tickflake/internal/window"
)

// The explorer runs machines in every order of their steps, at every reading of their clocks and
// with every fate of their writes, on a store of a few cells and with windows of a few lines:
//
//	go test -run TestExplorer -v                              # small worlds, with their figures
//	go test -run TestExplorer -v -explore.full -timeout 3h    # large ones as well
//
// A cell keeps fewer names of writes here than a real one: TestSecondRead has what follows from that.
//
// A process *stamps* a tick when it issues an ID of that tick. What must hold:
//
//   - unique: no two processes, living or dead, stamp the same tick of a node number,
//   - covered: the limit in a cell is above every tick that was stamped with its node number,
//   - no false alarm: a store that keeps its word never looks as if it went back.
//
// In a store that goes back, ticks that were granted before can be granted again. There the first
// two are about what is granted afterwards, and:
//
//   - a process that finds it stops: nothing is granted to it until it claims anew,
//   - it says so only after the cell has a limit at or above its own again,
//   - it then claims above every limit that it had read or owned,
//   - it trusts its grant again only if the cell descends from its last write.
//
// Instead of all stamps, those of one tick of node number 0 are noted, the witness. It is picked
// at the start in every way, so whatever is stamped twice, there is a run where it is the witness.
//
// Any number of processes crash, and new ones start. A pause is no step, since a process may take
// no step for any time. Pace, sightings and the rank of candidates are no part of it: a process does at
// any time whatever they delay, and claims any cell. A run has no bound in length: time ends, not the
// number of steps.
//
// What keeps the search small:
//
//   - [world.Key] tells apart only what matters.
//   - The reads of a process, its write and the answer are one step: see [world.work].

// world is a model for [explore.Search]: how large it is, and what may happen in it.
type world struct {
	procs, cells int    // the dead are replaced at once
	ticks        uint64 // from 1 on
	window       uint64
	net          int // writes in flight at once

	back   bool // the store goes back, once
	twice  bool // and a write that has landed may land there again
	stale  int  // so many reads or lists return an older state
	kept   int  // names that the store keeps with a cell
	copied bool // the memory of one process becomes that of another, which is told
	untold bool // or not told; then ticks that were granted to both are not looked at

	locker   bool
	pinned   bool   // all processes want node number 0
	damaged  bool   // a cell is damaged
	reserves bool   // an operator reserves cells
	moves    bool   // the fleet moves to another store: cell 1 is that of node number 0 there
	floor    uint64 // world.moves: of the fleet, which itself came from a store that is gone: ticks below were stamped there
	apart    bool   // ticks are stamped without the window, which does not know which

	broken mutant
}

const (
	maxProcs = 3
	maxCells = 2
	maxNet   = 4 // and one that is sent again
)

// state is that of a world.
type state struct {
	cells [maxCells]kept
	saved [maxCells]kept // a store that goes back: its state when it was backed up;
	older [maxCells]kept // stale reads: an older state
	phase phase          // of the store that goes back
	stale int            // older states that were read
	moved moved
	floor [maxCells]uint64 // world.moves: of the fleet of each store
	seen  uint64           // mutant EARLY_LIMIT: of cell 0, when the fleet ended
	net   [maxNet]message
	inNet int
	procs [maxProcs]proc

	witness uint64
	stamper int // the process that stamped it, or nobody, or dead

	names uint64 // so many were drawn
}

// Stampers that are no living process.
const (
	nobody = -1
	dead   = -2
)

// phase of a store that goes back.
type phase uint8

const (
	before phase = iota
	backedUp
	wentBack
)

// moved is how far a move has come.
type moved uint8

const (
	ended   moved = iota + 1 // the fleet's cell has no number
	final                    // and the cell of the number is final
	founded                  // the new store can be used
	parked                   // mutant CELL_FIRST: and the number is reserved there
)

// kept is a cell of the store.
type kept struct {
	version uint64 // 0: there is none
	record  cell.Node
	damaged bool
	last    uint64 // the highest version that it had
	lock    int    // 1 + the process that has locked it
}

// message is a write in flight.
type message struct {
	by      int // its process, or nobody that still waits for it
	node    int64
	version uint64
	record  cell.Node
}

// proc is a process.
type proc struct {
	m       Machine
	win     few
	again   *Op    // mutant M9_REFRESH: a claim of unknown outcome; not changed
	early   bool   // mutant M11_EARLY: it releases before it seals
	told    bool   // world.copied: the memory is a copy, and the machine learns it next
	untold  uint64 // world.untold: ticks below are not looked at
	limit   uint64 // world.back: the highest that it read or owned until it noticed
	noticed bool   // world.back: and it found that the store went back
	since   bool   // world.back: it claimed the cell after the store went back
}

// few is a window of a few lines.
type few struct {
	window.Range        // that it was given last
	used         uint64 // the first unused tick
	sealed       bool

	given window.Range // the same, also after it was revoked
	since window.Range // world.back: the last that was claimed after the store went back

	issued uint64 // the last stamped tick + 1, for the mutant M13
}

// free reports whether a tick is left to be stamped.
func (w *few) free() bool { return !w.sealed && w.used < w.To }

// grant puts a range in.
func (w *few) grant(r window.Range) {
	w.given = r
	if r.Extends(w.Range) {
		w.Node, w.From, w.To = r.Node, r.From, max(r.To, w.To)
		return
	}
	w.Range, w.used = r, max(w.used, r.From)
}

func (w *few) revoke() { w.Range = window.Range{} }

// Start returns a world in which nothing was granted, for each witness.
func (w *world) Start() (all []state) {
	for witness := uint64(1); witness <= w.ticks; witness++ {
		s := state{witness: witness, stamper: nobody, floor: [maxCells]uint64{w.floor}}
		if witness < w.floor {
			s.stamper = dead
		}
		for i := range w.procs {
			w.restart(&s, i)
		}
		all = append(all, s)
	}
	return all
}

func (w *world) config() Config {
	c := Config{Layout: "layout", Window: w.window, End: w.ticks + 1, Pinned: -1, Locker: w.locker}
	if w.pinned {
		c.Pinned = 0
	}
	c.Whole = w.apart && w.broken != "LOWERED"
	return c
}

// name draws a name.
func (s *state) name() string {
	s.names++
	return strconv.FormatUint(s.names, 10)
}

// restart makes process i a new one, without memory. Its predecessor's stamps remain.
func (w *world) restart(s *state, i int) {
	if s.stamper == i {
		s.stamper = dead
	}
	for c := range s.cells {
		if s.cells[c].lock == i+1 {
			s.cells[c].lock = 0
		}
	}
	for k := s.inNet - 1; k >= 0; k-- {
		if s.net[k].by == i {
			s.net[k].by = nobody
		}
	}
	s.procs[i] = proc{m: New(w.config(), s.name())}
}

func (s *state) remove(k int) {
	s.inNet--
	copy(s.net[k:], s.net[k+1:s.inNet+1])
	s.net[s.inNet] = message{}
}

// What must hold.
var (
	errUnique  = errors.New("unique: a tick is stamped twice")
	errCovered = errors.New("covered: a stamped tick is not below the limit of its cell")
	errAlarm   = errors.New("no false alarm: the store looks as if it went back")
	errFollows = errors.New("a write does not name the writes before it")
	errStopped = errors.New("back: ticks are granted after the store was found to have gone back")
	errRaised  = errors.New("back: the limit of the cell was not raised")
	errAbove   = errors.New("back: a claim begins below a limit that the process has read")
	errTrusted = errors.New("back: a write that the store has lost is trusted")
)

// Steps calls yield for each step that is possible.
func (w *world) Steps(s *state, yield func(explore.Step, *state, error)) {
	emit := &emitter{w: w, s: s, yield: yield}
	for i := range w.procs {
		p := &s.procs[i]
		w.stamp(s, i, emit)
		if w.mayTake(p) {
			next := emit.copy()
			w.take(&next.procs[i])
			emit.step(explore.Say("process %d takes its grant into use", i), nil)
		}
		if !p.win.sealed && (p.m.held.Version != 0 || p.win.free() || p.told || len(p.m.claims) > 0) {
			next := emit.copy()
			next.procs[i].win.sealed = true
			emit.step(explore.Say("process %d seals its window", i), nil)
		}
		if w.broken == "M11_EARLY" && !p.early && p.m.held.Version != 0 {
			next := emit.copy()
			next.procs[i].early = true
			emit.step(explore.Say("process %d releases before it seals", i), nil)
		}
		w.work(s, i, emit)
		next := emit.copy()
		w.restart(next, i)
		emit.step(explore.Say("process %d crashes", i), nil)
	}
	w.network(s, emit)
	w.faults(s, emit)
}

// mayTake reports whether the machine has a grant that the window has not.
func (w *world) mayTake(p *proc) bool {
	g := p.m.Grant()
	return !p.win.sealed && !p.told && g.To > 0 && g != p.win.Range
}

// takeAtOnce puts a grant into the window unless the window has ticks of another one left.
func (w *world) takeAtOnce(p *proc) {
	if w.mayTake(p) && (p.m.Grant().Extends(p.win.Range) || !p.win.free()) {
		w.take(p)
	}
}

// take puts the grant of the machine into the window.
func (w *world) take(p *proc) {
	p.win.grant(p.m.Grant())
	if p.since {
		p.win.since = p.m.Grant()
	}
}

// emitter yields the steps of a state. The states after them share one variable.
type emitter struct {
	w     *world
	s     *state
	next  state
	yield func(explore.Step, *state, error)
}

// copy returns a copy of the state, to be changed by the next step.
func (e *emitter) copy() *state {
	e.next = *e.s
	return &e.next
}

// step yields the copy.
func (e *emitter) step(x explore.Step, err error) {
	e.w.tidy(&e.next)
	e.yield(x, &e.next, err)
}

// stamp has a process stamp any of its ticks, at any time, however long after another took its cell.
func (w *world) stamp(s *state, i int, emit *emitter) {
	for t := s.procs[i].win.used; t < s.procs[i].win.To && !s.procs[i].win.sealed; t++ {
		next := emit.copy()
		win := &next.procs[i].win
		var err error
		if !w.apart {
			win.used = t + 1
		}
		if w.broken == "M13" {
			win.issued = t + 1
		}
		if (win.Node == 0 || w.moves) && t == s.witness && t >= s.procs[i].untold && (s.phase != wentBack || win.since.From <= t && t < win.since.To) {
			if s.stamper != nobody && s.stamper != i {
				err = errUnique
			}
			next.stamper = i
			err = errors.Join(err, w.covered(next))
		}
		emit.step(explore.Say("process %d stamps tick %d", i, int(t)), err)
	}
}

// covered checks the limit of cell 0.
func (w *world) covered(s *state) error {
	if s.stamper != nobody && s.cells[0].record.Limit <= s.witness && !w.moves {
		return w.unless(errCovered)
	}
	return nil
}

// unless returns err, or nil of a mutant: there we want to see a real second stamp.
func (w *world) unless(err error) error {
	if w.broken != "" {
		return nil
	}
	return err
}

// input is what a process is told.
func (w *world) input(s *state, i int) Input {
	p := &s.procs[i]
	return Input{Now: 1, Used: p.win.used, Grant: p.win.given, Name: s.name(), Closing: p.win.sealed || p.early, Restored: p.told}
}

// work has the machine of a process do its next operations, until a write is answered or something
// has happened. All that is one step. If another process writes between a read and the write, the write
// meets a conflict, whichever of the two came first. Until the answer comes, the process can only stamp
// and seal, which it can do as well before the step, or after it; and memory that is copied meanwhile
// does as if it had got no answer.
func (w *world) work(s *state, i int, emit *emitter) {
	closing := s.procs[i].win.sealed || s.procs[i].early
	holds := s.procs[i].m.held.Version != 0
	for read := range 1 + w.staleReads(s) {
		for _, due := range []bool{true, false} {
			if !due && (!holds || closing || !s.procs[i].m.doubt && !s.procs[i].m.suspect) {
				continue
			}
			var seen [8]Op
			n := 0
			for now := uint64(1); now <= w.ticks; now++ {
				for node := range int64(w.cells) {
					if w.moves && !w.mayUse(s, i, node) {
						continue
					}
					x := work{i, now, node, due, read}
					next := emit.copy()
					in := w.input(next, i)
					in.Now, in.Due = now, due
					in.Pick = uint64(node)
					op, depends, ok, err := w.chain(next, in, x)
					switch {
					case !ok:
					case err != nil || op.Kind == None:
						emit.step(x.says(quiet, 0), err)
					case slices.ContainsFunc(seen[:n], op.alike):
					default:
						seen[n] = op
						n++
						w.sent(next, x, op, emit)
					}
					if !depends {
						break
					}
				}
				if closing || !due {
					break
				}
			}
		}
	}
}

// work is how a process does its next operations: by which clock, at which candidate, reading older
// states.
type work struct {
	i    int
	now  uint64
	node int64
	due  bool
	read int
}

// What becomes of the write of a work.
const (
	quiet = iota // it writes nothing
	hangs        // there is no answer
	answered
	sentTwice // and the answer is a conflict
	conflicts
)

// says is the work as a step. With variant 1 the state before the write may be read later.
func (x work) says(fate, variant int) explore.Step {
	due := 0
	if x.due {
		due = 1
	}
	return explore.Say("process %d works: clock %d, node %d, due %d, old read %d, write %d, variant %d",
		x.i, int(x.now), int(x.node), due, x.read, fate, variant)
}

// sent yields what may become of a write that a process sends.
func (w *world) sent(s *state, x work, op Op, emit *emitter) {
	before := *s
	outcome := func(fate, variant int, r Result, err error) {
		if err == nil {
			err = w.done(s, x.i, op, r)
		}
		emit.step(x.says(fate, variant), err)
		*s = before
	}
	now := s.cells[op.Node].version == op.Version
	if !now && !w.mayReturn(s, op.Node, op.Version) {
		outcome(conflicts, 0, Result{Status: Conflict}, nil)
		return
	}
	m := w.message(x.i, op)
	if s.send(m); s.inNet <= w.net {
		outcome(hangs, 0, Result{Status: Failed}, nil)
		s.send(m)
	}
	s.remove(s.inNet - 1)
	before = *s
	if !now { // it may land after the store went back
		outcome(conflicts, 0, Result{Status: Conflict}, nil)
		return
	}
	for variant := range 1 + w.remembers(s) {
		for _, conflict := range []bool{false, true} {
			s.again(w, m)
			err := w.land(s, m, variant > 0)
			fate, r := answered, Result{Version: s.cells[op.Node].version}
			if conflict {
				fate, r = sentTwice, Result{Status: Conflict}
			}
			outcome(fate, variant, r, err)
		}
	}
}

// alike reports whether two operations of one machine write the same, by whatever name.
func (o Op) alike(p Op) bool {
	return o.Kind == p.Kind && o.Why == p.Why && o.Node == p.Node && o.Version == p.Version && o.Record.Limit == p.Record.Limit && o.Record.Floor == p.Record.Floor
}

// staleReads is how many kinds of older states can be read.
func (w *world) staleReads(s *state) int {
	n := 0
	if s.stale < w.stale {
		for _, c := range s.older[:w.cells] {
			if c.last > 0 {
				n = 1
			}
		}
	}
	return n
}

// chain carries out operations of process x.i, and returns the write that comes next, or an operation of
// the kind None. depends says that another node may be claimed instead; ok is false if there is no
// older state to be read.
func (w *world) chain(s *state, in Input, x work) (op Op, depends, ok bool, err error) {
	p := &s.procs[x.i]
	plain := x.read == 0
	for {
		rests := p.m.Rests() && !in.Due && !in.Closing && !in.Restored
		op = w.broken.next(s, p, in, p.m.Next(in))
		p.told, in.Restored = false, false
		if rests && op.Kind != None {
			return Op{}, depends, true, errors.New("a machine that rests has something to do")
		}
		depends = depends || op.Kind == List || w.moves
		if op.Why == Full && p.m.Sought().Busy && !w.locker {
			return Op{}, depends, true, errors.New("a cell is locked, though the store locks none")
		}
		if op.Kind == None {
			p.m.Begin()
			return Op{}, depends, plain, nil
		}
		if op.Why == Raise && p.win.To > 0 { // on one read alone, or while it may still stamp
			return Op{}, depends, true, w.unless(errStopped)
		}
		if op.Kind == Swap && op.Why != OfFleet {
			return op, depends, plain, w.follows(s, op)
		}
		held := p.m.Held()
		r, was := w.read(s, x, op)
		if plain = plain || was; r.Status == Failed { // the store has no number
			p.m.Begin()
			return Op{}, depends, plain, nil
		}
		events := p.m.Done(in, op, w.broken.result(p, in, op, r))
		quiet := len(events) == 0
		if err := w.happened(s, x.i, held, events); err != nil || !quiet {
			p.m.Begin()
			return Op{}, depends, plain, err
		}
	}
}

// mayUse reports whether a process may work on the store with that cell: it uses one only.
func (w *world) mayUse(s *state, i int, node int64) bool {
	p := &s.procs[i]
	if p.m.held.Version != 0 {
		return p.m.held.Node == node
	}
	for _, c := range p.m.claims {
		return c.Node == node
	}
	return p.win == few{} || p.win.given.Node == node
}

// read carries out an operation that writes no cell of a node number.
func (w *world) read(s *state, x work, op Op) (r Result, stale bool) {
	i, node := x.i, x.node
	at := func(n int64) Cell {
		c := &s.cells[n]
		if o := &s.older[n]; x.read > 0 && o.last > 0 && op.Why != OfFleet && s.stale < w.stale {
			c, stale = o, true
		}
		if w.back && op.Kind != Seal && op.Kind != Lock {
			if p := &s.procs[i]; !p.noticed {
				p.limit = max(p.limit, c.record.Limit)
			}
		}
		return Cell{Node: n, Version: c.version, Record: c.record, Still: true, Damaged: c.damaged}
	}
	switch op.Kind {
	case Seal:
		r.Used = s.procs[i].win.used
	case Lock:
		c := &s.cells[op.Node]
		switch {
		case c.lock != 0 && c.lock != i+1:
			r.Status = Locked
		default:
			c.lock = i + 1
		}
	case Read:
		if op.Node == FleetNode {
			return w.fleet(s, node), false
		}
		r.Cell = at(op.Node)
		if r.Cell.Damaged {
			r = Result{Status: Damaged}
		}
	case List:
		// The process claims node: the others look as if they were taken.
		for n := op.Node; n < op.Node+op.N; n++ {
			c := Cell{Node: n, Version: 1, Taken: true}
			if n == node {
				c = at(n)
			}
			if c.Version > 0 {
				r.Cells = append(r.Cells, c)
			}
		}
	}
	if stale {
		s.stale++
	}
	return r, stale
}

// fleet is a read of the fleet's cell, of the store that has that cell.
func (w *world) fleet(s *state, node int64) Result {
	switch {
	case !w.moves:
		return Result{Cell: Cell{Node: FleetNode, Version: 1}, Fleet: Fleet{Nodes: cell.Nodes{To: int64(w.cells)}}}
	case node == 0 && s.moved >= ended, node == 1 && s.moved < founded:
		return Result{Status: Failed}
	}
	return Result{Cell: Cell{Node: FleetNode, Version: 1}, Fleet: Fleet{Nodes: cell.Nodes{From: node, To: node + 1}, Floor: s.floor[node]}}
}

// follows checks that a write names the writes before it.
func (w *world) follows(s *state, op Op) error {
	c := &s.cells[op.Node]
	if op.Version != c.version || c.damaged {
		return nil
	}
	for k, name := range c.record.Names() {
		if k < w.kept && (k >= len(op.Record.Last) || op.Record.Last[k] != name) {
			return w.unless(errFollows)
		}
	}
	return nil
}

// message is a write of a process in the network.
func (w *world) message(i int, op Op) message {
	r := op.Record
	r.Last = r.Last[:min(len(r.Last), w.kept)]
	return message{by: i, node: op.Node, version: op.Version, record: r}
}

// send puts a write into the network, as the last one.
func (s *state) send(m message) {
	s.net[s.inNet] = m
	s.inNet++
}

// again leaves a copy of a write that lands in the network, since it may be sent twice, if the
// copy can land in a store that goes back.
func (s *state) again(w *world, m message) {
	if w.twice && w.mayReturn(s, m.node, m.version) && s.inNet < w.net+2 {
		s.send(m)
	}
}

// mayReturn reports whether the cell may have that version again.
func (w *world) mayReturn(s *state, node int64, version uint64) bool {
	return s.phase == backedUp && s.saved[node].version == version
}

// done tells the machine of a process what has become of its write. The next claim begins anew.
func (w *world) done(s *state, i int, op Op, r Result) error {
	in := w.input(s, i)
	p := &s.procs[i]
	r = w.broken.result(p, in, op, r)
	held := p.m.Held()
	events := p.m.Done(in, op, r)
	if w.broken == "M11_UNSEAL" && r.Status == Failed && op.Why == Release {
		p.win.sealed = false
	}
	p.m.Begin()
	return w.happened(s, i, held, events)
}

// network has writes reach the store, at any time or never.
func (w *world) network(s *state, emit *emitter) {
	for k := range s.inNet {
		m := &s.net[k]
		if s.cells[m.node].version == m.version {
			for variant := range 1 + w.remembers(s) {
				next := emit.copy()
				next.remove(k)
				next.again(w, *m)
				emit.step(explore.Say("write %d lands, variant %d", k, variant), w.land(next, *m, variant > 0))
			}
		}
		next := emit.copy()
		next.remove(k)
		emit.step(explore.Say("write %d is lost", k), nil)
	}
}

// remembers is 1 if the state before a write may be read later.
func (w *world) remembers(s *state) int {
	if s.stale < w.stale {
		return 1
	}
	return 0
}

// land carries out a write. With older, the state before it may be read later.
func (w *world) land(s *state, m message, older bool) error {
	c := &s.cells[m.node]
	if older {
		s.older[m.node] = *c
		s.older[m.node].last = 1
	}
	c.last++
	c.version, c.record, c.damaged = c.last, m.record, false
	for k := s.inNet - 1; k >= 0; k-- {
		if o := &s.net[k]; o.node == m.node && !w.mayReturn(s, m.node, o.version) {
			s.remove(k) // its version is past
		}
	}
	return w.covered(s)
}

// faults are what a store that keeps its word, and memory that is not copied, never do.
func (w *world) faults(s *state, emit *emitter) {
	if w.back && s.phase == before {
		next := emit.copy()
		next.saved, next.phase = s.cells, backedUp
		emit.step(explore.Say("the store is backed up"), nil)
	}
	if w.back && s.phase == backedUp {
		next := emit.copy()
		// Ticks that were granted before may be granted again. What is granted from now on is unique.
		next.saved, next.phase, next.stamper = [maxCells]kept{}, wentBack, nobody
		for c := range w.cells {
			last := s.cells[c].last
			next.cells[c] = s.saved[c]
			next.cells[c].last = last
		}
		emit.step(explore.Say("the store goes back"), nil)
	}
	for n := range int64(w.cells) {
		if w.damaged && s.cells[n].version != 0 && !s.cells[n].damaged {
			next := emit.copy()
			next.cells[n].damaged = true
			emit.step(explore.Say("the cell of node %d is damaged", int(n)), nil)
		}
	}
	for n := range int64(w.cells) {
		c := &s.cells[n]
		for limit := c.record.Limit + 1; limit <= w.ticks+1 && w.reserves; limit++ {
			next := emit.copy()
			r := cell.Node{Floor: limit, Limit: limit, Reserved: true, Write: "operator", Last: c.record.Names()[:min(w.kept, len(c.record.Names()))], Layout: "layout"}
			emit.step(explore.Say("an operator reserves node %d to %d", int(n), int(limit)), w.land(next, message{by: nobody, node: n, version: c.version, record: r}, false))
		}
	}
	w.operator(s, emit)
	for i := range w.procs {
		for j := range w.procs {
			if !(w.copied || w.untold) || i == j || s.procs[i].win.sealed || s.procs[i].untold > 0 {
				continue
			}
			next := emit.copy()
			w.copyTo(next, i, j)
			emit.step(explore.Say("the memory of process %d is copied to process %d", i, j), nil)
		}
	}
}

// operator moves the fleet, as package lease ends it and founds it in another store: it ends it in the fleet's
// cell, makes that of the number final, and founds the new store by that.
func (w *world) operator(s *state, emit *emitter) {
	last := founded
	if w.broken == "CELL_FIRST" {
		last = parked
	}
	if !w.moves || s.moved == last {
		return
	}
	for _, now := range []uint64{0, w.ticks} { // by an operator's clock that is behind, or ahead
		next := emit.copy()
		next.moved++
		emit.step(explore.Say("an operator moves the fleet, stage %d, clock %d", int(next.moved), int(now)), w.move(next, now))
		if next.moved != final {
			return // it does not look at the clock
		}
	}
}

// move is a stage of a move.
func (w *world) move(s *state, now uint64) error {
	stage, old, floor := s.moved, s.cells[0].record, s.floor[0]
	if w.broken == "NO_FLOOR" {
		floor = 0
	}
	if w.broken == "EARLY_FOUND" && stage != ended {
		stage = final + founded - stage
	}
	put := func(n int64, r cell.Node) error {
		r.Layout, r.Last = "layout", r.Last[:min(len(r.Last), w.kept)]
		return w.land(s, message{by: nobody, node: n, record: r}, false)
	}
	switch stage {
	case ended:
		s.seen = old.Limit
	case final:
		r := Final(old, floor, Far(old, floor, now, 0), "new", "operator")
		if w.broken == "FORGETS" || w.broken == "FREE_FORGETS" && old.Holder == "" {
			r.Floor, r.Limit = floor, floor
		}
		if w.broken == "ONLY_CLAIMED" && s.cells[0].version == 0 || w.broken == "ONLY_HELD" && old.Holder == "" {
			return nil
		}
		return put(0, r)
	case founded, parked:
		if w.broken == "EARLY_LIMIT" {
			old.Limit = s.seen
		}
		f := Founding{Floor: floor}
		f.Add(Cell{Node: 9, Record: Final(cell.Node{}, floor, false, "new", "")}) // was never claimed
		f.Add(Cell{Record: old})
		if w.broken == "LOWEST" {
			f.Floor = floor
		}
		s.floor[1] = f.Floor
		if len(f.Later) > 0 && w.broken != "NO_FAR" && (w.broken != "CELL_FIRST" || stage == parked && s.cells[1].version == 0) {
			return put(1, cell.Node{Floor: old.Limit, Limit: old.Limit, Reserved: true, Write: "operator"})
		}
	}
	return nil
}

// copyTo makes process j a copy of process i, while i goes on.
func (w *world) copyTo(s *state, i, j int) {
	w.restart(s, j)
	q := &s.procs[j]
	*q = s.procs[i]
	if w.copied { // and told
		q.win.revoke()
		q.told = true
		return
	}
	q.untold = max(q.win.To, q.m.held.Limit, s.cells[0].record.Limit)
	for k := range s.inNet {
		if m := &s.net[k]; m.by == i {
			q.untold = max(q.untold, m.record.Limit)
		}
	}
	s.procs[i].untold = q.untold
}

// happened acts on events as the driver does, and checks them. held is what was held before.
func (w *world) happened(s *state, i int, held Held, events []Event) error {
	p := &s.procs[i]
	for _, e := range events {
		switch e.Kind {
		case Claimed, Extended:
			if e.Kind == Claimed && p.noticed && e.Range.From < p.limit {
				return w.unless(errAbove)
			}
			if !p.noticed {
				p.limit = max(p.limit, e.Range.To)
			}
			if e.Kind == Claimed {
				p.since = s.phase == wentBack
			}
		case Suspected:
			if p.win.revoke(); s.phase != wentBack && w.stale == 0 && !w.untold {
				return w.unless(errAlarm)
			}
		case Trusted:
			names := s.cells[e.Range.Node].record.Names()
			if !slices.Contains(names, held.Write) && !slices.Contains(names, p.m.held.Write) && w.stale == 0 {
				return errTrusted
			}
		case WentBack:
			p.win.revoke()
			p.noticed = true
			// After stale reads, a cell that no longer has the name of our write looks the same.
			forgotten := w.stale > 0 && !slices.Contains(s.cells[e.Range.Node].record.Names(), held.Write)
			if s.phase != wentBack && !w.untold && !forgotten && !s.cells[e.Range.Node].damaged {
				return w.unless(errAlarm)
			}
			if c := &s.cells[e.Range.Node]; c.record.Limit < e.Range.To && !c.damaged {
				return errRaised
			}
		}
		if (e.Kind == Suspected || e.Kind == WentBack) && p.m.Grant().To > 0 {
			return errStopped
		}
	}
	if !w.back {
		p.limit, p.noticed = 0, false
	}
	return nil
}

// tidy does what the driver does at once: it unlocks what machines no longer need, and puts grants into windows.
func (w *world) tidy(s *state) {
	for c := range s.cells {
		if l := s.cells[c].lock; l > 0 && !s.procs[l-1].m.Keeps(int64(c)) {
			s.cells[c].lock = 0
		}
	}
	for i := range w.procs {
		p := &s.procs[i]
		w.takeAtOnce(p)
		if !w.back { // then they only raise floors: what holds without them holds with them
			p.m.most, p.m.least = 0, 0
		}
	}
}
