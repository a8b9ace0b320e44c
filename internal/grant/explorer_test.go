package grant

import (
	"errors"
	"slices"
	"strconv"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/explore"
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
	apart    bool   // ticks are stamped by a program, without the window, which does not know which
	past     bool   // an operator gives node number 0 to the past, and processes issue IDs for old rows with it
	word     bool   // world.past: and says that it was never used, after the store went back

	broken mutant
}

const (
	maxProcs = 3
	maxCells = 2
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
	net   []message        // not changed, but copied
	procs [maxProcs]proc

	witness uint64
	stamper int // the process that stamped it, or nobody, or dead
	past    [maxCells]past
	saves   past // a store that goes back: that of cell 0, when it was backed up
	issuers int  // that have the lane of the witness and have not stamped it
	old     bool // a lane has stamped it: that holds also after the store went back

	names uint64 // so many were drawn
}

// Stampers that are no living process.
const (
	nobody = -1
	dead   = -2
)

// past is what a store counts for a number that was given to the past.
type past struct {
	lanes int     // which definition it has, or 0
	drawn [2]bool // by definition: the lane of the witness, which is the first
}

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
	knows   bool   // world.apart: the machine is told that a program may stamp
	runs    bool   // world.apart: the program was started
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
	s.net = slices.Clone(s.net)
	for k := range s.net {
		if s.net[k].by == i {
			s.net[k].by = nobody
		}
	}
	s.procs[i] = proc{m: New(w.config(), s.name())}
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
	errMissed  = errors.New("back: a store that went back is taken for another process")
	errTrusted = errors.New("back: a write that the store has lost is trusted")
	errAhead   = errors.New("apart: a release keeps the limit, though the program was not started")
)

// Step has one thing happen.
func (w *world) Step(s *state, pick func(int) int) (explore.Step, error) {
	step, err := try{w, pick}.step(s)
	if err == nil {
		w.tidy(s)
	}
	return step, err
}

// try is a world that picks one of the steps that are possible.
type try struct {
	*world
	pick func(n int) int // 0 to n-1
}

// step makes s the state after a step, and returns what that is.
func (t try) step(s *state) (explore.Step, error) {
	i := t.pick(t.procs + 2)
	switch i {
	case t.procs:
		return t.network(s)
	case t.procs + 1:
		return t.faults(s)
	}
	p := &s.procs[i]
	switch kind := t.pick(6); {
	case kind == 0 && t.apart && p.win.free() && !p.runs:
		return t.begin(p, i)
	case kind == 0 && p.win.free():
		return t.stamp(s, i)
	case kind == 1 && t.mayTake(p):
		t.take(p)
		return explore.Say("process %d takes its grant into use", i), nil
	case kind == 2 && !p.win.sealed && (p.m.held.Version != 0 || p.win.free() || p.told || len(p.m.claims) > 0):
		p.win.sealed = true
		return explore.Say("process %d seals its window", i), nil
	case kind == 3 && t.broken == "LATE" && p.runs && !p.knows:
		p.knows = true
		return explore.Say("process %d tells the machine of its program", i), nil
	case kind == 3 && t.broken == "M11_EARLY" && !p.early && p.m.held.Version != 0:
		p.early = true
		return explore.Say("process %d releases before it seals", i), nil
	case kind == 4:
		return t.work(s, i)
	case kind == 5:
		t.restart(s, i)
		return explore.Say("process %d crashes", i), nil
	}
	return explore.Impossible()
}

// begin starts the program of a process, once the machine is told of it.
func (t try) begin(p *proc, i int) (explore.Step, error) {
	if p.knows || t.broken == "LATE" {
		p.runs = true
		return explore.Say("process %d starts its program", i), nil
	}
	p.knows = true
	return explore.Say("process %d is to start a program", i), nil
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
	if w.broken == "M2" || w.broken == "M5" {
		p.win.To = w.ticks + 1
	}
	if p.since {
		p.win.since = p.m.Grant()
	}
}

// stamp has a process stamp any of its ticks, at any time, however long after another took its cell.
func (t try) stamp(s *state, i int) (explore.Step, error) {
	win := &s.procs[i].win
	tick := win.used + uint64(t.pick(int(win.To-win.used)))
	if !t.apart {
		win.used = tick + 1
	}
	if t.broken == "M13" {
		win.issued = tick + 1
	}
	var err error
	if (win.Node == 0 || t.moves) && tick == s.witness && tick >= s.procs[i].untold && (s.phase != wentBack || win.since.From <= tick && tick < win.since.To) {
		if s.stamper != nobody && s.stamper != i || s.old {
			err = errUnique
		}
		s.stamper = i
		err = errors.Join(err, t.covered(s))
	}
	return explore.Say("process %d stamps tick %d", i, int(tick)), err
}

// covered checks the limit of cell 0.
func (w *world) covered(s *state) error {
	if s.stamper != nobody && s.cells[0].record.Limit <= s.witness && !w.moves {
		return w.unless(errCovered)
	}
	return nil
}

// unless returns err, or nil of a mutant, but MISSED: there we want to see a real second stamp.
func (w *world) unless(err error) error {
	if w.broken != "" && w.broken != "MISSED" {
		return nil
	}
	return err
}

// input is what a process is told.
func (w *world) input(s *state, i int) Input {
	p := &s.procs[i]
	return Input{Now: 1, Used: p.win.used, Grant: p.win.given, Name: s.name(), Closing: p.win.sealed || p.early, Restored: p.told,
		Apart: p.knows && w.broken != "LOWERED" || w.broken == "ALWAYS"}
}

// work has the machine of a process do its next operations, until a write is answered or something
// has happened. All that is one step. If another process writes between a read and the write, the write
// meets a conflict, whichever of the two came first. Until the answer comes, the process can only stamp
// and seal, which it can do as well before the step, or after it; and memory that is copied meanwhile
// does as if it had got no answer.
func (t try) work(s *state, i int) (explore.Step, error) {
	p := &s.procs[i]
	closing := p.win.sealed || p.early
	x := work{i: i, read: t.pick(1 + t.oldReads(s)), due: t.pick(2) == 0, now: 1}
	switch {
	case x.due && !closing:
		x.now += uint64(t.pick(int(t.ticks)))
	case !x.due && (p.m.held.Version == 0 || closing || !p.m.doubt && !p.m.suspect):
		return explore.Impossible()
	}
	if x.node = int64(t.pick(t.cells)); t.moves && !t.mayUse(s, i, x.node) {
		return explore.Impossible()
	}
	in := t.input(s, i)
	in.Now, in.Due, in.Pick = x.now, x.due, uint64(x.node)
	op, depends, ok, err := t.chain(s, in, x)
	switch {
	case !ok || !depends && x.node > 0:
		return explore.Impossible()
	case err != nil || op.Kind == None:
		return x.says(quiet, 0), err
	}
	return t.fate(s, x, op)
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

// fate is what may become of a write that a process sends.
func (t try) fate(s *state, x work, op Op) (explore.Step, error) {
	m := t.message(x.i, op)
	now := s.cells[op.Node].version == op.Version
	switch fate := t.pick(conflicts + 1); {
	case fate == hangs && len(s.net) < t.net && (now || t.mayReturn(s, op.Node, op.Version)):
		s.send(m)
		return x.says(fate, 0), t.done(s, x.i, op, Result{Status: Failed})
	case fate == conflicts && !now: // it may land after the store went back
		return x.says(fate, 0), t.done(s, x.i, op, Result{Status: Conflict})
	case (fate == answered || fate == sentTwice) && now:
		variant := t.pick(1 + t.oldReads(s))
		s.again(t.world, m)
		err := t.land(s, m, variant > 0)
		r := Result{Version: s.cells[op.Node].version}
		if fate == sentTwice {
			r = Result{Status: Conflict}
		}
		if err == nil {
			err = t.done(s, x.i, op, r)
		}
		return x.says(fate, variant), err
	}
	return explore.Impossible()
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
func (s *state) send(m message) { s.net = append(s.net[:len(s.net):len(s.net)], m) }

// again leaves a copy of a write that lands in the network, since it may be sent twice, if the
// copy can land in a store that goes back.
func (s *state) again(w *world, m message) {
	if w.twice && w.mayReturn(s, m.node, m.version) && len(s.net) < w.net+2 {
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

// network has a write reach the store, at any time or never.
func (t try) network(s *state) (explore.Step, error) {
	k := t.pick(len(s.net) + 1)
	if k == len(s.net) {
		return explore.Impossible()
	}
	m := s.net[k]
	s.net = slices.Delete(slices.Clone(s.net), k, k+1)
	switch {
	case t.pick(2) == 0:
		return explore.Say("write %d is lost", k), nil
	case s.cells[m.node].version != m.version:
		return explore.Impossible()
	}
	variant := t.pick(1 + t.oldReads(s))
	s.again(t.world, m)
	return explore.Say("write %d lands, variant %d", k, variant), t.land(s, m, variant > 0)
}

// oldReads is 1 if a read may return an older state: a write is then one after which the state before it is read, or
// is not.
func (w *world) oldReads(s *state) int { return min(w.stale-s.stale, 1) }

// land carries out a write. With older, the state before it may be read later.
func (w *world) land(s *state, m message, older bool) error {
	c := &s.cells[m.node]
	if older {
		s.older[m.node] = *c
		s.older[m.node].last = 1
	}
	c.last++
	c.version, c.record, c.damaged = c.last, m.record, false
	s.net = slices.DeleteFunc(slices.Clone(s.net), func(o message) bool { // its version is past
		return o.node == m.node && !w.mayReturn(s, m.node, o.version)
	})
	return w.covered(s)
}

// faults are what a store that keeps its word, and memory that is not copied, never do.
func (t try) faults(s *state) (explore.Step, error) {
	switch kind := t.pick(7); {
	case kind == 0 && t.back && s.phase == before:
		s.saved, s.saves, s.phase = s.cells, s.past[0], backedUp
		return explore.Say("the store is backed up"), nil
	case kind == 1 && t.back && s.phase == backedUp:
		for c := range t.cells {
			s.saved[c].last = s.cells[c].last
		}
		was := s.cells[0].record
		// Ticks that were granted before may be granted again. What is granted from now on is unique.
		s.cells, s.saved, s.phase, s.stamper = s.saved, [maxCells]kept{}, wentBack, nobody
		s.past[0], s.saves = s.saves, past{}
		if was.Past != "" && t.broken != "RESTORED" { // an operator knows
			c := &s.cells[0]
			c.last++
			c.version, c.record = c.last, Retire(cell.Node{Write: "operator", Last: c.record.Names()[:min(t.kept, len(c.record.Names()))], Layout: "layout"}, t.ticks+1)
		}
		return explore.Say("the store goes back"), nil
	case kind == 2 && t.damaged:
		if n := t.pick(t.cells); s.cells[n].version != 0 && !s.cells[n].damaged {
			s.cells[n].damaged = true
			return explore.Say("the cell of node %d is damaged", n), nil
		}
	case kind == 3 && t.reserves:
		n := t.pick(t.cells)
		if c := &s.cells[n]; c.record.Limit <= t.ticks {
			names, limit := c.record.Names(), c.record.Limit+1+uint64(t.pick(int(t.ticks+1-c.record.Limit)))
			r := cell.Node{Floor: limit, Limit: limit, Reserved: true, Write: "operator", Last: names[:min(t.kept, len(names))], Layout: "layout"}
			return explore.Say("an operator reserves node %d to %d", n, int(limit)), t.land(s, message{by: nobody, node: int64(n), version: c.version, record: r}, false)
		}
	case kind == 4 && t.moves:
		return t.operator(s)
	case kind == 6 && t.past:
		return t.oldRows(s)
	case kind == 5 && (t.copied || t.untold):
		if i, j := t.pick(t.procs), t.pick(t.procs); i != j && !s.procs[i].win.sealed && s.procs[i].untold == 0 {
			t.copyTo(s, i, j)
			return explore.Say("the memory of process %d is copied to process %d", i, j), nil
		}
	}
	return explore.Impossible()
}

// oldRows gives number 0 to the past, or issues the ID of the witness's tick and first lane with it: other lanes
// meet nothing. A process that draws it may issue it at any time, or never.
func (t try) oldRows(s *state) (explore.Step, error) {
	n := 0
	if t.moves {
		n = t.pick(2)
	}
	c, p := &s.cells[n], &s.past[n]
	switch kind := t.pick(4); {
	case kind == 0 && p.lanes == 0: // (P2)
		p.lanes = 1 + t.pick(2)
		return explore.Say("an operator defines lanes %d of store %d", p.lanes, n), nil
	case kind == 1 && (p.lanes != 0 || t.broken == "ORDER") && (n == 0 || s.moved >= founded):
		was, floor, back := Cell{Version: c.version, Record: c.record, Damaged: c.damaged}, s.floor[n], s.phase == wentBack
		switch t.broken {
		case "HELD":
			was = Cell{}
		case "FLOOR":
			floor = 0
		}
		r, err := Give(was, Fleet{Floor: floor}, t.ticks+1, back, back && t.word, "operator", "layout")
		if err != nil || c.record.Past != "" {
			return explore.Impossible()
		}
		if t.broken == "LIMIT" {
			r.Floor, r.Limit = c.record.Floor, c.record.Limit
		}
		return explore.Say("an operator gives store %d to the past", n), t.land(s, message{by: nobody, node: int64(n), version: c.version, record: r}, false)
	case kind == 2 && c.record.Past == cell.Given || kind == 2 && t.broken == "MOVED" && n == 1 && s.cells[0].record.Past == cell.Given && s.moved >= founded:
		lanes := max(p.lanes, 1) - 1 // mutant ORDER: one of its own, if there is none
		if !p.drawn[lanes] {
			p.drawn[lanes] = true
			s.issuers++
			return explore.Say("a process draws the lane of store %d", n), nil
		}
	case kind == 3 && s.issuers > 0:
		s.issuers--
		var err error
		if s.stamper != nobody || s.old {
			err = errUnique
		}
		s.stamper, s.old = dead, true
		return explore.Say("a process issues an old row's ID"), err
	}
	return explore.Impossible()
}

// operator moves the fleet, as package lease ends it and founds it in another store: it ends it in the fleet's
// cell, makes that of the number final, and founds the new store by that.
func (t try) operator(s *state) (explore.Step, error) {
	last := founded
	if t.broken == "CELL_FIRST" {
		last = parked
	}
	if s.moved == last {
		return explore.Impossible()
	}
	s.moved++
	now := uint64(0) // by an operator's clock that is behind, or ahead
	if s.moved == final {
		now = t.ticks * uint64(t.pick(2))
	}
	return explore.Say("an operator moves the fleet, stage %d, clock %d", int(s.moved), int(now)), t.move(s, now)
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
		f := Handover{Floor: floor}
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
	for _, m := range s.net {
		if m.by == i {
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
		case Released:
			if w.apart && !p.knows && !p.runs && e.Record.Limit > e.Range.From {
				return errAhead
			}
		case Lost:
			if c := &s.cells[e.Range.Node]; c.record.Limit < e.Range.To && !c.damaged && w.stale == 0 && !w.untold {
				return w.unless(errMissed)
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
