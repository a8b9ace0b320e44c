// Package window holds the grant of a process, a range of ticks or of counted numbers, and
// the one word that hands out its slots. It connects the keeper, which puts ranges
// in, and the issuer, which takes slots out: neither calls the other.
//
// You need these names:
//
//   - [NewTicks]: the window of a node number. Its issuer takes slots by [Ticks.Span] and
//     [Span.Take], and learns by [Ticks.Front] why that failed; its keeper calls [Ticks.Grant].
//   - [NewNumbers]: the window of counted numbers. Its issuer calls [Numbers.Quick] and
//     [Numbers.Count], and its keeper [Numbers.Queue] and [Numbers.Short].
//   - Used, Changed, Revoke and Seal, which both have.
//
// A slot is tick<<bits | sequence. A counted number is a slot as well: its unit is the number,
// not the tick, so that no batch is cut by the end of a tick. All of the core's concurrency is
// in this package: the word, the change from one range to the next, and sealing.
package window

import (
	_ "sync/atomic" // without it, its methods are not inlined through package word

	"github.com/tickflake/tickflake/internal/word"
)

// Range is the permission to take slots of a node number in the ticks [From, To), or the
// counted numbers [From, To). The keeper promises that no other process has the range, now or
// ever.
type Range struct {
	Node     int64
	From, To uint64
}

// Extends reports whether r goes on where the range before ends, or overlaps it: the two are one.
func (r Range) Extends(before Range) bool {
	return r.Node == before.Node && before.To > 0 && r.From <= before.To
}

// core is what [Ticks] and [Numbers] share. Its methods are safe for use by several
// goroutines at once; only Revoke has one caller at a time, the keeper.
type core struct {
	// Set once and not written again.
	unit uint8  // a range counts in units of 1<<unit slots: in ticks, or in numbers
	end  uint64 // the slot after the last of all

	// marker is a word that differs in each copy of the memory. mark is the value that it had when the keeper
	// was granted what it puts in. Only the keeper changes mark, before it revokes.
	marker *word.Uint64
	mark   word.Uint64

	// span is the node number that is held now, with its word. It moves from a span to
	// the next of that span after its word was sealed, and does not go back. A shared window that is sealed
	// moves to a span of its own, and leaves the word to the others.
	span word.Pointer[Span]

	// changed holds the channel that the next change closes. A waiter loads it before
	// its last look, so that no change falls between the look and the wait.
	changed word.Pointer[signal]

	more   chan struct{} // of capacity 1; nil for counted numbers
	shared bool          // others hand out slots of the same span
}

type signal struct{ ch chan struct{} }

// begin makes a window in which nothing is granted.
func (w *core) begin() {
	w.marker = &never
	word.Name(&w.mark, "mark")
	word.Name(&w.span, "span")
	word.Name(&w.changed, "changed")
	s := w.newSpan(Range{}, 0)
	s.begin.Store(0)
	w.span.Store(s)
	w.changed.Store(&signal{make(chan struct{})})
}

// Changed returns a channel that the next Grant, Queue, Revoke, Fail or Seal closes. A caller
// that waits gets the channel before its last look at the window.
func (w *core) Changed() <-chan struct{} { return w.changed.Load().ch }

func (w *core) fire() { close(w.changed.Swap(&signal{make(chan struct{})}).ch) }

func (w *core) ask() {
	select {
	case w.more <- struct{}{}:
	default: // the keeper has not received the last one yet
	}
}

// Revoke takes back the rest of the grant: until the next Grant, Take fails. Taken slots
// stay taken.
func (w *core) Revoke() { w.supersede(w.newSpan(Range{Node: w.current().node}, 0)) }

// supersede replaces the present span by next. It does nothing to a sealed window.
func (w *core) supersede(next *Span) {
	s := w.current()
	if !s.ended && !s.next.CompareAndSwap(nil, next) {
		w.supersede(next) // another change was first
		return
	}
	w.current() // carries out the change
	w.fire()
}

// current completes a change that has begun, and returns the present span. That of a sealed window
// has no next.
func (w *core) current() *Span {
	s := w.span.Load()
	if s.next.Load() == nil {
		return s
	}
	w.succeed(s)
	return w.current()
}

// Used returns the first unused tick, or number: no slot of it, or of a later one, was
// taken.
func (w *core) Used() uint64 {
	return w.unitEnd(w.span.Load().free.Load()&^sealed) >> w.unit
}

// Seal ends the window for good. It returns the value that Used has from then on, and
// whether this call sealed the window.
func (w *core) Seal() (end uint64, first bool) {
	s := w.current()
	if s.ended {
		return w.Used(), false
	}
	over := w.newSpan(Range{Node: s.node}, 0)
	over.limit.Store(s.limit.Load())
	over.queued.Store(s.queued.Load())
	over.ended = true
	if w.shared {
		end = w.unitEnd(s.free.Load())
		over.free.Store(end | sealed)
		if !w.span.CompareAndSwap(s, over) {
			return w.Seal() // another call was first
		}
		w.fire()
		return end >> w.unit, true
	}
	if !s.next.CompareAndSwap(nil, over) {
		return w.Seal() // another change was first
	}
	over = w.current() // carries out the change
	w.fire()
	return w.unitEnd(over.free.Load()&^sealed) >> w.unit, true
}
