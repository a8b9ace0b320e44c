package window

// Numbers is the window of a sequence: it hands out each granted number once, in ascending
// order. Make one with [NewNumbers]. Its methods are safe for use by several goroutines at
// once; only Queue and Revoke have one caller at a time, the keeper.
type Numbers struct{ core }

// MaxNumbers is how many counted numbers a window can have, and the most that one call may
// take. With one more, the sum of a sealed word and of such a call would overflow, and the
// call would open the word again.
const MaxNumbers = 1<<62 - 1

// NewNumbers returns a window of counted numbers below [MaxNumbers]. Its ranges count in
// numbers. Its keeper is not asked by a channel: Count tells its caller. Nothing is granted yet.
func NewNumbers() *Numbers {
	w := &Numbers{core{end: MaxNumbers}}
	w.begin()
	return w
}

// Quick is [Numbers.Count] in the common case. It fails when the last of the numbers lies at or
// beyond the soft limit, when the present range has ended or is another memory's, and when another caller was
// first: then the caller goes on with Count. It stands apart so that it is inlined: one function for both
// would cost a sixth more.
func (w *Numbers) Quick(n uint64) (first uint64, ok bool) {
	s := w.span.Load()
	marker, mark := s.marker, s.mark // before the swap, which later loads wait for
	first = s.free.Load()
	return first, first+n <= s.soft.Load() /* no sum overflows: see MaxNumbers */ && s.free.CompareAndSwap(first, first+n) && marker.Load() == mark
}

// Count takes n counted numbers in a row, from first on, without waiting. When fewer are left
// in the present range and the queued one has enough, the rest of the present range is given
// up. It fails when neither has enough, and when the window is sealed. n is from 1 to
// [MaxNumbers].
//
// more asks for a range: a number at or beyond the soft limit was taken, or the call failed.
// Unlike [Span.Take], Count does not raise the soft limit, so every such call asks until there
// is a range. So a keeper without a goroutine may fail, and is asked again.
func (w *Numbers) Count(n uint64) (first uint64, more, ok bool) {
	s := w.current()
	if s.ended {
		return 0, false, false
	}
	free := s.free.Load()
	queued := s.queued.Load()
	switch {
	case free&sealed != 0: // current completes the change
	case free+n <= s.limit.Load():
		if s.free.CompareAndSwap(free, free+n) {
			if !s.Original() {
				s.Abandon() // what was taken counts as handed out: the original does that
				return 0, true, false
			}
			return free, queued == nil && free+n > s.soft.Load(), true
		}
	case queued == nil || queued.limit.Load()-queued.from < n:
		return 0, true, false
	default:
		s.next.CompareAndSwap(nil, queued)
	}
	return w.Count(n) // another caller was first, or the present range has changed
}

// Queue puts a range of counted numbers in behind those that are granted. One that begins
// where the last range ends extends it. Else it becomes the queued range, into which callers
// move when the present one has too few numbers left. If there is a queued range already, the
// new one replaces both. Its numbers begin above all that were taken. more is the
// soft limit. A sealed window takes no range.
func (w *Numbers) Queue(r Range, more uint64) {
	s := w.current()
	last := s
	if queued := s.queued.Load(); queued != nil {
		last = queued // it stays the last range when callers have moved into it
	}
	limit := last.limit.Load()
	switch {
	case s.ended:
		return
	case r.From == limit:
		last.limit.Store(w.slot(r.To)) // this is its only writer
		last.raise(min(w.slot(more), w.slot(r.To)))
	case last == s && s.free.Load() < limit:
		s.queued.Store(w.newSpan(r, more))
	default: // no number is left, or two ranges are
		w.supersede(w.newSpan(r, more))
		return
	}
	w.fire()
}

// Short reports whether numbers at or beyond the soft limit were taken, and no range is
// queued behind them: the next one is due.
func (w *Numbers) Short() bool {
	s := w.current()
	free := s.free.Load() &^ sealed
	return !s.ended && s.queued.Load() == nil && s.limit.Load() > 0 && free > s.soft.Load()
}

// Rest is how many counted numbers are granted and not taken. Of a sealed window, it is how
// many were not taken.
func (w *Numbers) Rest() uint64 {
	s := w.current()
	return s.rest(s.free.Load()&^sealed, nil)
}

// Lost is how many counted numbers were given up: the rests of ranges that were left for
// another one, or revoked.
func (w *Numbers) Lost() uint64 { return w.current().lost.Load() }

// Unused is how many granted numbers were not handed out: Rest and Lost, at one instant. What was
// granted minus Unused never falls.
func (w *Numbers) Unused() uint64 {
	s := w.current()
	return s.lost.Load() + s.rest(s.free.Load()&^sealed, nil)
}
