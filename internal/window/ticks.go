package window

import (
	"fmt"
	"math"

	"github.com/tickflake/tickflake/internal/word"
)

// Ticks is the window of a node number: it hands out each granted slot once, in ascending
// order. Make one with [NewTicks]. Its methods are safe for use by several goroutines at once;
// only Grant, Revoke and Fail have one caller at a time, the keeper.
type Ticks struct {
	memory

	bits   uint8  // of the sequence in a slot
	end    uint64 // the slot after the last of all
	shared bool   // other windows hand out slots of the same spans

	// span is the node number that is held now, with its word. It moves from a span to
	// the next of that span after its word was sealed, and does not go back. A shared window that is sealed moves
	// to a span of its own, and leaves the word to the others.
	span word.Pointer[Span]

	// changed holds the channel that the next change closes. A waiter loads it before
	// its last look, so that no change falls between the look and the wait.
	changed word.Pointer[signal]

	more chan struct{} // capacity 1
	err  word.Pointer[failure]
	want word.Uint64 // the latest tick that a call wants, or 0; it falls only to 0
}

// OfKeeper returns the window of a *lease.Keeper for the one generator that takes its slots. It fails if the keeper is
// closed, or bound already. Package lease sets it before main.
var OfKeeper func(keeper any) (*Ticks, error)

type signal struct{ ch chan struct{} }

type failure struct{ err error }

// NewTicks returns a window whose slots have bits bits of sequence and lie in ticks below
// end. Nothing is granted yet.
func NewTicks(bits uint8, end uint64) *Ticks {
	w := &Ticks{
		memory: memory{marker: &never},
		bits:   bits,
		// The slot after the last must not look sealed, and a sealed word must not overflow, when callers that were
		// held up between two instructions add to it, each once: 1<<22 of them would take 8 GiB of stacks.
		end:  min(end, (sealed-1<<22)>>bits) << bits,
		more: make(chan struct{}, 1),
	}
	word.Name(&w.mark, "mark")
	word.Name(&w.want, "want")
	first := w.newSpan(Range{}, 0)
	first.begin.Store(0)
	w.start(first)
	return w
}

// start makes a window begin with a span.
func (w *Ticks) start(s *Span) {
	word.Name(&w.span, "span")
	word.Name(&w.changed, "changed")
	word.Name(&w.err, "err")
	w.span.Store(s)
	w.changed.Store(&signal{make(chan struct{})})
	w.err.Store(&failure{})
}

// Share returns another window with the word of w, whose grant stays as it is. Sealing that window ends it
// alone.
func (w *Ticks) Share() *Ticks {
	c := &Ticks{memory: memory{marker: w.marker}, bits: w.bits, end: w.end, shared: true}
	c.start(w.span.Load())
	return c
}

// Watch gives the window the marker of the memory, before anything is granted.
func (w *Ticks) Watch(marker *word.Uint64) { w.watch(marker, &w.span.Load().slots) }

// Skip skips the slots before tick: an issuer calls it with its clock's tick before it issues.
func (w *Ticks) Skip(tick uint64) {
	// A keeper that changes the node number meanwhile seals the word: then the next span starts there.
	for slot := w.slot(tick); ; {
		s := w.current()
		free := s.free.Load()
		if s.last || free&sealed == 0 && free >= slot {
			return
		}
		if fresh := free == s.begin.Load(); free&sealed == 0 && s.free.CompareAndSwap(free, slot) {
			if fresh {
				s.begin.Store(slot)
			}
			return
		}
	}
}

// Span returns the present node number with its word, from which slots are taken. The caller
// loads it again for every call: a span that has ended gives no slots.
func (w *Ticks) Span() *Span { return w.span.Load() }

// Front is the state of a window, by which a caller decides after Take failed.
type Front struct {
	Node  int64
	Slot  uint64 // the next to be taken
	Limit uint64 // the first slot that is not granted
	// Fresh says that no slot of this node number, and no slot of the tick before Slot,
	// was taken yet: the sequence did not run out.
	Fresh  bool
	Last   uint64 // the tick of the last slot that was taken, if it is not Fresh
	Sealed bool

	Span *Span
}

// End is where the grant ends: its limit, or, if the rest of the grant was revoked, the
// next slot.
func (f Front) End() uint64 { return max(f.Limit, f.Slot) }

// Front returns the state of the window.
func (w *Ticks) Front() Front {
	s := w.current()
	free := s.free.Load()
	for free&sealed != 0 && !s.last {
		s = w.current() // completes the change
		free = s.free.Load()
	}
	last := free&^sealed - 1
	if end, _ := s.Adding(); end > 0 {
		last = min(last, end) // additions whose slots were dropped may have gone on into the next tick
	}
	return Front{Node: s.node, Slot: free &^ sealed, Limit: s.limit.Load(), Fresh: free == s.begin.Load(), Last: last >> s.bits, Sealed: s.last, Span: s}
}

// Used returns the first unused tick: no slot of it, or of a later one, was taken.
func (w *Ticks) Used() uint64 { return w.nextTick(w.span.Load().free.Load()&^sealed) >> w.bits }

// Err returns why the keeper has no further grant, or nil.
func (w *Ticks) Err() error { return w.err.Load().err }

// Fail sets the error that Err returns: why there is no further grant, or nil.
func (w *Ticks) Fail(err error) {
	w.err.Store(&failure{err})
	w.fire()
}

// Changed returns a channel that the next Grant, Revoke, Fail or Seal closes. A caller
// that waits gets the channel before its last look at the window.
func (w *Ticks) Changed() <-chan struct{} { return w.changed.Load().ch }

func (w *Ticks) fire() { close(w.changed.Swap(&signal{make(chan struct{})}).ch) }

// Ask makes More receive. An issuer that is about to wait for a grant calls it; Take calls
// it for a slot at or beyond the soft limit.
func (w *Ticks) Ask() {
	select {
	case w.more <- struct{}{}:
	default: // the keeper has not received the last one yet
	}
}

// More receives after a slot at or beyond the soft limit was asked for: the keeper
// extends the grant ahead of time.
func (w *Ticks) More() <-chan struct{} { return w.more }

// Want notes that an issuer wants a slot of tick, before it waits for a grant: the keeper cannot see that
// from the clock or the word. The issuer calls it again with each look at the window, since an Unwant of
// another issuer may have withdrawn this wish as well.
func (w *Ticks) Want(tick uint64) {
	for old := w.want.Load(); old < tick; old = w.want.Load() {
		w.want.CompareAndSwap(old, tick)
	}
}

// Unwant withdraws a wish when its call has ended, or when extending the grant to it has failed. So no
// grant reaches far ahead for a call that is long over.
func (w *Ticks) Unwant(tick uint64) { w.want.CompareAndSwap(tick, 0) }

// Wanted returns the latest tick that an issuer wants, or 0.
func (w *Ticks) Wanted() uint64 { return w.want.Load() }

// Grant puts a range in. One that [Range.Extends] the present grant makes it longer. Any
// other range replaces the grant at once, and its slots begin above all that were taken. more
// is the soft limit, a tick: when a slot at or beyond it is taken, More receives. A sealed
// window takes no grant.
func (w *Ticks) Grant(r Range, more uint64) {
	s := w.current()
	r.From = min(r.From, w.end>>w.bits) // behind the end of time there is no gap
	if limit := s.limit.Load(); !s.last && r.Extends(Range{Node: s.node, To: limit >> w.bits}) {
		limit = max(w.slot(r.To), limit)
		s.limit.Store(limit) // this is its only writer
		s.raise(min(w.slot(more), limit))
		s.check(0)
		w.fire()
		return
	}
	w.replace(w.newSpan(r, more))
}

// Revoke takes back the rest of the grant: until the next Grant, Take fails. Taken slots
// stay taken.
func (w *Ticks) Revoke() { w.replace(w.newSpan(Range{Node: w.current().node}, 0)) }

// Seal ends the window for good. It returns the value that Used has from then on, and
// whether this call sealed the window.
func (w *Ticks) Seal() (end uint64, first bool) {
	s := w.current()
	for !s.last {
		over := w.newSpan(Range{Node: s.node}, 0)
		over.limit.Store(s.limit.Load())
		over.last = true
		if w.shared {
			over.free.Store(w.nextTick(s.free.Load()) | sealed)
			first = w.span.CompareAndSwap(s, over)
		} else {
			first = s.next.CompareAndSwap(nil, over)
		}
		s = w.current() // carries the change out: this one, or another that was first
		if first {
			w.fire()
			return w.nextTick(s.free.Load()&^sealed) >> w.bits, true
		}
	}
	return w.Used(), false
}

// replace makes next follow the present span. It does nothing to a sealed window.
func (w *Ticks) replace(next *Span) {
	s := w.current()
	for !s.last && !s.next.CompareAndSwap(nil, next) {
		s = w.current() // another change was first
	}
	w.current() // carries the change out
	w.fire()
}

// current carries a change out that has begun, and returns the present span. The last has no next.
func (w *Ticks) current() *Span {
	for {
		s := w.span.Load()
		next := s.next.Load()
		if next == nil {
			return s
		}
		w.change(s, next)
	}
}

// change carries out the change from s to its next. Any number of callers may do this at once.
func (w *Ticks) change(s, next *Span) {
	free := s.seal()
	// The first caller opens the word. Until then it is 0, and no slot is taken of the
	// span, because the window does not have it yet.
	first := w.nextTick(free)
	switch {
	case next.from > first:
		first = next.from
		next.begin.CompareAndSwap(math.MaxUint64, first) // Skip may have moved what another caller stored
	case free == s.begin.Load():
		next.begin.CompareAndSwap(math.MaxUint64, first)
	}
	if next.last {
		first |= sealed
	}
	next.free.CompareAndSwap(0, first)
	// It may begin below this caller's free, which counts additions that came after another caller's.
	if opened := next.free.Load() &^ sealed; word.Checked && !next.last && (opened < next.from || opened < s.from) {
		panic(fmt.Sprintf("window: a span begins at slot %d, its grant at %d, and the grant before it at %d", opened, next.from, s.from))
	}
	w.span.CompareAndSwap(s, next)
}

// slot is the first slot of a tick, or the one after the last of all.
func (w *Ticks) slot(tick uint64) uint64 { return min(tick, w.end>>w.bits) << w.bits }

// nextTick is the first slot, from free on, that begins a tick.
func (w *Ticks) nextTick(free uint64) uint64 {
	mask := uint64(1)<<w.bits - 1
	return (free + mask) &^ mask
}

func (w *Ticks) newSpan(r Range, more uint64) *Span {
	s := &Span{node: r.Node, from: w.slot(r.From), bits: w.bits, sequence: 1<<w.bits - 1, window: w}
	s.origin = w.origin()
	word.Name(&s.free, "free")
	word.Name(&s.soft, "soft")
	word.Name(&s.limit, "limit")
	word.Name(&s.next, "next")
	word.Name(&s.adding, "adding")
	word.Name(&s.begin, "begin")
	s.begin.Store(math.MaxUint64)
	s.adding.Store(shut)
	if w.bits >= word.AddedBits {
		s.margin = 1 << (w.bits - 2)
	}
	s.limit.Store(w.slot(r.To))
	s.soft.Store(min(w.slot(more), w.slot(r.To)))
	return s
}
