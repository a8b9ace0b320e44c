package window

import (
	"fmt"

	"github.com/tickflake/tickflake/internal/word"
)

// Span is the time in which a window holds one node number, with the word that hands
// out its slots.
//
// A span ends in three steps. next is set, once. Then free is sealed, so that no slot of
// the span is taken any more. Then the window moves on to next, whose slots begin above
// all that were taken here. So IDs stay in order across the change, and a caller that
// finds the word sealed completes the change by itself.
type Span struct {
	slots

	limit word.Uint64        // of the grant, a whole tick; it only grows
	next  word.Pointer[Span] // nil until the end of this one; set once

	// adding is where the additions of a tick end: margin slots before the tick does. Its lowest bit is set when
	// they are shut. It only grows. Each swap that takes slots of a tick makes sure, before its call
	// returns, that adding is in this tick or later, and shut or later if free has reached it. So a
	// caller that sees it open gets a slot of its tick, unless calls that run at the same time move
	// free past the tick. Soft limits are whole ticks: if a swap has taken a slot of a tick, all
	// slots of the tick lie below the soft limit.
	adding word.Uint64

	// begin is the first value of free, or where Skip has moved it, if no slot of the tick before it was taken by
	// then: in the first span, and where the grant begins above all taken slots. Else it is
	// no slot. No slot depends on it.
	begin word.Uint64

	// Not written again.
	node     int64
	sequence uint64 // mask of the sequence in a slot
	bits     uint8  // of the sequence
	margin   uint64 // a quarter of a tick's slots, or 0 if none are taken by addition
	last     bool   // the span of a sealed window, in which no slot is taken
	from     uint64 // the first slot that is granted
	window   *Ticks
}

// shut is the bit of adding that ends the additions.
const shut = 1

// Node returns the node number of the span's slots.
func (s *Span) Node() int64 { return s.node }

// Take reserves up to n slots of one tick without waiting: those from slot up to, but
// not including, end. There are fewer than n when the tick ends before that. The first slot
// of tick is drawn from the first below of them, if below is 2 or more; a slot of a tick up to
// ahead ticks later is taken too. Take fails when the next slot lies further ahead than that, when it is not
// granted and when the span has ended; [Ticks.Front] tells which.
//
// The caller loads the span and reads the clock before the call, so that the swap follows
// the load of the word directly. So tick may be older than a slot that
// another caller took meanwhile, and Take may fail although a later reading would succeed.
func (s *Span) Take(tick, ahead, below, n uint64) (slot, end uint64, ok bool) {
	for {
		free := s.free.Load()
		slot := free
		if fresh := tick << (s.bits & 63); fresh >= free {
			slot = fresh
			if below > 1 {
				slot += word.Below(below)
			}
		}
		if slot>>(s.bits&63) > tick+ahead {
			return 0, 0, false
		}
		if slot >= s.soft.Load() && !s.granted(slot) {
			return 0, 0, false
		}
		end := min(slot+n, (slot|s.sequence)+1)
		if s.free.CompareAndSwap(free, end) {
			s.steer(end)
			s.check(end)
			return slot, end, true
		}
	}
}

// TakeAt reserves up to n slots as Take does, from slot on, however far ahead that is. free is the next slot by a
// [Front]; if slot lies beyond it, those between the two are dropped. TakeAt fails when free is no longer the next, or
// slot is not granted.
func (s *Span) TakeAt(free, slot, n uint64) (end uint64, ok bool) {
	end = min(slot+n, (slot|s.sequence)+1)
	if slot >= s.soft.Load() && !s.granted(slot) || !s.free.CompareAndSwap(free, end) {
		return 0, false
	}
	s.steer(end)
	s.check(end)
	return end, true
}

// granted asks the keeper for more, and reports whether slot, which is beyond the soft
// limit, is granted. If so, it raises the soft limit to the limit: the keeper is asked
// once per grant.
func (s *Span) granted(slot uint64) bool {
	limit := s.limit.Load()
	if s.next.Load() == nil {
		s.window.Ask()
	}
	if slot >= limit {
		return false
	}
	s.raise(limit)
	return true
}

// check panics, with the tag invariants, unless what the fields of a span promise holds. Slots up to end were taken by
// a swap.
func (s *Span) check(end uint64) {
	if !word.Checked {
		return
	}
	adding, soft, limit := s.adding.Load(), s.soft.Load(), s.limit.Load() // the limit last: all only grow
	switch {
	case soft > limit || (soft|limit)&s.sequence != 0:
		panic(fmt.Sprintf("window: the soft limit is slot %d, and the limit %d", soft, limit))
	case end > limit:
		panic(fmt.Sprintf("window: slots up to %d were taken, and the limit is %d", end, limit))
	case end > 0 && s.margin > 0 && adding>>s.bits < (end-1)>>s.bits:
		panic(fmt.Sprintf("window: slots up to %d were taken, and additions are those of an earlier tick, up to %d", end, adding))
	case s.margin > 0 && adding&shut == 0 && adding>>s.bits >= limit>>s.bits:
		panic(fmt.Sprintf("window: additions up to %d are open, and the limit is %d", adding, limit))
	}
}

// steer opens the additions of a tick of which slots up to end were taken, or shuts them if they end
// there or before.
func (s *Span) steer(end uint64) {
	if s.margin == 0 {
		return
	}
	to := ((end - 1) | s.sequence) + 1 - s.margin
	if end >= to {
		to |= shut
	}
	for adding := s.adding.Load(); adding < to; adding = s.adding.Load() {
		s.adding.CompareAndSwap(adding, to)
	}
}

// Adding returns where the additions of a tick end, a slot of this tick or 0, and whether they are open.
func (s *Span) Adding() (end uint64, open bool) {
	adding := s.adding.Load()
	return adding &^ shut, adding&shut == 0
}

// Add takes the next slot by addition, which does not fail, however many callers there are. The caller
// has seen that additions are open up to end, and that the clock is in end's tick. The slot is of that
// tick, or Add drops it and fails, because other calls have used the tick up since, or the span has ended.
//
// It is inlined: a call would cost 1 ns of 36.
func (s *Span) Add(end uint64) (slot uint64, ok bool) {
	slot = s.free.Add(1) - 1
	return slot, slot < end || s.late(end, slot)
}

// late shuts the additions that were open up to end, where slot or one before it was taken, and reports
// whether slot is of the tick nevertheless.
func (s *Span) late(end, slot uint64) bool {
	s.adding.CompareAndSwap(end, end|shut)
	return slot < end+s.margin
}

// Passed reports whether a slot at or after slot was taken, or the span has ended.
func (s *Span) Passed(slot uint64) bool { return s.free.Load() > slot }

// Abandon revokes the rest of a span that is not [Span.Original]. So the next call asks the keeper, who finds
// that it has to claim anew.
func (s *Span) Abandon() {
	if s.next.CompareAndSwap(nil, s.window.newSpan(Range{Node: s.node}, 0)) {
		s.window.current() // carries the change out
		s.window.fire()
	}
}
