package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
)

const (
	tick     = int64(10 * time.Millisecond)
	epoch    = uint64(1 << 30) // the tick at the start of a run
	endOfAll = uint64(1 << 38)
	// A claim compares its clock with those of others: if fewer than fewHeld of the first cells
	// that it reads are held, with a sample of all cells. So does package lease.
	fewHeld, sampled = 3, 256
)

func tickOf(now int64) uint64 { return epoch + uint64(now/tick) }

// stored is what the store keeps for one node number. The names of earlier writes are left out:
// they are read only on a store that seems to have gone back.
type stored struct {
	version uint32 // 0: there is none
	holder  int32  // a process and 1, or 0
	floor   uint64
	limit   uint64
	write   uint64 // the name of the last write
}

// fleet is many keepers without goroutines. Each is a [grant.Machine], and waits by the functions
// of package grant.
type fleet struct {
	*store
	window    int64
	config    grant.Config
	rng       *rand.Rand
	names     uint64
	layout    bool // the cell of the layout exists
	cells     []stored
	processes []process
	queue     *queue
}

// process is a keeper.
type process struct {
	machine grant.Machine
	granted uint64 // the end of the last grant, or 0
	due     int64  // when the next extension is
	began   int64  // the present try
	serial  uint32
	trips   int32 // since the claim began

	running bool
	trying  bool
	writes  int8 // of the present try
	failed  bool // an operation had no answer, and was no write
	unknown bool // a write had no answer: it is read back, and then the try ends
	created bool // this try has made the cell of the layout
	paced   bool // something was granted at the last failure

	failures int32
	list     *list // that is on its way, or nil
}

// list is the answer to a list. The machine gets it when it has arrived, so that few processes have
// all cells of a block in memory.
type list struct {
	why     grant.Why
	from    int64
	cells   []listed
	sampled bool // a sample of all cells was asked for since
}

// listed is a cell when it was listed. If it was written since, a claim fails in any case.
type listed struct {
	version uint32
	held    bool
}

// held is how many of the cells were held.
func (l *list) held() (n int) {
	for _, c := range l.cells {
		if c.held {
			n++
		}
	}
	return n
}

func newFleet(s *store, seed uint64, processes int, nodes int64, window time.Duration) *fleet {
	return &fleet{
		store: s, window: int64(window),
		config: grant.Config{Window: uint64(int64(window) / tick), End: endOfAll, Nodes: nodes, Pinned: -1},
		rng:    rand.New(rand.NewPCG(seed, 0x6b6565706572)), cells: make([]stored, nodes),
		processes: make([]process, processes), queue: newQueue(int64(time.Millisecond)),
	}
}

// next puts off what a process does next.
func (f *fleet) next(i int32, at int64) {
	p := &f.processes[i]
	p.serial++
	f.queue.push(event{at: at, who: i, serial: p.serial})
}

func (f *fleet) start(i int32, now int64) {
	p := &f.processes[i]
	*p = process{serial: p.serial, running: true, machine: grant.New(f.config, token(i))}
	f.next(i, now)
}

// stop releases the number of a process, if its cell need not be read before.
func (f *fleet) stop(i int32, now int64) {
	p := &f.processes[i]
	p.serial++
	p.running = false
	in := f.input(p, now)
	in.Closing = true
	op := p.machine.Next(in)
	p.machine.Done(in, op, grant.Result{Used: in.Used}) // of sealing
	if op = p.machine.Next(in); op.Why == grant.Release {
		f.send(i, p, op, now)
	}
}

// run carries out all that happens until end.
func (f *fleet) run(end int64) {
	for {
		e, ok := f.queue.pop()
		if !ok {
			return
		}
		if e.at >= end {
			f.queue.push(e)
			return
		}
		if p := &f.processes[e.who]; p.serial == e.serial && p.running {
			f.do(e.who, p, e.at)
		}
	}
}

// do carries out the next operation of a process, as the driver of package lease does, or ends
// its try.
func (f *fleet) do(i int32, p *process, now int64) {
	if !p.trying {
		p.trying, p.began, p.writes, p.failed, p.unknown, p.created = true, now, 0, false, false, false
		p.machine.Begin()
	}
	in := f.input(p, now)
	if l := p.list; l != nil && !p.failed {
		if l.why == grant.First && !l.sampled && !p.created && l.held() < fewHeld && int64(len(l.cells)) < f.config.Nodes {
			l.sampled = true
			back, answered, _ := f.request(p, now, sampled)
			p.failed = !answered
			f.next(i, back)
			return
		}
		p.list = nil
		f.done(i, p, in, grant.Op{Kind: grant.List, Why: l.why, Node: l.from, N: int64(len(l.cells))}, f.answer(l), now)
	}
	if p.failed {
		f.fail(i, p, now)
		return
	}
	op := p.machine.Next(in)
	write := op.Kind == grant.Swap && op.Why != grant.Layout
	switch {
	case op.Kind == grant.None && op.Why == grant.Idle:
		f.rest(i, p, now)
		return
	case op.Kind == grant.None, p.unknown && op.Why != grant.Outcome && op.Why != grant.Doubt, write && p.writes == drive.InARow:
		f.fail(i, p, now)
		return
	case write:
		p.writes++
	}
	r, back := f.send(i, p, op, now)
	if p.list == nil {
		in.Now = tickOf(back)
		f.done(i, p, in, op, r, back)
	}
	switch {
	case r.Status == grant.Failed && write:
		p.unknown = true
		p.machine.Begin() // forgets the candidates, which are many
	case r.Status == grant.Failed:
		p.failed = true
	}
	f.next(i, back)
}

// input is what a machine is told. Its process issues IDs in every tick.
func (f *fleet) input(p *process, now int64) grant.Input {
	f.names++
	return grant.Input{
		Now: tickOf(now), Used: tickOf(now), Grant: p.machine.Grant(), Name: nameOf(f.names), Pick: f.rng.Uint64(),
		Due: p.machine.Held().Version != 0 && f.dueIn(p, now) <= 0,
	}
}

func nameOf(write uint64) string { return strconv.FormatUint(write, 36) }

func token(i int32) string { return strconv.Itoa(int(i) + 1) }

// send sends an operation. What it does to the store it does now, and the result arrives at back: that
// of a list, as the list of the process.
func (f *fleet) send(i int32, p *process, op grant.Op, now int64) (r grant.Result, back int64) {
	back, answered, served := f.request(p, now, op.N)
	if served {
		r = f.effect(i, p, op, now, back)
	}
	if !answered {
		r, p.list = grant.Result{Status: grant.Failed}, nil
	}
	return r, back
}

// request sends a request, of a list if it is for some cells. An answer that comes too late counts as
// none.
func (f *fleet) request(p *process, now, cells int64) (back int64, answered, served bool) {
	p.trips++
	back, served = f.admit(now, cells)
	if served && lost(now, back) {
		return now + timeout, false, true
	}
	return back, served, served
}

// effect carries out an operation at the store.
func (f *fleet) effect(i int32, p *process, op grant.Op, now, back int64) (r grant.Result) {
	switch {
	case op.Kind == grant.List:
		p.list = &list{why: op.Why, from: op.Node, cells: make([]listed, op.N)}
		for k := range p.list.cells {
			c := &f.cells[op.Node+int64(k)]
			p.list.cells[k] = listed{c.version, c.holder > 0}
		}
	case op.Node == grant.LayoutNode && !f.layout:
		f.layout = op.Kind == grant.Swap
		p.created = f.layout
	case op.Node == grant.LayoutNode && op.Kind == grant.Swap:
		r.Status = grant.Conflict
	case op.Node == grant.LayoutNode:
		r.Cell.Version = 1
	case op.Kind == grant.Read:
		r.Cell = f.cell(op.Node)
	default:
		c := &f.cells[op.Node]
		if uint64(c.version) != op.Version {
			r.Status = grant.Conflict
			break
		}
		*c = stored{version: c.version + 1, floor: op.Record.Floor, limit: op.Record.Limit, write: f.names}
		if op.Record.Holder != "" {
			c.holder = i + 1
		}
		r.Version = uint64(c.version)
		f.meter.wrote(int(i), now, back)
	}
	return r
}

// cell is a cell as it is read.
func (f *fleet) cell(node int64) grant.Cell {
	c := &f.cells[node]
	r := grant.Cell{Node: node, Version: uint64(c.version)}
	if c.version > 0 {
		r.Record = cell.Node{Floor: c.floor, Limit: c.limit, Window: f.config.Window, Write: nameOf(c.write)}
	}
	if c.holder > 0 {
		r.Record.Holder = token(c.holder - 1)
	}
	return r
}

// answer is the result of a list that has arrived.
func (f *fleet) answer(l *list) grant.Result {
	r := grant.Result{Cells: make([]grant.Cell, 0, len(l.cells))}
	for k, was := range l.cells {
		if was.version == 0 {
			continue
		}
		c := f.cell(l.from + int64(k))
		if c.Version != uint64(was.version) {
			c.Version, c.Record.Holder = uint64(was.version), ""
			c.Record.Limit = c.Record.Floor // a cell that was claimed since was free up to there
			if was.held {
				c.Record.Holder, c.Record.Limit = "another", endOfAll
			}
		}
		r.Cells = append(r.Cells, c)
	}
	return r
}

// done tells a machine the result of an operation, and acts on what it says.
func (f *fleet) done(i int32, p *process, in grant.Input, op grant.Op, r grant.Result, now int64) {
	third := f.window / 3
	for _, e := range p.machine.Done(in, op, r) {
		switch e.Kind {
		case grant.Claimed:
			f.meter.claim(int(i), now, p.trips)
			p.granted, p.due = e.Range.To, now+int64(grant.Spread(time.Duration(third), f.rng.Uint64()))
			p.failures, p.trips = 0, 0
		case grant.Extended:
			p.granted, p.due = e.Range.To, now+third
			p.failures, p.trips = 0, 0
		case grant.Suspected, grant.Trusted, grant.WentBack, grant.Forgot, grant.Moved, grant.Broken:
			panic(fmt.Sprintf("process %d: event %d, of a store that keeps its word: %+v", i, e.Kind, e))
		}
	}
}

// dueIn is the time until the next extension.
func (f *fleet) dueIn(p *process, now int64) int64 {
	return min(p.due-now, (int64(grant.ExtendAt(p.granted, f.config.Window))-int64(tickOf(now)))*tick)
}

// rest waits for the next extension.
func (f *fleet) rest(i int32, p *process, now int64) {
	p.trying = false
	f.next(i, now+max(f.dueIn(p, now), int64(time.Millisecond)))
}

// fail waits until the next try.
func (f *fleet) fail(i int32, p *process, now int64) {
	p.trying, p.list = false, nil
	p.failures++
	p.machine.Begin()
	if p.granted == 0 { // a first claim
		pause := grant.RetryClaim(time.Duration(f.window), int(p.failures), f.rng.Uint64())
		f.next(i, nextTry(p.began, now, pause))
		return
	}
	at := f.again(p, p.began, now)
	for p.machine.Held().Version != 0 && f.isAway(at) { // that try fails as well, and changes nothing
		back, _ := f.admit(at, 0)
		p.failures++
		at = f.again(p, at, back)
	}
	f.next(i, at)
}

// again is when to try again after a try that began and failed at these instants.
func (f *fleet) again(p *process, began, failed int64) int64 {
	left := (int64(p.granted) - int64(tickOf(failed))) * tick
	pause, granted := grant.Retry(time.Duration(f.window), f.config.Nodes, time.Duration(left+failed-began))
	if p.failures == 1 || granted != p.paced {
		pause = grant.Spread(pause, f.rng.Uint64())
	}
	p.paced = granted
	return nextTry(began, failed, pause)
}

func nextTry(began, failed int64, pause time.Duration) int64 {
	return int64(grant.Next(time.Duration(began), time.Duration(failed), pause))
}

// isAway reports whether a request that is sent at an instant arrives in an outage.
func (s *store) isAway(at int64) bool {
	for _, o := range s.away {
		if at+way >= o.from && at+way < o.to {
			return true
		}
	}
	return false
}
