package window

import (
	"fmt"

	"github.com/tickflake/tickflake/internal/word"
)

// Numbers is the window of a sequence: it hands out each granted number once, in ascending
// order. Make one with [NewNumbers]. [Numbers.Quick] is safe for use by several goroutines at
// once, also beside the other methods; these are called by one goroutine at a time, which the
// lock of the sequence sees to.
type Numbers struct {
	memory

	// present has the numbers that are handed out now. A segment is replaced after its word was
	// sealed, and the word of the next one begins at or above the value of the sealed one.
	present word.Pointer[segment]

	queued  *segment // into which Count moves when the present one has too few numbers, or nil
	skipped uint64   // numbers below free that were not taken: never granted, or given up
	closed  bool     // Seal was called
}

// segment is a granted range of numbers, with the word that hands them out.
type segment struct {
	slots
	limit uint64 // the first number that is not granted; only grows, and is at or above soft
	due   uint64 // when numbers at or beyond it were taken, the next range is due; soft lies at or beyond it
}

// MaxNumbers is how many counted numbers a window can have, and the most that one call may
// take. With one more, the sum of a sealed word and of such a call would overflow, and the
// call would open the word again.
const MaxNumbers = 1<<62 - 1

// NewNumbers returns a window of counted numbers below [MaxNumbers], in which nothing is granted yet.
func NewNumbers() *Numbers {
	w := &Numbers{memory: memory{marker: &never}}
	word.Name(&w.mark, "mark")
	word.Name(&w.present, "present")
	w.present.Store(w.segment(Range{}, 0))
	return w
}

// Watch gives the window the marker of the memory, before anything is granted.
func (w *Numbers) Watch(marker *word.Uint64) { w.watch(marker, &w.present.Load().slots) }

func (w *Numbers) segment(r Range, more uint64) *segment {
	s := &segment{limit: min(r.To, MaxNumbers)}
	s.origin = w.origin()
	word.Name(&s.free, "free")
	word.Name(&s.soft, "soft")
	s.free.Store(min(r.From, MaxNumbers))
	s.ask(more)
	return s
}

// ask sets the number from which on the next range is due.
func (s *segment) ask(more uint64) {
	s.due = min(more, s.limit)
	s.soft.Store(s.due)
}

// rest is how many numbers of the segment lie at or above free.
func (s *segment) rest(free uint64) uint64 { return s.limit - min(free, s.limit) }

// Quick is [Numbers.Count] in the common case, without the lock. It fails when the last of the numbers lies at or
// beyond the soft limit, when the present range has ended or is another memory's, and when another caller was
// first: then the caller goes on with Count. It stands apart so that it is inlined: one function for both
// would cost a sixth more.
func (w *Numbers) Quick(n uint64) (first uint64, ok bool) {
	s := w.present.Load()
	marker, mark := s.marker, s.mark // before the swap, which later loads wait for
	first = s.free.Load()
	// No sum overflows: see MaxNumbers.
	return first, first+n <= s.soft.Load() && s.free.CompareAndSwap(first, first+n) && marker.Load() == mark
}

// Count takes n counted numbers in a row, from first on, without waiting. When fewer are left
// in the present range and the queued one has enough, the rest of the present range is given
// up. It fails when neither has enough, and when the window is sealed. n is from 1 to
// [MaxNumbers].
//
// more asks for a range: one is due, or the call failed. It asks again after a 64th part of what is left, 64 numbers at
// most, until there is a range: so the keeper may fail, a slow caller asks soon after, and the calls between are quick.
func (w *Numbers) Count(n uint64) (first uint64, more, ok bool) {
	for !w.closed {
		s := w.present.Load()
		free := s.free.Load()
		switch {
		case free+n <= s.limit:
			if !s.free.CompareAndSwap(free, free+n) {
				continue // a Quick was first
			}
			if !s.Original() {
				w.Revoke() // what was taken counts as handed out: the original does that
				return 0, true, false
			}
			more = w.queued == nil && free+n > s.due
			if more {
				s.soft.Store(max(s.soft.Load(), free+n+min(s.rest(free+n)/64, 64)))
				w.check()
			}
			return free, more, true
		case w.queued == nil || w.queued.rest(w.queued.Free()) < n:
			return 0, true, false
		}
		next := w.queued
		w.queued = nil
		w.replace(next)
	}
	return 0, false, false
}

// replace seals the present segment, gives its rest up, and goes on with next, above all that were taken.
func (w *Numbers) replace(next *segment) {
	s := w.present.Load()
	free := s.seal()
	if next.Free() < free {
		next.free.Store(free) // no caller has next yet
	}
	w.skipped += next.Free() - free
	w.present.Store(next)
	w.check()
}

// check panics, with the tag invariants, unless what the fields promise holds.
func (w *Numbers) check() {
	if s := w.present.Load(); word.Checked && (s.due > s.soft.Load() || s.soft.Load() > s.limit) {
		panic(fmt.Sprintf("window: the next range is due at %d, the soft limit is %d, and the limit %d", s.due, s.soft.Load(), s.limit))
	}
}

// Queue puts a range of counted numbers in behind those that are granted. One that begins
// where the last range ends extends it. Else it becomes the queued range, into which callers
// move when the present one has too few numbers left. If there is a queued range already, the
// new one replaces both. Its numbers begin above all that were taken. more is the
// soft limit. A sealed window takes no range.
func (w *Numbers) Queue(r Range, more uint64) {
	if w.closed {
		return
	}
	s := w.present.Load()
	last := s
	if w.queued != nil {
		last = w.queued
	}
	switch {
	case r.From == last.limit:
		last.limit = min(r.To, MaxNumbers)
		last.ask(more)
		w.check()
	case last == s && s.Free() < s.limit:
		w.queued = w.segment(r, more)
		s.soft.Store(s.limit) // none is due
		w.check()
	default: // no number is left, or two ranges are
		w.queued = nil
		w.replace(w.segment(r, more))
	}
}

// Revoke takes the granted numbers back: until the next Queue, Count fails. Taken numbers stay taken. It does
// nothing to a sealed window.
func (w *Numbers) Revoke() {
	if !w.closed {
		w.queued = nil
		w.replace(w.segment(Range{}, 0))
	}
}

// Seal ends the window for good. It returns the value that Used has from then on, and
// whether this call sealed the window.
func (w *Numbers) Seal() (end uint64, first bool) {
	first = !w.closed
	w.closed = true
	return w.present.Load().seal(), first
}

// Used returns the first number above all that were taken.
func (w *Numbers) Used() uint64 { return w.present.Load().Free() &^ sealed }

// Short reports whether the next range is due, and none is queued.
func (w *Numbers) Short() bool {
	s := w.present.Load()
	return !w.closed && w.queued == nil && s.limit > 0 && s.Free() > s.due
}

// Rest is how many counted numbers are granted and not taken. Of a sealed window, it is how
// many were not taken.
func (w *Numbers) Rest() uint64 {
	rest := w.present.Load().rest(w.Used())
	if w.queued != nil {
		rest += w.queued.rest(w.queued.Free())
	}
	return rest
}

// Taken is how many of the numbers below used were taken, if used is what [Numbers.Used] returned last.
func (w *Numbers) Taken(used uint64) uint64 { return used - w.skipped }
