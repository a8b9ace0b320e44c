package window

import "github.com/tickflake/tickflake/internal/word"

// A copy of the memory, such as a virtual machine that was started twice from one snapshot, has the ranges of its
// original. It is noticed here: each range has the mark of the memory that it was granted to.

// origin is the memory that a range was granted to.
type origin struct {
	marker *word.Uint64 // differs in each copy of the memory
	mark   uint64       // its value in the memory that the range was granted to
}

// Original reports whether this memory is the one that the range was granted to. A copy of the memory has
// the same range, and its original issues those slots. A caller asks after it has taken a slot and before it
// returns it. So when memory is copied, only a call that is between the two can return its slot twice.
func (o *origin) Original() bool { return o.marker.Load() == o.mark }

// memory is the memory that the next ranges are granted to.
type memory struct {
	marker *word.Uint64
	mark   word.Uint64 // changed by the keeper alone, before it revokes
}

// never is the marker of a window that no keeper has given one.
var never word.Uint64

func (m *memory) origin() origin { return origin{m.marker, m.mark.Load()} }

// watch is what Watch of a window does, whose first range is s.
func (m *memory) watch(marker *word.Uint64, s *slots) {
	m.marker = marker
	m.mark.Store(marker.Load())
	s.origin = m.origin()
}

// SetMark says what the marker is in the memory that the next grants are made to. The keeper calls it before
// Revoke, when it finds that this memory is a copy.
func (m *memory) SetMark(mark uint64) { m.mark.Store(mark) }
