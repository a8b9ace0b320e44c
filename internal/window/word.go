package window

import (
	_ "sync/atomic" // without it, its methods are not inlined through package word

	"github.com/tickflake/tickflake/internal/word"
)

// slots is the word that hands out the slots of one range. [Span] and the segments of [Numbers] have one each, which
// is never used for another range.
type slots struct {
	_ [cacheLine]byte
	// free is the first slot that is not taken. It only grows, and a slot belongs to the caller
	// whose swap or addition moved free past it. For this reason no slot is issued twice, and
	// slots are taken in order. A sealed free is above every slot. Below the seal it keeps its
	// last value, plus 1 for each later addition of a caller that was held up. So it may show
	// too much use, and never too little.
	free word.Uint64
	_    [cacheLine - 8]byte

	// soft is the soft limit: slots below it are taken without a message to the keeper. It
	// only grows, and is at most the limit of what is granted.
	soft word.Uint64

	origin // not written after the first grant
}

// cacheLine is the distance at which two words do not disturb each other on
// most processors. Processors with longer lines only lose some speed.
const cacheLine = 64

// sealed is the bit of free that ends a range. Slots have at most 63 bits.
const sealed = 1 << 63

// raise raises the soft limit to soft.
func (s *slots) raise(soft uint64) {
	for old := s.soft.Load(); old < soft; old = s.soft.Load() {
		s.soft.CompareAndSwap(old, soft)
	}
}

// seal ends the range: no slot of it is taken any more. It returns the first slot that was not taken.
func (s *slots) seal() (free uint64) { return s.free.Or(sealed) &^ sealed }

// Free returns the first slot that is not taken. It is no slot when the range has ended.
func (s *slots) Free() uint64 { return s.free.Load() }
