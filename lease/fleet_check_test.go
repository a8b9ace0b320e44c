package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

// checks is what a run knows that no process does.
type checks struct {
	ids     map[snowflake.ID]struct{} // all that were issued
	granted [][]span                  // by node number: who was granted which ticks, ascending
	stamped []uint64                  // by node number: the tick after the latest that an ID was issued in
	limits  []uint64                  // by node number: that of its cell
	undone  [][]span                  // by node number: what was granted, and the store has lost since
}

// span is a range of ticks of a node number that the store says a process has.
type span struct {
	from, to uint64
	owner    *fleettest.Process
}

// landed is told of each write that takes effect. What it adds to the limit is
// granted to the writer; what it takes away must have been the writer's, and nothing
// of it used.
func (f *fleet) landed(p *fleettest.Process, node int64, from, to uint64) {
	spans := f.granted[node]
	switch {
	case to > from && len(spans) > 0 && spans[len(spans)-1].owner == p && spans[len(spans)-1].to == from:
		spans[len(spans)-1].to = to
	case to > from:
		spans = append(spans, span{from, to, p})
	}
	for len(spans) > 0 && spans[len(spans)-1].to > to {
		last := &spans[len(spans)-1]
		if last.owner != p {
			f.Fail("limit lowered into another's ticks", "%s sets node %d from %s to %s, but %s has the ticks up to %s",
				p.Name, node, f.tickText(from), f.tickText(to), last.owner.Name, f.tickText(last.to))
		}
		if last.to = to; last.from >= to {
			spans = spans[:len(spans)-1]
		}
	}
	f.granted[node] = spans
	if to > 1<<f.layout.TimeBits {
		f.Fail("limit beyond the end", "%s sets node %d to %s", p.Name, node, f.tickText(to))
	}
	if to < f.stamped[node] {
		f.Fail("limit below an ID", "%s sets node %d to %s, but there is an ID of tick %s", p.Name, node, f.tickText(to), f.tickText(f.stamped[node]-1))
	}
}

// owns reports whether p has the ticks of node from from up to to.
func (f *fleet) owns(p *process, node int64, from, to uint64) bool {
	spans := f.granted[node]
	for i := len(spans) - 1; i >= 0 && spans[i].to > from; i-- {
		if spans[i].from <= from && spans[i].owner == p.Process {
			return to <= spans[i].to
		}
	}
	return false
}

// rewound is told that a store went back, and that the limit of a cell is lower now.
func (f *fleet) rewound(node int64, from, to uint64) {
	spans := f.granted[node]
	for i := len(spans) - 1; i >= 0 && spans[i].to > to; i-- {
		f.undone[node] = append(f.undone[node], span{max(spans[i].from, to), spans[i].to, spans[i].owner})
		if spans[i].to = to; spans[i].from >= to {
			spans = spans[:i]
		}
	}
	f.granted[node] = spans
	f.stamped[node] = 0
	for id := range f.ids {
		if tick, of := f.parts(id); of == node && tick < to {
			f.stamped[node] = max(f.stamped[node], tick+1)
		}
	}
}

// parts returns the tick and the node number of an ID.
func (f *fleet) parts(id snowflake.ID) (tick uint64, node int64) {
	tick, node = uint64(id)>>(f.layout.NodeBits+f.layout.SequenceBits), int64(id)
	if f.layout.Order != snowflake.TimeSequenceNode {
		node >>= f.layout.SequenceBits
	}
	return tick, node & (f.numbers() - 1)
}

// isUndone reports whether a tick was granted, and the store has lost that.
func (f *fleet) isUndone(node int64, tick uint64) bool {
	return slices.ContainsFunc(f.undone[node], func(s span) bool { return s.from <= tick && tick < s.to })
}

// gets is told of each grant that a generator gets.
func (f *fleet) gets(p *process, g window.Range) {
	f.Grants++
	if g.From < g.To && !f.owns(p, g.Node, g.From, g.To) && f.Rewinds == 0 {
		f.Fail("grant without a write", "%s goes by a grant of node %d, %s to %s, that the store does not bear out: %s",
			p.Name, g.Node, f.tickText(g.From), f.tickText(g.To), f.spansText(g.Node))
	}
	if f.Trace != nil {
		f.Tracef("%s: is granted node %d, %s to %s", p.Name, g.Node, f.tickText(g.From), f.tickText(g.To))
	}
}

func (f *fleet) spansText(node int64) (text string) {
	for _, s := range f.granted[node][max(0, len(f.granted[node])-4):] {
		text += fmt.Sprintf("[%d, %d) is %s's, ", s.from, s.to, s.owner.Name)
	}
	return text
}

// issued is told of each ID that a call returned.
func (f *fleet) issued(t *thread, id snowflake.ID) {
	p := t.p
	tick, node := f.parts(id)
	f.Note(uint64(id))
	f.Issues++
	if f.Trace != nil {
		t.Tracef("issues tick %s of node %d, ID %d", f.tickText(tick), node, id)
	}
	undone := f.isUndone(node, tick)
	if _, ok := f.ids[id]; ok && undone {
		f.Repeats++ // a process that came after the store went back could not know
	} else if ok {
		f.Fail("duplicate", "%s issues tick %s of node %d, ID %d, a second time", p.Name, f.tickText(tick), node, id)
	}
	f.ids[id] = struct{}{}
	if tick < t.least {
		f.Fail("went back", "%s issues tick %s of node %d, below %s, though it has noticed that the store went back",
			p.Name, f.tickText(tick), node, f.tickText(t.least))
	}
	if !undone {
		f.stamped[node] = max(f.stamped[node], tick+1)
	}
	if limit := f.limits[node]; tick >= limit && !undone {
		f.Fail("ID beyond the limit", "%s issues tick %s of node %d, whose limit is %s", p.Name, f.tickText(tick), node, f.tickText(limit))
	}
	if !f.owns(p, node, tick, tick+1) && !undone {
		f.Fail("ID without a grant", "%s issues tick %s of node %d: %s", p.Name, f.tickText(tick), node, f.spansText(node))
	}
	if p.first == 0 {
		p.first = f.Now
	}
	p.last, p.tick = f.Now, max(p.tick, tick)
	p.excuse = ""
	if t.kind == streamed {
		if id <= t.latest {
			f.Fail("order of a stream", "%s issues %d after %d", p.Name, id, t.latest)
		}
		t.latest = id
		if tick < t.floorTick {
			f.Fail("order of ticks", "%s issues tick %d, after an ID of tick %d was returned", p.Name, tick, t.floorTick)
		}
		return
	}
	if id <= t.floor {
		f.Fail("order", "%s issues %d, after %d was returned", p.Name, id, t.floor)
	}
	t.floor = id // within a batch
	p.largest = max(p.largest, id)
}

// refused is told of each error that a call returned.
func (f *fleet) refused(t *thread, err error) {
	p := t.p
	f.Refusals++
	f.Note(uint64(len(fmt.Sprintf("%T", err))))
	if f.Trace != nil {
		t.Tracef("fails: %v", withoutWait(err))
	}
	var none *generator.GrantError
	var lead *generator.LeadError
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.As(err, &none):
		f.GrantErrors++
		if none.Past > 0 {
			f.Ended++
		}
		p.excuse = ""
		if f.endsEarly() && (f.onlyEnd(p) || f.scarce() || errors.Is(p.k.Err(), lease.ErrEndOfTime)) {
			p.excuse = "time is over"
		}
		if next := p.k.Window().Used(); !slices.ContainsFunc(t.looks[:], func(l look) bool { return max(l.tick, next) >= l.limit }) {
			f.Fail("error while there is time", "%s: %v, but it has up to %s, IDs are at %s, and the clock is at %s",
				p.Name, err, f.tickText(t.looks[0].limit), f.tickText(next), f.tickText(t.looks[0].tick))
		}
		// Between the old grant and the next there may be ticks that are another's.
		gap := p.k.Holds() && p.k.Held().Floor > p.k.Used().To
		if !gap && !f.holdsOther(p) && none.Past > 0 && f.Calm && f.Now > max(f.CalmSince, p.Started, p.lost)+f.bound() && p.excuse == "" {
			f.Fail("error in the calm", "%s: %v", p.Name, err)
		}
	case errors.As(err, &lead):
		if lead.Lead > lead.Limit {
			p.excuse = "its clock is behind"
		}
	case errors.Is(err, lease.ErrEndOfTime):
		p.excuse = "time is over"
	case ended, errors.Is(err, generator.ErrClosed):
	default:
		f.Fail("error", "%s: %T %v", p.Name, err, err)
	}
	if t.late && !errors.Is(err, generator.ErrClosed) && !ended {
		f.Fail("close", "%s was closed, and fails with %v", p.Name, err)
	}
}

// onlyEnd reports whether the limits of the cells that p may claim are at the end
// of time.
func (f *fleet) onlyEnd(p *process) bool {
	for node := range f.numbers() {
		if f.limits[node] < p.k.End() && (!p.k.Pinned() || p.node == node) {
			return false
		}
	}
	return true
}

// withoutWait returns err without the time that a call has waited: where the end of a
// context cut it short, that is the machine's.
func withoutWait(err error) error {
	switch e := err.(type) {
	case *generator.GrantError:
		c := *e
		c.Waited = 0
		return &c
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errors.New("context ended")
	}
	return err
}

// holdsOther reports whether another process holds, or has taken, the number that p
// must have.
func (f *fleet) holdsOther(p *process) bool {
	if p.gen != nil && !p.k.Holds() && errors.Is(p.k.Err(), lease.ErrHeld) {
		return true
	}
	return slices.ContainsFunc(f.all, func(o *process) bool {
		return o != p && !o.Dead && o.k != nil && o.k.Holds() && o.k.Held().Node == p.node
	})
}

// scarce reports whether there are more processes than numbers that have time left.
func (f *fleet) scarce() bool {
	n := 0
	for _, limit := range f.limits {
		if limit < 1<<f.layout.TimeBits {
			n++
		}
	}
	return n < f.Alive()
}

// bound is within what time everybody who can issues again once the faults are over:
// five windows. A request that was lost times out within one. A process that gave up
// then is started anew within half a one. The number of one who died is free two
// windows after it was first looked at. The rest is for what the strategy may wait.
func (f *fleet) bound() int64 { return 5 * f.longest }

// checkLiveness makes sure that everybody who can has issued an ID within d, or within
// the bound if it lost its number meanwhile. It does so to one who needs a number, and
// whose clock is more than two windows ahead, and so takes it for dead.
func (f *fleet) checkLiveness(d int64) {
	for _, p := range f.all {
		since := f.Now - d
		if p.lost > since {
			since = f.Now - f.bound()
		}
		switch {
		case p.Dead, p.closing, p.Started > f.Now-f.bound():
		case p.last > since:
			f.Live++
		case p.node >= 0 && f.holdsOther(p):
			f.Excused["another has its number"]++
		case p.excuse != "":
			f.Excused[p.excuse]++
		case f.endsEarly() && f.scarce():
			f.Excused["too few numbers have time left"]++
		default:
			state := "has no lease"
			if p.k != nil && p.gen != nil {
				state = fmt.Sprintf("has node %d up to %s, clock at %s, error %v", p.k.Used().Node, f.tickText(p.k.Used().To), f.tickText(p.k.Front()), p.k.Err())
			}
			f.Fail("liveness", "%s has issued nothing since %s (the faults were over at %s): it %s; last error %v",
				p.Name, time.Duration(p.last), time.Duration(f.CalmSince), state, p.err)
		}
	}
}
