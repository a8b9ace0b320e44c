package window

import (
	"math"

	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/strategies"
)

// Span is the time in which a window holds one node number, with the word that hands
// out its slots.
//
// A span ends in three steps. next is set, once. Then free is sealed, so that no slot of
// the span is taken any more. Then the window moves on to next, whose slots begin above
// all that were taken here. So IDs stay in order across the change, and a caller that
// finds the word sealed completes the change by itself.
type Span struct {
	_ [cacheLine]byte
	// free is the first slot that is not taken: tick<<bits | sequence. It only grows,
	// and a slot belongs to the caller that moved free past it. For this reason no
	// slot is issued twice, and IDs come in order. A sealed free is above every slot and
	// does not change; its bits below the seal keep its last value.
	free word.Uint64
	_    [cacheLine - 8]byte

	// soft is the soft limit: slots below it are taken without a message to the keeper.
	// limit is the limit of the grant. Both only grow, and soft is at most limit.
	soft, limit word.Uint64
	next        word.Pointer[Span] // nil until the end of this one; set once

	// queued is the span of a range behind this one, or nil: see Queue. A caller that
	// finds too few numbers here makes it next.
	queued word.Pointer[Span]

	// begin is the first value of free, if no slot of the tick before it was taken by
	// then: in the first span, and where the grant begins above all taken slots. Else it is
	// no slot.
	begin word.Uint64

	// Not written again.
	node     int64
	sequence uint64 // mask of the sequence in a slot
	bits     uint8  // of the sequence
	ended    bool   // the span of a sealed window, in which no slot is taken
	from     uint64 // the first slot that is granted
	window   *Window
}

// cacheLine is the distance at which two words do not disturb each other on
// most processors. Processors with longer lines only lose some speed.
const cacheLine = 64

// sealed is the bit of free that ends a span. Slots have at most 63 bits.
const sealed = 1 << 63

// Node returns the node number of the span's slots.
func (s *Span) Node() int64 { return s.node }

// Take reserves up to n slots of one tick without waiting: those from slot up to, but
// not including, end. There are fewer than n when the tick ends before that. start
// draws the first slot of tick; a slot of a tick up to ahead ticks later is
// taken too. Take fails when the next slot lies further ahead than that, when it is not
// granted and when the span has ended; [Window.Front] tells which.
//
// The caller loads the span and reads the clock before the call, so that the swap follows
// the load of the word directly. So tick may be older than a slot that
// another caller took meanwhile, and Take may fail although a later reading would succeed.
func (s *Span) Take(tick, ahead uint64, start strategies.SequenceStart, n uint64) (slot, end uint64, ok bool) {
	for {
		free := s.free.Load()
		slot := free
		if fresh := tick << (s.bits & 63); fresh >= free {
			slot = fresh + start.Draw()
		}
		if slot>>(s.bits&63) > tick+ahead {
			return 0, 0, false
		}
		if slot >= s.soft.Load() && !s.open(slot) {
			return 0, 0, false
		}
		end := min(slot+n, (slot|s.sequence)+1)
		if s.free.CompareAndSwap(free, end) {
			return slot, end, true
		}
	}
}

// Free returns the first slot that is not taken. It is no slot when the span has ended.
func (s *Span) Free() uint64 { return s.free.Load() }

// TakeFree takes slot, which Free returned. It fails when another caller was first, when the
// span has ended, and when slot is not below the soft limit: then Take asks for more. The
// caller sees to it that the clock has reached the slot's tick.
//
// It is inlined: a call would cost 1 ns of 36.
func (s *Span) TakeFree(slot uint64) bool {
	return slot < s.soft.Load() && s.free.CompareAndSwap(slot, slot+1)
}

// TakeAt reserves up to n slots as Take does, from slot on, however far ahead that is.
// It fails when slot is no longer the next, or is not granted.
func (s *Span) TakeAt(slot, n uint64) (end uint64, ok bool) {
	if slot >= s.soft.Load() && !s.open(slot) {
		return 0, false
	}
	end = min(slot+n, (slot|s.sequence)+1)
	return end, s.free.CompareAndSwap(slot, end)
}

// open asks the keeper for more, and reports whether slot, which is beyond the soft
// limit, is granted. If so, it raises the soft limit to the limit: the keeper is asked
// once per grant.
func (s *Span) open(slot uint64) bool {
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

// Passed reports whether a slot at or after slot was taken, or the span has ended.
func (s *Span) Passed(slot uint64) bool { return s.free.Load() > slot }

func (w *Window) newSpan(r Range, more uint64) *Span {
	s := &Span{node: r.Node, from: w.slot(r.From), bits: w.bits, sequence: w.sequence, window: w}
	word.Name(&s.free, "free")
	word.Name(&s.soft, "soft")
	word.Name(&s.limit, "limit")
	word.Name(&s.next, "next")
	word.Name(&s.queued, "queued")
	word.Name(&s.begin, "begin")
	s.begin.Store(math.MaxUint64)
	s.limit.Store(w.slot(r.To))
	s.soft.Store(min(w.slot(more), w.slot(r.To)))
	return s
}

// slot is the first slot of tick, or the one after the last of all. A counted number is
// its own slot.
func (w *Window) slot(tick uint64) uint64 { return min(tick, w.end>>w.unit) << w.unit }

// unitEnd is the first slot, from free on, that begins a tick, or is a counted number.
func (w *Window) unitEnd(free uint64) uint64 {
	mask := uint64(1)<<w.unit - 1
	return (free + mask) &^ mask
}

// raise raises the soft limit to soft.
func (s *Span) raise(soft uint64) {
	for old := s.soft.Load(); old < soft && !s.soft.CompareAndSwap(old, soft); old = s.soft.Load() {
	}
}

// succeed carries out the change from s to its next, which is set. Any number of
// callers may do this at once.
func (w *Window) succeed(s *Span) {
	free := s.free.Or(sealed) &^ sealed
	next := s.next.Load()
	// The first caller opens the word. Until then it is 0, and no slot is taken of the
	// span, because the window does not have it yet.
	first := w.unitEnd(free)
	if next.from > first {
		first = next.from
		next.begin.Store(first) // all callers store the same
	} else if free == s.begin.Load() {
		next.begin.Store(first)
	}
	if next.ended {
		first |= sealed
	}
	next.free.CompareAndSwap(0, first)
	if w.span.CompareAndSwap(s, next) && w.unit == 0 && !next.ended {
		w.lost.Add(s.rest(free, next))
	}
}
