package main

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/protocol"
)

const (
	tick     = int64(10 * time.Millisecond)
	epoch    = uint64(1 << 30) // the tick at the start of a run
	endOfAll = uint64(1 << 38)
	rounds   = 8 // of one try, as in package lease
)

func tickOf(now int64) uint64 { return epoch + uint64(now/tick) }

// kept is what the store keeps for one node number.
type kept struct {
	version uint32 // 0: there is none
	holder  int32  // a process and 1, or 0
	floor   uint64
	limit   uint64
	write   uint64 // the name of the last write
}

// fleet is many keepers without goroutines. They decide by [protocol.Decide], and wait
// and search by the functions that package lease uses.
type fleet struct {
	*store
	window    int64
	ticks     uint64 // the window
	nodes     int64
	rng       *rand.Rand
	names     uint64
	layout    bool // the cell of the layout exists
	cells     []kept
	processes []process
	queue     *queue
	scratch   []protocol.Cell
}

// process is a keeper.
type process struct {
	step     step
	served   bool // the request that step waits for
	doubt    bool
	unknown  bool // the last write has an unknown outcome
	paced    bool // something was granted at the last failure
	serial   uint32
	failures int32
	trips    int32 // since the claim began
	node     int32 // that is held, or -1
	version  uint32
	floor    uint64
	limit    uint64
	due      int64
	began    int64 // the present try
	pending  []uint64
	seen     kept   // that the request has read
	claim    *claim // if there is one
}

// step is what comes next in a process.
type step uint8

const (
	off      step = iota
	try           // a try begins
	readHeld      // the cell that is held was asked for
	readClaimed
	readLayout
	wroteLayout
	listed
	sampled
	swapped // the claim was written
)

// claim is a claim that is being made.
type claim struct {
	search   protocol.Search
	free     []candidate
	others   int
	rounds   int
	rank     protocol.Rank
	decision protocol.Decision
	sample   bool // a list of others is still to be made
	probing  bool
	pending  []pendingClaim
	reading  int // of pending
	created  bool
}

type candidate struct {
	node    int32
	version uint32
	taken   bool
}

type pendingClaim struct {
	node    int32
	version uint32
	name    uint64
	floor   uint64
	limit   uint64
}

func newFleet(s *store, seed uint64, processes int, nodes int64, window time.Duration) *fleet {
	return &fleet{
		store: s, window: int64(window), ticks: uint64(int64(window) / tick), nodes: nodes,
		rng: rand.New(rand.NewPCG(seed, 0x6b6565706572)), cells: make([]kept, nodes),
		processes: make([]process, processes), queue: newQueue(int64(time.Millisecond)),
	}
}

// next puts off what a process does next.
func (f *fleet) next(i int32, at int64, s step) {
	p := &f.processes[i]
	p.step = s
	p.serial++
	f.queue.push(event{at: at, who: i, serial: p.serial})
}

func (f *fleet) start(i int32, now int64) {
	p := &f.processes[i]
	*p = process{serial: p.serial, node: -1}
	f.next(i, now, try)
}

// stop releases the number of a process.
func (f *fleet) stop(i int32, now int64) {
	p := &f.processes[i]
	p.serial++
	p.step = off
	if p.node < 0 || p.doubt {
		return
	}
	s := f.state(i, now)
	s.Closing = true
	d := protocol.Decide(s, protocol.Read{})
	if back, served := f.admit(now, 0); served {
		f.write(i, d, now, back)
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
		if p := &f.processes[e.who]; p.serial == e.serial && p.step != off {
			f.do(e.who, p, e.at)
		}
	}
}

// do carries out a step.
func (f *fleet) do(i int32, p *process, now int64) {
	switch p.step {
	case try:
		p.began, p.unknown = now, false
		f.round(i, p, now)
	case readHeld:
		f.sawHeld(i, p, now)
	default:
		f.claiming(i, p, now)
	}
}

// round begins a round of a process that holds a number, or of one that claims one.
func (f *fleet) round(i int32, p *process, now int64) {
	switch {
	case p.node < 0:
		f.beginClaim(i, p, now)
	case p.doubt:
		p.seen = f.cells[p.node]
		f.request(i, p, now, 0, readHeld)
	default:
		f.extend(i, p, now)
	}
}

// request sends a request that changes nothing. The step follows when it has ended.
func (f *fleet) request(i int32, p *process, now, cells int64, s step) {
	back, served := f.send(p, now, cells)
	p.served = served
	f.next(i, back, s)
}

// send sends a request. An answer that comes too late counts as none.
func (f *fleet) send(p *process, now, cells int64) (back int64, answered bool) {
	p.trips++
	back, served := f.admit(now, cells)
	if served && lost(now, back) {
		return now + timeout, false
	}
	return back, served
}

// name draws the name of a write.
func (f *fleet) name() (uint64, string) {
	f.names++
	return f.names, strconv.FormatUint(f.names, 36)
}

func (f *fleet) state(i int32, now int64) protocol.State {
	p := &f.processes[i]
	_, name := f.name()
	s := protocol.State{
		Token: token(i), Window: f.ticks, End: endOfAll, Node: -1,
		Now: tickOf(now), Name: name, Pick: f.rng.Uint64(), Due: true,
	}
	if p.node >= 0 {
		s.Held = &protocol.Held{Node: int64(p.node), Version: uint64(p.version), Floor: p.floor, Limit: p.limit}
		for _, n := range p.pending {
			s.Held.Pending = append(s.Held.Pending, strconv.FormatUint(n, 36))
		}
	}
	return s
}

func token(i int32) string { return strconv.Itoa(int(i) + 1) }

// write carries out a write at the store, and reports whether it landed.
func (f *fleet) write(i int32, d protocol.Decision, now, back int64) bool {
	c := &f.cells[d.Node]
	if uint64(c.version) != d.Version {
		return false
	}
	holder := i + 1
	if d.Record.Holder == "" {
		holder = 0
	}
	*c = kept{version: c.version + 1, holder: holder, floor: d.Record.Floor, limit: d.Record.Limit, write: f.names}
	f.meter.wrote(int(i), now, back)
	return true
}

func (f *fleet) extend(i int32, p *process, now int64) {
	d := protocol.Decide(f.state(i, now), protocol.Read{})
	p.trips++
	back, served := f.admit(now, 0)
	landed := served && f.write(i, d, now, back)
	if served && !lost(now, back) && landed {
		p.version++
		f.extended(i, p, d.Held.Limit, back)
		return
	}
	p.doubt = true
	if p.pending = append(p.pending, f.names); len(p.pending) > protocol.MaxPending {
		p.pending = p.pending[1:]
	}
	p.unknown = !served || lost(now, back)
	if p.unknown {
		back = min(back, now+timeout)
	}
	// The cell is read when the write has ended.
	p.served = true
	f.next(i, back, readHeld)
	p.seen.version = ^uint32(0) // not read yet
}

// extended notes that the cell has our limit.
func (f *fleet) extended(i int32, p *process, limit uint64, now int64) {
	p.limit, p.doubt, p.unknown, p.failures, p.pending = limit, false, false, 0, nil
	p.due = now + f.window/3
	f.rest(i, p, now)
}

// rest waits for the next extension.
func (f *fleet) rest(i int32, p *process, now int64) {
	in := min(p.due-now, int64(protocol.ExtendAt(p.limit, f.ticks)-tickOf(now))*tick)
	f.next(i, now+max(in, int64(time.Millisecond)), try)
}

// sawHeld has the cell that is held, or sends the request for it.
func (f *fleet) sawHeld(i int32, p *process, now int64) {
	switch {
	case p.seen.version == ^uint32(0):
		p.seen = f.cells[p.node]
		f.request(i, p, now, 0, readHeld)
		return
	case !p.served:
		f.failed(i, p, now)
		return
	}
	read := f.cell(int64(p.node), p.seen)
	d := protocol.Decide(f.state(i, now), protocol.Read{Held: &read})
	switch {
	case d.Kind == protocol.Adopt:
		p.version = p.seen.version
		f.extended(i, p, d.Held.Limit, now)
	case d.Kind == protocol.Extend && p.unknown:
		f.failed(i, p, now)
	case d.Kind == protocol.Extend:
		f.extend(i, p, now)
	default: // lost
		p.node, p.doubt, p.pending = -1, false, nil
		f.beginClaim(i, p, now)
	}
}

// cell is a cell as a keeper reads it.
func (f *fleet) cell(node int64, c kept) protocol.Cell {
	r := protocol.Cell{Node: node, Version: uint64(c.version)}
	if c.version > 0 {
		r.Record = cell.Node{Floor: c.floor, Limit: c.limit, Window: f.ticks, Write: strconv.FormatUint(c.write, 36)}
		if c.holder > 0 {
			r.Record.Holder = token(c.holder - 1)
		}
	}
	return r
}

// failed waits until the next try.
func (f *fleet) failed(i int32, p *process, now int64) {
	p.failures++
	p.unknown = false
	window := time.Duration(f.window)
	if p.limit == 0 { // a first claim
		pause := protocol.RetryClaim(window, int(p.failures), f.rng.Uint64())
		f.next(i, nextTry(p.began, now, pause), try)
		return
	}
	at := f.again(p, p.began, now)
	for p.node >= 0 && f.isAway(at) { // that try fails as well, and changes nothing
		back, _ := f.admit(at, 0)
		p.failures++
		at = f.again(p, at, back)
	}
	f.next(i, at, try)
}

// again is when to try again after a try that began and failed at these instants.
func (f *fleet) again(p *process, began, failed int64) int64 {
	left := (int64(p.limit) - int64(tickOf(failed))) * tick
	pause, granted := protocol.Retry(time.Duration(f.window), f.nodes, time.Duration(left+failed-began))
	if p.failures == 1 || granted != p.paced {
		pause = protocol.Spread(pause, f.rng.Uint64())
	}
	p.paced = granted
	return nextTry(began, failed, pause)
}

func nextTry(began, failed int64, pause time.Duration) int64 {
	return int64(protocol.Next(time.Duration(began), time.Duration(failed), pause))
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
