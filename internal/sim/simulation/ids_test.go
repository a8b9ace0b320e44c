//go:build simulate

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// errRefused is the error of a keeper that grants nothing at the moment.
var errRefused = errors.New("refused")

// ids is a generator with callers, a keeper that puts grants into its window, and faults of its clock. It
// is the generator's clock.
type ids struct {
	*run
	layout snowflake.Layout
	bits   int    // of the sequence
	end    uint64 // the tick after the last
	gen    *generator.Generator
	window *window.Ticks
	borrow time.Duration // the furthest that the strategy issues ahead of the clock
	most   time.Duration // of the jitter

	// The keeper.
	held    window.Range
	grants  []window.Range
	changes int // grants and revocations: odd amid one
	asks    int // that it has received
	asked   int // of these, or in the channel, those before the present grant
	askFrom uint64
	revoked bool // since the last grant
	copies  int  // of the memory
	lost    bool // grants nothing any more

	sealing, closed bool   // a call that seals has begun, and one has returned
	firsts          int    // calls of Seal that were the first
	over            uint64 // the first unused tick of the sealed window

	// Issued.
	issued  map[snowflake.ID]bool
	streams bool
	highest snowflake.ID      // that a call other than a stream's has returned
	latest  uint64            // tick that a call has returned
	live    []*cancelled      // the contexts of calls
	skipped map[uint64]uint64 // slots that calls of NextAfter have taken or dropped, and additions dropped: from the slot after them to the first

	acts, acting  int // calls, closes and changes of the window that have begun, and those that have not ended
	heldUp, seals int // callers that are held up, and how often one has sealed a word
}

// call is a caller's present call.
type call struct {
	heard     int           // how many changes there were when it took the channel that tells
	dry       bool          // it has asked why there is no grant, since the last reading
	asks      int           // that the keeper had received then
	low, high time.Duration // readings of the clock, from the epoch
	reading   time.Duration // the last
	seen      *snowflake.ID // of NextAfter
	looked    bool          // at the marker, since it took a slot
	saw       uint64        // it was this

	// Of additions.
	alone bool   // no other act had not ended when it began
	acts  int    // that had begun then, this one among them
	added bool   // it has added
	end   uint64 // the last look at adding
	at    moment // of that look
}

// moment is what may change while a caller is held up between its look at adding and its addition.
type moment struct{ tick, backs, changes uint64 }

func (p *ids) moment() moment { return moment{p.now(), p.backs, uint64(p.changes)} }

// act counts a call, a close or a change of the window until the function that it returns is called.
func (p *ids) act() (end func()) {
	p.acts++
	p.acting++
	return func() { p.acting-- }
}

// issuing is the program of a generator.
func issuing(r *run) func() {
	p := &ids{
		run: r, bits: r.IntN(6), issued: map[snowflake.ID]bool{}, skipped: map[uint64]uint64{}, highest: -1, most: pick(r, 0, 20*us, 400*us, 3*ms),
		layout: snowflake.Layout{Epoch: epoch, Tick: ms, TimeBits: 41, NodeBits: 2, Order: pick(r, snowflake.TimeNodeSequence, snowflake.TimeSequenceNode)},
	}
	p.streams = r.IntN(3) == 0
	if p.streams && r.IntN(4) != 0 {
		p.bits = 5 + r.IntN(3) // where a stream's blocks are longer than one slot
	}
	switch r.IntN(12) {
	case 0, 1:
		p.layout.TimeBits = 3 + r.IntN(3) // the end of time is near
		r.clock.Step(time.Duration(r.Int64N(1<<p.layout.TimeBits*int64(ms))) - r.clock.Wall().Sub(epoch))
	case 2:
		p.bits, p.layout.NodeBits, p.streams = 22, 0, false // the slots take all 63 bits
		r.clock.Step(1<<41*ms - pick(r, 2*ms, 4*ms, 10*ms) - r.clock.Wall().Sub(epoch))
	}
	p.layout.SequenceBits = p.bits
	p.end = 1 << p.layout.TimeBits
	if p.bits == 22 {
		p.end-- // there is no room for a slot after it
	}
	p.window = window.NewTicks(uint8(p.bits), p.end)
	p.window.Watch(&r.marker)
	now := p.now()
	floor := now + uint64(r.IntN(4)) - min(now, uint64(r.IntN(4)))
	p.give(window.Range{Node: p.node(), From: floor, To: max(floor, now) + p.some()})
	gen, err := generator.New(generator.WithLayout(p.layout), generator.WithNode(p.held.Node), generator.WithClock(p),
		generator.WithWindow(p.window), generator.WithStrategy(p.strategy()),
		generator.WithSequenceStart(pick(r, strategies.StartZero(), strategies.StartRandom(1+r.Int64N(1<<p.bits)))))
	if err != nil {
		panic(err)
	}
	p.gen, r.rested, r.moved = gen, p.rest, p.moved
	closes := pick(r, 0, 0, 0, 1, 2, 3) // calls that close the generator, in part as its keeper does
	for i := range 1 + r.IntN(4) {
		r.spawn(fmt.Sprint("caller ", i), func(c *caller) {
			stream := gen.Stream()
			last := snowflake.ID(-1)
			for range 2 + r.IntN(5) {
				p.calls(c, stream, &last)
			}
			if i < closes {
				c.call = call{}
				p.await(func() bool { return p.heldUp > 0 }, r.clock.Passed()+pick(r, 0, ms, time.Second))
				p.close()
			}
		})
	}
	r.spawn("keeper", p.keep)
	p.copies = pick(r, 0, 0, 0, 1, 3)
	r.copied(p.copies)
	r.disturb(r.IntN(12), func() {
		if len(p.live) > 0 && r.IntN(2) == 0 {
			p.live[r.IntN(len(p.live))].cancel()
		}
	})
	return p.finish
}

func (p *ids) node() int64 { return p.Int64N(1 << p.layout.NodeBits) }

// strategy draws one, with the furthest that it borrows.
func (p *ids) strategy() strategies.Strategy {
	d := time.Duration(1+p.IntN(8)) * pick(p.run, ms/2, ms)
	chain := strategies.Chain(strategies.BorrowUpTo(d), strategies.WaitUpTo(3*d))
	p.borrow = pick(p.run, 0, forever, d)
	switch p.borrow {
	case 0:
		return pick(p.run, strategies.Reject(), strategies.WaitUpTo(d))
	case forever:
		return strategies.LastTimestampPlusOne()
	}
	return pick[strategies.Strategy](p.run, strategies.BorrowUpTo(d), chain, strategies.Func(chain.Decide)) // the last is asked for each ID
}

// now is the wall's tick.
func (p *ids) now() uint64 { return p.tick(p.clock.Wall().Sub(epoch)) }

func (p *ids) tick(reading time.Duration) uint64 { return uint64(max(reading, 0) / p.layout.Tick) }

// Now reads the wall.
func (p *ids) Now() time.Time {
	p.Before()
	now := p.clock.Now()
	if c := p.current; c != nil {
		reading := now.Sub(epoch)
		p.note("reads %s", reading)
		c.call.reading, c.call.low, c.call.high = reading, min(c.call.low, reading), max(c.call.high, reading)
		c.call.dry, c.call.asks = false, p.asks
	}
	p.jitter(p.most)
	return now
}

// Elapsed is the time that a wait takes.
func (p *ids) Elapsed() time.Duration { return p.clock.Passed() }

// After waits by itself, so that the select which follows has one case that is ready: time has sent, or
// the window has changed, or the context has ended.
func (p *ids) After(d time.Duration) <-chan time.Time {
	over := make(chan time.Time, 1)
	c := p.current
	if c == nil {
		p.failf("not served: a call at the end waits for %s, with no fault and nothing ahead", d)
		over <- p.clock.Now()
		return over
	}
	p.note("waits for %s", d)
	if c.call.dry && len(p.window.More()) == 0 && p.asks == c.call.asks {
		p.failf("not asked: a call waits for a grant, and the keeper does not know")
	}
	ended := func() bool {
		return c.call.heard != p.tells || slices.ContainsFunc(p.live, func(x *cancelled) bool { return x.c == c && x.Err() != nil })
	}
	// No sleep on a machine is shorter than 20 µs, and a clock that stands still a nanosecond before
	// its tick would be polled every nanosecond.
	p.await(ended, p.clock.Passed()+max(d, 20*us))
	if !ended() {
		over <- p.clock.Now()
	}
	return over
}

// rest checks that no call waits for a grant that exists, or that will never come.
func (p *ids) rest() {
	for _, c := range p.callers {
		if p.heldUp > 0 || c.done || c.awaits == nil || c.idle || !c.call.dry { // who is held up may be about to tell
			continue
		}
		f := p.window.Front()
		if f.Sealed || f.Limit > max(f.Slot, p.tick(c.call.reading)<<p.bits, p.above(c.call.seen)) || errors.Is(p.window.Err(), lease.ErrLost) {
			p.failf("not told: %s waits for a grant, and the window has %+v, lost: %v", c.name, f, p.window.Err())
		}
	}
}

// cancelled is the context of a caller's call, which may say that it has a deadline.
type cancelled struct {
	context.Context
	c        *caller
	cancel   func()
	deadline bool
}

func (c *cancelled) Deadline() (time.Time, bool) { return time.Time{}, c.deadline }

// calls has a caller make a call, or a few of its stream. last is what the stream has issued.
func (p *ids) calls(c *caller, stream *generator.Stream, last *snowflake.ID) {
	one := func(issue func() (snowflake.ID, error)) func() ([]snowflake.ID, error) {
		return func() ([]snowflake.ID, error) {
			id, err := issue()
			if err != nil && id != 0 {
				p.failf("%d with the error %v", id, err)
			}
			if err != nil {
				return nil, err
			}
			return []snowflake.ID{id}, nil
		}
	}
	switch kind := p.IntN(5); {
	case kind == 0 && p.streams:
		for range 1 + p.IntN(40) {
			p.call(c, last, nil, nil, one(stream.Next))
		}
	case kind == 1 && p.IntN(2) == 0: // often the rest of a tick
		p.call(c, nil, nil, nil, func() ([]snowflake.ID, error) {
			runs, err := p.gen.NextRuns(context.Background(), 1<<min(p.bits, 8), nil)
			var ids []snowflake.ID
			for _, run := range runs {
				for i := range run.Count {
					ids = append(ids, run.At(i))
				}
			}
			return ids, err
		})
	case kind <= 1:
		ids := make([]snowflake.ID, 1+p.IntN(3<<min(p.bits, 6)))
		p.call(c, nil, nil, nil, func() ([]snowflake.ID, error) {
			n, err := p.gen.NextN(ids)
			if n < 0 || n > len(ids) || (err == nil) != (n == len(ids)) {
				p.failf("%d of %d IDs, error %v", n, len(ids), err)
			}
			return ids[:n], err
		})
	case kind <= 3:
		ctx := &cancelled{c: c, deadline: p.IntN(2) == 0}
		ctx.Context, ctx.cancel = context.WithCancel(context.Background())
		p.live = append(p.live, ctx)
		for range 1 + p.IntN(4) {
			if seen := p.seen(); p.IntN(2) == 0 {
				p.call(c, nil, ctx, &seen, one(func() (snowflake.ID, error) { return p.gen.NextAfter(ctx, seen) }))
			} else {
				p.call(c, nil, ctx, nil, one(func() (snowflake.ID, error) { return p.gen.NextContext(ctx) }))
			}
		}
		p.live = slices.DeleteFunc(p.live, func(x *cancelled) bool { return x == ctx })
	default:
		for range 1 + p.IntN(8) {
			p.call(c, nil, nil, nil, one(p.gen.Next))
		}
	}
}

// seen draws an ID that a caller has seen: one of this generator or of another, mostly near the clock, or
// poison.
func (p *ids) seen() snowflake.ID {
	near := p.now() + uint64(p.IntN(6)) - min(p.now(), uint64(p.IntN(3)))
	far := p.now() + 1 + p.Uint64N(p.end)
	tick := min(pick(p.run, near, near, near, far, p.end-1), p.end-1)
	sequence := p.Uint64N(1 << p.bits)
	id := tick<<(p.bits+p.layout.NodeBits) | uint64(p.node())<<p.bits | sequence
	if p.layout.Order == snowflake.TimeSequenceNode {
		id = tick<<(p.bits+p.layout.NodeBits) | sequence<<p.layout.NodeBits | uint64(p.node())
	}
	return pick(p.run, snowflake.ID(id), snowflake.ID(id), max(p.highest, 0), snowflake.ID(p.Uint64()))
}

// above is a slot whose IDs are all larger than seen: the first of the tick after.
func (p *ids) above(seen *snowflake.ID) uint64 {
	if seen == nil {
		return 0
	}
	_, tick, _ := p.decode(*seen)
	return (tick + 1) << p.bits
}

// moved checks how far a call of NextAfter has moved the word, also if it fails afterwards: no further
// ahead of the clock than the strategy borrows. So no other call waits for what that one has seen.
func (p *ids) moved(c *caller, a word.Access) {
	switch {
	case a.Name == "adding" && a.Op == word.Load:
		c.call.end, c.call.at = a.Old, p.moment()
		p.holdUp()
	case a.Op == word.Or: // seals the word
		p.seals++
		p.holdUp()
	case a.Name == "free" && a.Op == word.Add:
		p.adds(&c.call, a.Old)
	}
	if c.call.seen == nil || a.Name != "free" || a.Op != word.CompareAndSwap || a.Failed || a.Old == 0 || c.call.high < c.call.low {
		return // the last: nor did it, but complete a change of the window
	}
	slot := a.New - 1
	if at := time.Duration(slot>>p.bits) * p.layout.Tick; at > c.call.high && at-c.call.high > p.borrow {
		p.failf("moved: the word to tick %d, the clock showed %s, and the strategy borrows %s", slot>>p.bits, c.call.high, p.borrow)
	}
	p.skipped[a.New] = max(a.Old, slot>>p.bits<<p.bits)
}

// holdUp lets the others go on for a while, one time of eight, or until one has sealed the word.
func (p *ids) holdUp() {
	if p.IntN(8) == 0 {
		seals, until := p.seals, p.steps+p.IntN(pick(p.run, 100, 1000))
		p.heldUp++
		p.await(func() bool { return p.steps >= until || p.seals > seals }, p.clock.Passed()+pick(p.run, 20*us, 2*ms, time.Minute))
		p.heldUp--
	}
}

// adds notes an addition by which a call has moved the word past slot. It drops the slot if that lies behind
// the tick of which it saw additions open; that happens only to a call that overlaps another, and once.
func (p *ids) adds(c *call, slot uint64) {
	late := p.moment()
	for what, met := range map[string]bool{
		"the end of the tick": late.tick > c.at.tick,
		"a step back":         late.backs > c.at.backs,
		"a change":            late.changes > c.at.changes && slot>>63 != 0,
		"the seal":            p.closed && slot>>63 != 0,
	} {
		if met {
			p.met[what]++
		}
	}
	switch {
	case c.added:
		p.failf("dropped: a call adds twice")
	case slot>>p.bits == c.end>>p.bits: // it is issued, or is found to be lost
	case c.alone && c.acts == p.acts:
		p.failf("dropped: slot %#x, by a call that saw additions open up to %#x, and overlaps no other", slot, c.end)
	default:
		p.skipped[slot+1] = slot
	}
	c.added = true
}

// call makes a call and checks what it returns. Of a stream, last is what it has issued; seen is that of
// NextAfter.
func (p *ids) call(c *caller, last *snowflake.ID, ctx *cancelled, seen *snowflake.ID, issue func() ([]snowflake.ID, error)) {
	p.Before()
	alone := p.acting == 0
	defer p.act()()
	c.call = call{heard: p.tells, low: math.MaxInt64, high: math.MinInt64, asks: p.asks, seen: seen, alone: alone, acts: p.acts}
	returned, latest, closed, changes, revoked := p.highest, p.latest, p.closed, p.changes, p.revoked
	ended := ctx != nil && ctx.Err() != nil
	ids, err := issue()
	p.progress = p.steps
	p.note("returns %d, %T", ids, err)
	granted := p.changes == changes && changes%2 == 0 // and not amid a change
	switch {
	case len(ids) > 0 && (closed || ended || revoked && granted):
		p.failf("issued after the end: of the window %t, of the context %t, of the grant %t", closed, ended, revoked)
	case err != nil:
		p.refused(c, ctx, granted, err)
	}
	for _, id := range ids {
		slot, tick, node := p.decode(id)
		p.original(c, slot)
		switch {
		case p.issued[id]:
			p.failf("duplicate: %d", id)
		case seen != nil && id <= *seen:
			p.failf("not above: %d, after %d was seen", id, *seen)
		case id < 0 || tick >= p.end || !slices.ContainsFunc(p.grants, func(g window.Range) bool {
			return g.Node == node && g.From <= tick && tick < g.To
		}):
			p.failf("not granted: tick %d of node %d, of %+v", tick, node, p.grants)
		case last == nil && id <= returned || last != nil && id <= *last || tick < latest:
			p.failf("order: %d of tick %d, after %d and %v, and tick %d", id, tick, returned, last, latest)
		case p.closed && tick >= p.over:
			p.failf("after the end: tick %d, and the window ended with %d", tick, p.over)
		case tick < p.tick(c.call.low):
			p.failf("stale: tick %d, and the clock showed %s", tick, c.call.low)
		case time.Duration(tick)*p.layout.Tick > c.call.high && time.Duration(tick)*p.layout.Tick-c.call.high > p.borrow:
			p.failf("ahead: tick %d, the clock showed %s, and the strategy borrows %s", tick, c.call.high, p.borrow)
		case granted && !p.sealing && slot >= p.askFrom && len(p.window.More()) == 0 && p.asks == p.asked:
			p.failf("not asked: slot %#x lies beyond the soft limit %#x", slot, p.askFrom)
		}
		p.issued[id] = true
		if last != nil {
			*last = id
		} else {
			returned = id
		}
	}
	// Only now, since all IDs return at once.
	for _, id := range ids {
		_, tick, _ := p.decode(id)
		p.latest = max(p.latest, tick)
		if last == nil {
			p.highest = max(p.highest, id)
		}
	}
}

// refused checks that an error is one of the documented ones, and true. granted says that the grant
// has not changed during the call.
func (p *ids) refused(c *caller, ctx *cancelled, granted bool, err error) {
	var lead *generator.LeadError
	var grant *generator.GrantError
	current := p.current
	p.current = nil // no step
	f := p.window.Front()
	p.current = current
	switch {
	case errors.As(err, &grant):
		if granted && f.Limit > max(f.Slot, p.tick(c.call.high)<<p.bits, p.above(c.call.seen)) {
			p.failf("a grant was there: %v", err)
		}
	case errors.As(err, &lead):
		if lead.Lead <= 0 || lead.Seen != 0 && (c.call.seen == nil || lead.Seen != *c.call.seen) {
			p.failf("a lead of %s: %v", lead.Lead, err)
		}
	case errors.Is(err, context.Canceled):
		if ctx == nil || ctx.Err() == nil {
			p.failf("the context has not ended: %v", err)
		}
	case errors.Is(err, lease.ErrEndOfTime):
		if p.tick(c.call.high) < p.end && f.Slot < p.end<<p.bits && p.above(c.call.seen) < p.end<<p.bits {
			p.failf("there is time left at %s: %v", c.call.high, err)
		}
	case errors.Is(err, snowflake.ErrRange):
		if seen := c.call.seen; seen == nil || *seen >= 0 && uint64(*seen)>>(p.layout.TimeBits+p.layout.NodeBits+p.bits) == 0 {
			p.failf("an ID of the layout: %v", err)
		}
	case !errors.Is(err, generator.ErrClosed) || !p.sealing:
		p.failf("of a type that was not promised: %v", err)
	}
}

func (p *ids) decode(id snowflake.ID) (slot, tick uint64, node int64) {
	nodes := p.layout.NodeBits
	slot, node = uint64(id)>>nodes, int64(id)&(1<<nodes-1)
	if p.layout.Order == snowflake.TimeNodeSequence {
		node = int64(id) >> p.bits & (1<<nodes - 1)
		slot = uint64(id)>>(p.bits+nodes)<<p.bits | uint64(id)&(1<<p.bits-1)
	}
	return slot, slot >> p.bits, node
}

// close ends the generator, or the window as a keeper does that is closed.
func (p *ids) close() {
	defer p.act()()
	p.sealing = true
	changed := p.window.Changed()
	if p.IntN(2) == 0 {
		if err := p.gen.Close(); err != nil {
			p.failf("Close: %v", err)
		}
	} else if end, first := p.window.Seal(); first {
		p.firsts++
		p.over, p.closed = end, true
		p.told(changed, "Seal")
	}
	end := p.window.Used()
	if p.closed && end != p.over || end <= p.latest && len(p.issued) > 0 {
		p.failf("the end of a sealed window is tick %d, and was %d; tick %d was returned", end, p.over, p.latest)
	}
	p.closed, p.over, p.progress = true, end, p.steps
}

// late has an addition of a caller that was held up land before, amid or after a seal, when the tick is used up.
func late(r *run) func() {
	w := window.NewTicks(3, 9)
	w.Grant(window.Range{To: 9}, 9)
	span := w.Span()
	span.Take(0, 0, 0, 1) // opens the additions
	end, _ := span.Adding()
	span.Take(0, 0, 0, 7)
	r.spawn("caller", func(*caller) {
		for range r.IntN(40) {
			r.Before()
		}
		span.Add(end)
	})
	r.spawn("keeper", func(*caller) {
		if end, _ := w.Seal(); end != w.Used() {
			r.failf("the end of a sealed window is tick %d, and was %d", w.Used(), end)
		}
	})
	return func() {}
}

// keep is the keeper: it does as it likes a few times, and answers a window that asks for more.
func (p *ids) keep(c *caller) {
	errands := pick(p.run, 0, 0, 1, 3, 6)
	for {
		for n := p.IntN(40); errands > 0 && n > 0 && len(p.window.More()) == 0; n-- {
			p.Before()
		}
		if len(p.window.More()) == 0 && errands > 0 {
			switch errands--; p.IntN(4) {
			case 0:
				p.revoke()
			case 1:
				p.extend(uint64(p.IntN(3)))
			default:
				p.move()
			}
			continue
		}
		c.idle = true
		p.await(func() bool { return len(p.window.More()) > 0 }, forever)
		c.idle = false
		<-p.window.More()
		p.asks++
		p.answer()
	}
}

// answer grants more, or refuses.
func (p *ids) answer() {
	if p.unnoticed() {
		end := p.act()
		p.changes++
		p.notice(p.window, func() uint64 { return p.window.Used() << p.bits })
		p.changes++
		end()
		p.held.To = 0 // another grant
		p.move()
		return
	}
	refuses := p.IntN(4) == 0
	p.lost = p.lost || refuses && p.IntN(32) == 0
	switch {
	case p.lost:
		p.fail(lease.ErrLost)
	case refuses && p.IntN(2) == 0: // in silence
	case refuses:
		p.fail(errRefused)
	case p.IntN(4) == 0:
		p.move()
	default:
		p.extend(max(p.now(), p.held.To, p.window.Used(), p.window.Wanted()) - p.held.To + p.some() + uint64(p.asks))
	}
}

func (p *ids) fail(err error) {
	changed := p.window.Changed()
	p.window.Fail(err)
	p.told(changed, "Fail")
}

// some is a number of ticks.
func (p *ids) some() uint64 { return 1 + uint64(p.IntN(pick(p.run, 1, 3, 20))) }

// extend grants more ticks of the node number that is held, from the end of the grant on or before.
func (p *ids) extend(ticks uint64) {
	to := p.held.To
	p.give(window.Range{Node: p.held.Node, From: max(p.held.From, to-min(to, uint64(p.IntN(3)))), To: to + ticks})
}

// move grants another node number.
func (p *ids) move() {
	used := p.window.Used()
	from := used + uint64(p.IntN(8)) - min(used, uint64(p.IntN(4)))
	p.give(window.Range{Node: p.node(), From: from, To: max(from, p.now()) + p.some()})
}

// give puts a grant in.
func (p *ids) give(g window.Range) {
	if p.lost {
		return
	}
	defer p.act()()
	more := g.To - min(g.To, uint64(p.IntN(4)))
	if p.IntN(8) == 0 {
		more = g.To + 2 // the keeper is asked only when all is used up
	}
	p.changes++
	before := p.window.Front()
	p.askFrom = min(more, p.end) << p.bits
	if g.From = min(g.From, p.end); g.Extends(window.Range{Node: before.Node, To: before.Limit >> p.bits}) {
		p.askFrom = max(p.askFrom, before.Limit) // a caller that asked earlier may raise the soft limit to that
	}
	p.note("grants %+v, and is to be asked from %d on", g, more)
	changed := p.window.Changed()
	p.held, p.grants, p.revoked = g, append(p.grants, g), false
	p.asked = p.asks
	p.window.Grant(g, more)
	p.changes++
	if f := p.window.Front(); !p.sealing && !p.unnoticed() {
		if f.Node != g.Node || f.Limit < min(g.To, p.end)<<p.bits {
			p.failf("not taken: %+v, and the window has %+v", g, f)
		}
		p.told(changed, "Grant")
	}
}

// revoke takes back the rest of the grant.
func (p *ids) revoke() {
	defer p.act()()
	changed := p.window.Changed()
	p.changes++
	p.window.Revoke()
	if p.changes++; !p.sealing {
		p.revoked = true
		p.told(changed, "Revoke")
	}
}

// finish checks that no slot was lost, but for those of streams, and that a call is served once the
// faults have ended and the clock has caught up.
func (p *ids) finish() {
	var slots []uint64
	for id := range p.issued {
		slot, _, _ := p.decode(id)
		slots = append(slots, slot)
	}
	slices.Sort(slots)
	for i, slot := range slots[min(1, len(slots)):] {
		if p.streams || p.copies > 0 || slot>>p.bits != slots[i]>>p.bits {
			continue
		}
		at, ok := p.skipped[slot+1]
		if !ok {
			at = slot
		}
		for ok = true; ok && at > slots[i]+1; {
			at, ok = p.skipped[at]
		}
		if !ok {
			p.failf("slots lost: %#x follows %#x", slot, slots[i])
		}
	}
	if p.firsts > 1 {
		p.failf("%d calls were the first to seal", p.firsts)
	}
	p.clock.Freeze(0)
	p.clock.Coarse(0)
	p.clock.Slew(1, 0)
	if p.unnoticed() {
		p.notice(p.window, func() uint64 { return p.window.Used() << p.bits })
	}
	p.give(window.Range{Node: p.held.Node, From: p.held.To, To: math.MaxUint64 >> 1})
	p.clock.Advance(2 * time.Second) // a leap second is over
	p.clock.Step(max(0, time.Duration(p.window.Front().Slot>>p.bits)*p.layout.Tick-p.clock.Wall().Sub(epoch)) + 2*p.layout.Tick)
	_, err := p.gen.Next()
	switch {
	case p.closed && errors.Is(err, generator.ErrClosed), p.lost && errors.Is(err, lease.ErrLost):
	case p.closed || err != nil && p.now() < p.end-2:
		p.failf("not served: at %s, with no fault and nothing ahead, closed: %t: %v", p.clock.Wall().Sub(epoch), p.closed, err)
	}
}
