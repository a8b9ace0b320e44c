package window

import (
	"math"

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
	_ [cacheLine]byte
	// free is the first slot that is not taken: tick<<bits | sequence. It only grows,
	// and a slot belongs to the caller whose swap or addition moved free past it. For this
	// reason no slot is issued twice, and IDs come in order. A sealed free is above every slot.
	// Below the seal it keeps its last value, plus 1 for each later addition of a caller that was
	// held up. So it may show too much use, and never too little.
	free word.Uint64
	_    [cacheLine - 8]byte

	// soft is the soft limit: slots below it are taken without a message to the keeper.
	// limit is the limit of the grant. Both only grow, and soft is at most limit.
	soft, limit word.Uint64
	next        word.Pointer[Span] // nil until the end of this one; set once

	// adding is where the additions of a tick end: margin slots before the tick does. It is odd when
	// they are shut. It only grows. Each swap that takes slots of a tick makes sure, before its call
	// returns, that adding is in this tick or later, and shut or later if free has reached it. So a
	// caller that sees it open gets a slot of its tick, unless calls that run at the same time move
	// free past the tick. Soft limits are whole ticks: if a swap has taken a slot of a tick, all
	// slots of the tick lie below the soft limit.
	adding word.Uint64

	// queued is the span of a range behind this one, or nil: see Queue. A caller that
	// finds too few numbers here makes it next.
	queued word.Pointer[Span]

	// begin is the first value of free, or where Start has moved it, if no slot of the tick before it was taken
	// by then: in the first span, and where the grant begins above all taken slots. Else it is no slot. It only
	// tells why a call has to wait.
	begin word.Uint64

	// lost is how many counted numbers were given up in the spans before this one. It is set before the
	// window moves on to this span, so that a look at one span tells what was handed out.
	lost word.Uint64

	// Not written again.
	node     int64
	sequence uint64 // mask of the sequence in a slot
	bits     uint8  // of the sequence
	margin   uint64 // a quarter of a tick's slots, or 0 if none are taken by addition
	ended    bool   // the span of a sealed window, in which no slot is taken
	from     uint64 // the first slot that is granted
	window   *core
	marker   *word.Uint64 // see Original
	mark     uint64
}

// cacheLine is the distance at which two words do not disturb each other on
// most processors. Processors with longer lines only lose some speed.
const cacheLine = 64

// sealed is the bit of free that ends a span. Slots have at most 63 bits.
const sealed = 1 << 63

// shut is the bit of adding that ends the additions.
const shut = 1

func (w *core) newSpan(r Range, more uint64) *Span {
	s := &Span{node: r.Node, from: w.slot(r.From), bits: w.unit, sequence: 1<<w.unit - 1, window: w, marker: w.marker, mark: w.mark.Load()}
	word.Name(&s.free, "free")
	word.Name(&s.soft, "soft")
	word.Name(&s.limit, "limit")
	word.Name(&s.next, "next")
	word.Name(&s.adding, "adding")
	word.Name(&s.queued, "queued")
	word.Name(&s.begin, "begin")
	word.Name(&s.lost, "lost")
	s.begin.Store(math.MaxUint64)
	s.adding.Store(shut)
	if w.unit >= word.AddedBits {
		s.margin = 1 << (w.unit - 2)
	}
	s.limit.Store(w.slot(r.To))
	s.soft.Store(min(w.slot(more), w.slot(r.To)))
	return s
}

// slot is the first slot of a tick, or the slot of a counted number, or the one after the last
// of all.
func (w *core) slot(unit uint64) uint64 { return min(unit, w.end>>w.unit) << w.unit }

// unitEnd is the first slot, from free on, that begins a tick, or is a counted number.
func (w *core) unitEnd(free uint64) uint64 {
	mask := uint64(1)<<w.unit - 1
	return (free + mask) &^ mask
}

// raise raises the soft limit to soft.
func (s *Span) raise(soft uint64) {
	if old := s.soft.Load(); old < soft && !s.soft.CompareAndSwap(old, soft) {
		s.raise(soft) // another caller was first
	}
}

// succeed carries out the change from s to its next, which is set. Any number of
// callers may do this at once.
func (w *core) succeed(s *Span) {
	free := s.free.Or(sealed) &^ sealed
	next := s.next.Load()
	// The first caller opens the word. Until then it is 0, and no slot is taken of the
	// span, because the window does not have it yet.
	first := w.unitEnd(free)
	if next.from > first {
		first = next.from
		next.begin.CompareAndSwap(math.MaxUint64, first) // Start may have moved what another caller stored
	} else if free == s.begin.Load() {
		next.begin.CompareAndSwap(math.MaxUint64, first)
	}
	lost := s.lost.Load()
	if next.ended {
		first |= sealed
	} else {
		lost += s.rest(free, next)
	}
	next.lost.Store(lost) // all callers store the same: no counted number is added, and the limits of an ended span stay
	next.free.CompareAndSwap(0, first)
	w.span.CompareAndSwap(s, next)
}

// rest is how many numbers of the span and of the one that is queued behind it, unless that
// is next, lie above free.
func (s *Span) rest(free uint64, next *Span) uint64 {
	limit := s.limit.Load()
	rest := limit - min(free, limit)
	if queued := s.queued.Load(); queued != nil && queued != next {
		rest += queued.limit.Load() - queued.from
	}
	return rest
}
