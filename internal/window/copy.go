package window

import "github.com/tickflake/tickflake/internal/word"

// A copy of the memory, such as a virtual machine that was started twice from one snapshot, has the spans of its
// original. It is noticed here: each span has the mark of the memory that it was granted to.

// never is the marker of a window that no keeper has given one.
var never word.Uint64

// Watch gives the window the marker of the memory, before anything is granted.
func (w *core) Watch(marker *word.Uint64) {
	w.marker = marker
	w.mark.Store(marker.Load())
	s := w.span.Load() // counted numbers from 0 on extend it
	s.marker, s.mark = marker, w.mark.Load()
}

// SetMark says what the marker is in the memory that the next grants are made to. The keeper calls it before
// Revoke, when it finds that this memory is a copy.
func (w *core) SetMark(mark uint64) { w.mark.Store(mark) }

// Original reports whether this memory is the one that the span was granted to. A copy of the memory has
// the same span, and its original issues those slots. A caller asks after it has taken a slot and before it
// returns it. So when memory is copied, only a call that is between the two can return its slot twice.
func (s *Span) Original() bool { return s.marker.Load() == s.mark }

// Abandon revokes the rest of a span that is not [Span.Original]. So the next call asks the keeper, who finds
// that it has to claim anew.
func (s *Span) Abandon() {
	if s.next.CompareAndSwap(nil, s.window.newSpan(Range{Node: s.node}, 0)) {
		s.window.current() // carries out the change
		s.window.fire()
	}
}
