package window

import "github.com/tickflake/tickflake/internal/word"

// Ticks is the window of a node number: it hands out each granted slot once, in ascending
// order. Make one with [NewTicks]. Its methods are safe for use by several goroutines at once;
// only Grant, Revoke and Fail have one caller at a time, the keeper.
type Ticks struct {
	core
	err  word.Pointer[failure]
	want word.Uint64 // the latest tick that a call wants, or 0; it falls only to 0
}

type failure struct{ err error }

// NewTicks returns a window whose slots have bits bits of sequence and lie in ticks below
// end. Nothing is granted yet.
func NewTicks(bits uint8, end uint64) *Ticks {
	w := &Ticks{core: core{
		unit: bits,
		// The slot after the last must not look sealed, and a sealed word must not overflow, when callers that
		// were held up add to it, each once: as many goroutines as these slots would take 8 TiB of stacks.
		end:  min(end, (sealed-1<<32)>>bits) << bits,
		more: make(chan struct{}, 1),
	}}
	w.begin()
	word.Name(&w.err, "err")
	word.Name(&w.want, "want")
	w.err.Store(&failure{})
	return w
}

// Share returns another window with the word of w, whose grant stays as it is. Sealing that window ends it
// alone.
func (w *Ticks) Share() *Ticks {
	c := &Ticks{core: core{unit: w.unit, end: w.end, marker: w.marker, shared: true}}
	c.span.Store(w.span.Load())
	c.changed.Store(&signal{make(chan struct{})})
	c.err.Store(&failure{})
	return c
}

// Start skips the slots before tick: an issuer calls it with its clock's tick before it issues.
func (w *Ticks) Start(tick uint64) {
	// A keeper that changes the node number meanwhile seals the word: then the next span starts there.
	for slot := w.slot(tick); ; {
		s := w.current()
		free := s.free.Load()
		if s.ended || free&sealed == 0 && free >= slot {
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
	if free&sealed != 0 && !s.ended {
		return w.Front() // current completes the change
	}
	last := free&^sealed - 1
	if adding := s.adding.Load(); adding > shut {
		last = min(last, adding) // additions whose slots were dropped may have gone on into the next tick
	}
	return Front{Node: s.node, Slot: free &^ sealed, Limit: s.limit.Load(), Fresh: free == s.begin.Load(), Last: last >> s.bits, Sealed: s.ended, Span: s}
}

// Err returns why the keeper has no further grant, or nil.
func (w *Ticks) Err() error { return w.err.Load().err }

// Fail sets the error that Err returns: why there is no further grant, or nil.
func (w *Ticks) Fail(err error) {
	w.err.Store(&failure{err})
	w.fire()
}

// Ask makes More receive. An issuer that is about to wait for a grant calls it; Take calls
// it for a slot at or beyond the soft limit.
func (w *Ticks) Ask() { w.ask() }

// Want notes that an issuer wants a slot of tick, before it waits for a grant: the keeper cannot see that
// from the clock or the word. The issuer calls it again with each look at the window, since an Unwant of
// another issuer may have withdrawn this wish as well.
func (w *Ticks) Want(tick uint64) {
	if old := w.want.Load(); old < tick && !w.want.CompareAndSwap(old, tick) {
		w.Want(tick) // another caller was first
	}
}

// Unwant withdraws a wish when its call has ended, or when extending the grant to it has failed. So no
// grant reaches far ahead for a call that is long over.
func (w *Ticks) Unwant(tick uint64) { w.want.CompareAndSwap(tick, 0) }

// Wanted returns the latest tick that an issuer wants, or 0.
func (w *Ticks) Wanted() uint64 { return w.want.Load() }

// More receives after a slot at or beyond the soft limit was asked for: the keeper
// extends the grant ahead of time.
func (w *Ticks) More() <-chan struct{} { return w.more }

// Grant puts a range in. One that [Range.Extends] the present grant makes it longer. Any
// other range replaces the grant at once, and its slots begin above all that were taken. more
// is the soft limit, a tick: when a slot at or beyond it is taken, More receives. A sealed
// window takes no grant.
func (w *Ticks) Grant(r Range, more uint64) {
	s := w.current()
	r.From = min(r.From, w.end>>w.unit) // behind the end of time there is no gap
	if limit := s.limit.Load(); !s.ended && r.Extends(Range{Node: s.node, To: limit >> w.unit}) {
		limit = max(w.slot(r.To), limit)
		s.limit.Store(limit) // this is its only writer
		s.raise(min(w.slot(more), limit))
		w.fire()
		return
	}
	w.supersede(w.newSpan(r, more))
}

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
		if slot >= s.soft.Load() && !s.open(slot) {
			return 0, 0, false
		}
		end := min(slot+n, (slot|s.sequence)+1)
		if s.free.CompareAndSwap(free, end) {
			s.steer(end)
			return slot, end, true
		}
	}
}

// Free returns the first slot that is not taken. It is no slot when the span has ended.
func (s *Span) Free() uint64 { return s.free.Load() }

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

// Adding returns where the additions of a tick end: a slot of this tick. It is odd when they are shut.
func (s *Span) Adding() (end uint64) { return s.adding.Load() }

// Add takes the next slot by addition, which does not fail, however many callers there are. The caller
// has seen that additions are open up to end, and that the clock is in end's tick. The slot is of that
// tick, or Add drops it and fails, because other calls have used the tick up since, or the span has ended.
//
// It is inlined: a call would cost 1 ns of 36.
func (s *Span) Add(end uint64) (slot uint64, ok bool) {
	slot = s.free.Add(1) - 1
	return slot, slot < end || s.shut(end, slot)
}

// shut shuts the additions that were open up to end, where slot or one before it was taken, and reports
// whether slot is of the tick nevertheless.
func (s *Span) shut(end, slot uint64) bool {
	s.adding.CompareAndSwap(end, end|shut)
	return slot < end+s.margin
}

// TakeAt reserves up to n slots as Take does, from slot on, however far ahead that is.
// It fails when slot is no longer the next, or is not granted.
func (s *Span) TakeAt(slot, n uint64) (end uint64, ok bool) {
	if slot >= s.soft.Load() && !s.open(slot) {
		return 0, false
	}
	end = min(slot+n, (slot|s.sequence)+1)
	if ok = s.free.CompareAndSwap(slot, end); ok {
		s.steer(end)
	}
	return end, ok
}

// TakeOver reserves slot, which lies beyond free, the next one by a [Front]. The slots between the
// two are dropped. It fails when free is no longer the next, or slot is not granted.
func (s *Span) TakeOver(free, slot uint64) bool {
	if slot >= s.soft.Load() && !s.open(slot) || !s.free.CompareAndSwap(free, slot+1) {
		return false
	}
	s.steer(slot + 1)
	return true
}

// open asks the keeper for more, and reports whether slot, which is beyond the soft
// limit, is granted. If so, it raises the soft limit to the limit: the keeper is asked
// once per grant.
func (s *Span) open(slot uint64) bool {
	limit := s.limit.Load()
	if s.next.Load() == nil {
		s.window.ask()
	}
	if slot >= limit {
		return false
	}
	s.raise(limit)
	return true
}

// Passed reports whether a slot at or after slot was taken, or the span has ended.
func (s *Span) Passed(slot uint64) bool { return s.free.Load() > slot }
