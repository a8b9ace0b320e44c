//go:build simulate

package simulation

import (
	"fmt"
	"math"
	"slices"

	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/snowflake"
)

// growing are the words of the window, the generator and monoclock.Clock that only grow.
var growing = []string{"free", "soft", "limit", "next", "span", "lost", "maxLead", "borrowedEnd", "caughtUp", "nextResync"}

// sealed is the bit of free that ends a span. The bits below it stay as they were.
const sealed = 1 << 63

// span is the state of one span of the window, as seen by accesses to its words.
type span struct {
	number int // in the order of the spans, from 1 on; 0 while it is no span's next
	node   int64
	final  bool   // the span of a sealed window, in which no slot is taken
	floor  uint64 // the first slot that is granted
	until  uint64 // the slot after the last that is granted

	free, soft, limit uint64 // the words
	opened            bool   // free was set for the first time
	used              bool   // slots were taken
	// begin is where free began, if no slot of the tick before was issued by then;
	// otherwise it is no slot.
	begin uint64
}

// words is the state of the words, as seen by accesses.
type words struct {
	spans   []*span // in their order
	naming  *span   // its words are being named, with no step between
	present *span   // the window's
	tells   int     // how often a change of the window was told
	failure error   // why the keeper has no further grant, as the window has it

	sealed bool   // the last span's word is: nothing can be taken any more
	end    uint64 // the first tick of which nothing was reserved, if sealed
}

// reservation has the slots that a caller has taken: from begin up to end.
type reservation struct {
	begin, end uint64
	span       *span
}

// String shows the reservation without addresses, which differ from run to run.
func (r reservation) String() string {
	if r.span == nil {
		return "none"
	}
	return fmt.Sprintf("slots %#x to %#x of node %d in span %d", r.begin, r.end, r.span.node, r.span.number)
}

// who returns the caller that runs. Before and after all callers it is s.outside.
func (s *sim) who() *caller {
	if s.current == nil {
		return &s.outside
	}
	return s.current
}

// Named takes note of a word that is made. Those of one span are named in one go.
func (s *sim) Named(name string) any {
	switch name {
	case "free":
		c := s.who()
		t := &span{begin: math.MaxUint64}
		switch {
		case len(s.spans) == 0:
			t.number, t.opened = 1, true
			s.spans, s.present = append(s.spans, t), t
		case s.Counted:
			t.number = len(s.spans) + 1
			s.spans = append(s.spans, t)
		case c.granting != nil:
			t.node, t.floor, t.until = c.granting.Node, s.slot(c.granting.From), s.slot(c.granting.To)
		default:
			t.node, t.final = s.present.node, true
		}
		s.naming, c.making = t, t
		return t
	case "soft", "limit", "next", "begin":
		return s.naming
	}
	return nil
}

// slot is the first slot of a tick, or the one after the last of all.
func (s *sim) slot(tick uint64) uint64 { return min(tick, s.lastTick+1) << s.SequenceBits }

// Below draws where a sequence begins: often near the end of the tick, where few slots are
// left.
func (s *sim) Below(n uint64) uint64 {
	var drawn uint64
	switch s.rng.IntN(4) {
	case 0:
	case 1:
		drawn = n - 1 - min(n-1, s.rng.Uint64N(6))
	default:
		drawn = s.rng.Uint64N(n)
	}
	c := s.who()
	c.call.drawn, c.call.drew = drawn, true
	s.note(drawn)
	if s.trace() {
		s.tracef("%s: draws %d of %d", c, drawn, n)
	}
	return drawn
}

// After takes note of an access that a word has had.
func (s *sim) After(a word.Access) {
	c := s.who()
	if c.dead {
		return
	}
	t, _ := a.Tag.(*span)
	if s.current != nil {
		s.note(uint64(c.id)<<8 | uint64(a.Op))
		s.note(a.New)
		if s.trace() {
			s.tracef("%s: %s", c, accessText(a, t))
		}
		if a.New < a.Old && slices.Contains(growing, a.Name) {
			s.fail("word goes back", "%s", accessText(a, t))
		}
	}
	if s.Core == nil && !s.Counted {
		c.saw(a, t)
	}
}

// saw notes the state of the window after an access. t is the span of the word, or nil.
func (c *caller) saw(a word.Access, t *span) {
	s := c.sim
	switch a.Name {
	case "free":
		c.sawFree(a, t)
	case "soft":
		t.soft = a.New
		s.checkLimits(t)
	case "limit":
		t.limit = a.New
		s.checkLimits(t)
		if a.Op == word.Load {
			c.limit, c.call.limited = a.New, true
		}
	case "next":
		if a.New != a.Old {
			c.linked(t)
		}
	case "span":
		if a.New != a.Old && s.present.number < len(s.spans) {
			s.present = s.spans[s.present.number]
			if !s.present.opened {
				s.fail("published too soon", "span %d has no first slot yet", s.present.number)
			}
		}
	case "changed":
		if a.Op == word.Load {
			c.call.heard, c.call.from = s.tells, s.present
		} else {
			s.tells++
			c.ending = false
		}
	case "err":
		if a.Op == word.Load {
			c.call.refused, c.call.asked = s.failure, true
		} else {
			s.failure = c.failing
		}
	}
}

// linked notes that the span which c made is the next of t.
func (c *caller) linked(t *span) {
	s, next := c.sim, c.making
	if t.number != len(s.spans) {
		s.fail("succeeded twice", "span %d of %d", t.number, len(s.spans))
		return
	}
	next.number = t.number + 1
	s.spans = append(s.spans, next)
	if next.final {
		c.ending, c.ended = true, true
		if next.limit != c.limit {
			s.fail("limit", "of the closed generator is %#x, but was seen as %#x", next.limit, c.limit)
		}
	}
	s.sawEnd()
}

// sawFree notes the caller's access to a span's free word.
func (c *caller) sawFree(a word.Access, t *span) {
	s := c.sim
	if a.Old >= sealed && a.New != a.Old {
		s.fail("sealed word moves", "%s", accessText(a, t))
	}
	t.free = a.New
	if a.New >= sealed && a.Old < sealed {
		s.sawEnd()
	}
	swapped := a.Op == word.CompareAndSwap && !a.Failed
	if swapped && t.number == s.present.number+1 && a.Old == 0 {
		s.opened(a, t) // by the first caller to come
		return
	}
	if a.Op == word.Load {
		c.call.drawn, c.call.drew, c.call.limited = 0, false, false
	}
	swapped = swapped && a.New != a.Old // a late helper opens slot 0 again
	if s.current == nil || c == s.keeper {
		return // it issues nothing
	}
	if swapped {
		c.reserve(a, t)
	}
	if !c.call.seenFree {
		c.call.firstFree = a.Old
	}
	c.call.free, c.call.begin, c.call.span, c.call.seenFree = a.New, t.begin, t, true
	if swapped {
		c.noteLead(int64(s.clock.Wall().Sub(epoch)))
	}
}

// reserve checks the slots that the caller has taken by a swap of free. They begin where
// free was, or, in a tick of which no slot was taken, at the sequence start that was drawn.
func (c *caller) reserve(a word.Access, t *span) {
	s, call := c.sim, &c.call
	first := a.Old
	if n := len(call.looks); n > 0 && call.looks[n-1].reading >= 0 {
		if fresh := s.tickOf(call.looks[n-1].reading) << s.SequenceBits; fresh >= first {
			first = fresh + call.drawn
			s.drawn[first>>s.SequenceBits] = call.drawn
			if s.draws && !call.drew {
				s.fail("start of a tick", "slot %#x is the first of its tick, and was not drawn", first)
			}
		}
	}
	switch {
	case t != s.present && t.number > s.present.number:
		s.fail("reserved too soon", "%s, but span %d is present", accessText(a, t), s.present.number)
	case a.New > t.soft:
		s.fail("reserved too soon", "%s, beyond the soft limit %#x", accessText(a, t), t.soft)
	case first < t.floor || a.New > t.until:
		s.fail("not granted", "slots %#x to %#x, but those granted to the span are %#x to %#x", first, a.New, t.floor, t.until)
	case a.New <= first || a.New > s.tickEnd(first+1):
		s.fail("reserved", "slots %#x to %#x: want some, and of one tick", first, a.New)
	}
	s.checkAsked(a.New-1, t)
	t.used = true
	c.endReservation()
	call.reserved = a.New
	call.reservations = append(call.reservations, reservation{first, a.New, t})
}

// opened checks where free of the next span begins: with the first tick that is granted
// and of which nothing was issued.
func (s *sim) opened(a word.Access, t *span) {
	before := s.present
	if before.free < sealed {
		s.fail("opened too soon", "%s, and before it slots can be taken: %#x", accessText(a, t), before.free)
	}
	free := before.free &^ sealed
	first := max(s.tickEnd(free), t.floor)
	if a.New&^sealed != first || t.final != (a.New >= sealed) {
		s.fail("opened elsewhere", "%s, but the first slot is %#x", accessText(a, t), first)
	}
	if first > s.tickEnd(free) || free == before.begin {
		t.begin = first
	}
	t.opened = true
}

// tickEnd is the first slot, from free on, that begins a tick.
func (s *sim) tickEnd(free uint64) uint64 {
	mask := uint64(1)<<s.SequenceBits - 1
	return (free + mask) &^ mask
}

// sawEnd notes that the window has ended, if it has.
func (s *sim) sawEnd() {
	if n := len(s.spans); n > 1 && s.spans[n-1].final && s.spans[n-2].free >= sealed {
		s.sealed = true
		s.end = s.tickEnd(s.spans[n-2].free&^sealed) >> s.SequenceBits
	}
}

func (s *sim) checkLimits(t *span) {
	if t.soft > t.limit || t.limit > t.until && !t.final {
		s.fail("limits", "span %d: soft %#x, limit %#x, granted up to %#x", t.number, t.soft, t.limit, t.until)
	}
}

func accessText(a word.Access, t *span) string {
	name := a.Name
	if t != nil && t.number != 1 {
		name = fmt.Sprintf("%s#%d", name, t.number)
	}
	switch {
	case a.Op == word.Load:
		return fmt.Sprintf("load %s = %#x", name, a.Old)
	case a.Failed:
		return fmt.Sprintf("%s %s fails: it is %#x", a.Op, name, a.Old)
	}
	return fmt.Sprintf("%s %s: %#x becomes %#x", a.Op, name, a.Old, a.New)
}

// checkReserved checks that an ID's slot was reserved by its caller, in this call or
// as a block, under the node number that was held then, and that the window had not
// gone on from that number when the call began.
func (c *caller) checkReserved(id snowflake.ID, slot uint64, node int64) {
	s := c.sim
	held := c.call.reservations
	if len(held) == 0 {
		held = []reservation{c.block.held}
	}
	if !slices.ContainsFunc(held, func(r reservation) bool {
		return r.begin <= slot && slot < r.end && r.span.node == node && r.span.number >= c.call.present.number
	}) {
		s.fail("not reserved", "%s, of %v, and span %d was present", s.idText(id), held, c.call.present.number)
	}
}
