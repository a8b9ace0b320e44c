// Package window holds the grant of a process, a range of ticks or of counted numbers, and
// the one word that hands out its slots. It connects the keeper, which puts ranges
// in, and the issuer, which takes slots out: neither calls the other.
//
// You need these names:
//
//   - [Window.Span] and [Span.Take]: the issuer takes slots. It never waits.
//   - [Span.Count] and [Window.Count]: the issuer takes counted numbers. It never waits.
//   - [Window.Front] and [Window.Changed]: why Take failed, and what to wait for.
//   - [Window.Grant] and [Window.Queue]: the keeper puts a range in.
//   - [Window.Used] and [Window.More]: the keeper sees how far the issuer has come.
//   - [Window.Seal]: no slot is taken any more, for good.
//
// A slot is tick<<bits | sequence. A counted number is a slot as well: all of them lie in
// tick 0, so that no batch is cut by the end of a tick. All of the core's concurrency is in
// this package: the word, the change from one range to the next, and sealing.
package window

import (
	_ "sync/atomic" // or its methods, reached through package word, are not inlined

	"github.com/tickflake/tickflake/internal/word"
)

// Range is the permission to take slots of a node number in the ticks [From, To), or the
// counted numbers [From, To). The keeper promises that no other process has the range, now or
// ever.
type Range struct {
	Node     int64
	From, To uint64
}

// Window hands out each granted slot once, in ascending order. Make one with [New]. Its
// methods are safe for use by several goroutines at once; only Grant, Revoke and Fail
// have one caller at a time, the keeper.
type Window struct {
	// Set by New and not written again.
	bits     uint8  // of the sequence
	unit     uint8  // a range counts in units of 1<<unit slots: in ticks, or in numbers
	sequence uint64 // mask of the sequence in a slot
	end      uint64 // the slot after the last of the time field

	// span is the node number that is held now, with its word. It moves from a span to
	// the next of that span after its word was sealed, and does not go back.
	span word.Pointer[Span]

	// changed holds the channel that the next change closes. A waiter loads it before
	// its last look, so that no change falls between the look and the wait.
	changed word.Pointer[signal]
	err     word.Pointer[failure]
	more    chan struct{} // capacity 1; nil for counted numbers

	lost word.Uint64 // counted numbers that were given up; only grows
}

type signal struct{ ch chan struct{} }

type failure struct{ err error }

// New returns a window whose slots have bits bits of sequence and lie in ticks below
// end. Nothing is granted yet.
func New(bits uint8, end uint64) *Window {
	return newWindow(&Window{
		bits: bits, unit: bits, sequence: 1<<bits - 1,
		end:  min(end, (sealed-1)>>bits) << bits, // the slot after the last must not look sealed
		more: make(chan struct{}, 1),
	})
}

// MaxNumbers is how many counted numbers a window can have, and the most that one call may
// take. With one more, the sum of a sealed word and of such a call would overflow, and the
// call would open the word again.
const MaxNumbers = 1<<62 - 1

// NewCounted returns a window of counted numbers below end, which is at most [MaxNumbers].
// Its ranges count in numbers. Its issuer is not asked by More, but by Count. Nothing is
// granted yet.
func NewCounted(end uint64) *Window {
	return newWindow(&Window{bits: 63, sequence: 1<<63 - 1, end: min(end, MaxNumbers)})
}

func newWindow(w *Window) *Window {
	word.Name(&w.span, "span")
	word.Name(&w.changed, "changed")
	word.Name(&w.err, "err")
	word.Name(&w.lost, "lost")
	s := w.newSpan(Range{}, 0)
	s.begin.Store(0)
	w.span.Store(s)
	w.changed.Store(&signal{make(chan struct{})})
	w.err.Store(&failure{})
	return w
}

// Start skips the slots before tick. It works only until the first slot
// is taken: an issuer calls it with its clock's tick before it issues.
func (w *Window) Start(tick uint64) {
	s := w.span.Load()
	if free := s.free.Load(); free == s.begin.Load() && free < w.slot(tick) && s.free.CompareAndSwap(free, w.slot(tick)) {
		s.begin.Store(w.slot(tick))
	}
}

// Span returns the present node number with its word, to take slots of. The caller
// loads it again for every call: a span that has ended gives no slots.
func (w *Window) Span() *Span { return w.span.Load() }

// Front is the state of a window, by which a caller decides after Take failed.
type Front struct {
	Node  int64
	Slot  uint64 // the next to be taken
	Limit uint64 // the first slot that is not granted
	// Fresh says that no slot of this node number, and no slot of the tick before Slot,
	// was taken yet: the sequence did not run out.
	Fresh  bool
	Sealed bool

	Span *Span
}

// End is where the grant ends: its limit, or, if the rest of the grant was revoked, the
// next slot.
func (f Front) End() uint64 { return max(f.Limit, f.Slot) }

// Front returns the state of the window.
func (w *Window) Front() Front {
	for {
		s := w.current()
		free := s.free.Load()
		if free < sealed || s.ended {
			return Front{Node: s.node, Slot: free &^ sealed, Limit: s.limit.Load(), Fresh: free == s.begin.Load(), Sealed: s.ended, Span: s}
		}
	}
}

// Changed returns a channel that the next Grant, Revoke, Fail or Seal closes. A caller
// that waits gets the channel before its last look at the window.
func (w *Window) Changed() <-chan struct{} { return w.changed.Load().ch }

func (w *Window) fire() { close(w.changed.Swap(&signal{make(chan struct{})}).ch) }

// Err returns why the keeper has no further grant, or nil.
func (w *Window) Err() error { return w.err.Load().err }

// Fail sets the error that Err returns: why there is no further grant, or nil.
func (w *Window) Fail(err error) {
	w.err.Store(&failure{err})
	w.fire()
}

// Ask makes More receive. An issuer that is about to wait for a grant calls it; Take calls
// it for a slot at or beyond the soft limit.
func (w *Window) Ask() {
	select {
	case w.more <- struct{}{}:
	default: // the keeper has not received the last one yet
	}
}

// More receives after a slot at or beyond the soft limit was asked for: the keeper
// extends the grant ahead of time.
func (w *Window) More() <-chan struct{} { return w.more }

// Grant puts a range in. A range of the present node number that begins at or before the
// present limit extends the grant. Any other range replaces the grant at once, and its
// slots begin above all that were taken. more is the soft limit, a tick: when a slot at or
// beyond it is taken, More receives. A sealed window takes no grant.
func (w *Window) Grant(r Range, more uint64) {
	s := w.current()
	if limit := s.limit.Load(); r.Node == s.node && 0 < limit && w.slot(r.From) <= limit && !s.ended {
		limit = max(w.slot(r.To), limit)
		s.limit.Store(limit) // this is its only writer
		s.raise(min(w.slot(more), limit))
		w.fire()
		return
	}
	w.supersede(w.newSpan(r, more))
}

// Revoke takes back the rest of the grant: until the next Grant, Take fails. Taken slots
// stay taken.
func (w *Window) Revoke() { w.supersede(w.newSpan(Range{Node: w.current().node}, 0)) }

// supersede replaces the present span by next. It does nothing to a sealed window.
func (w *Window) supersede(next *Span) {
	for {
		s := w.current()
		if s.ended || s.next.CompareAndSwap(nil, next) {
			w.current() // carries out the change
			w.fire()
			return
		}
	}
}

// current completes a change that has begun, and returns the present span.
func (w *Window) current() *Span {
	for {
		s := w.span.Load()
		if s.ended || s.next.Load() == nil {
			return s
		}
		w.succeed(s)
	}
}

// Used returns the first unused tick, or number: no slot of it, or of a later one, was
// taken.
func (w *Window) Used() uint64 {
	return w.unitEnd(w.span.Load().free.Load()&^sealed) >> w.unit
}

// Seal ends the window for good. It returns the value that Used has from then on, and
// whether this call sealed the window.
func (w *Window) Seal() (end uint64, first bool) {
	for {
		s := w.current()
		if s.ended {
			return w.Used(), false
		}
		over := w.newSpan(Range{Node: s.node}, 0)
		over.limit.Store(s.limit.Load())
		over.queued.Store(s.queued.Load())
		over.ended = true
		if s.next.CompareAndSwap(nil, over) {
			end := w.current() // carries out the change
			w.fire()
			return w.unitEnd(end.free.Load()&^sealed) >> w.unit, true
		}
	}
}
