package cell

import (
	"fmt"
	"math"
	"strings"
)

// SequencesFrom and SequencesTo are the range of the keys of sequences.
const (
	SequencesFrom = "seq/"
	SequencesTo   = "seq0"
)

// SequenceKey is the key of the cell of a sequence.
func SequenceKey(name string) string { return SequencesFrom + name }

// SequenceOf is the name of the sequence with a key, or false if it is not such a key.
func SequenceOf(key string) (name string, ok bool) { return strings.CutPrefix(key, SequencesFrom) }

// Sequence is the value of the cell of a sequence. It counts indexes: the number of an index
// is Start + Offset + index * Stride.
type Sequence struct {
	Format int `json:"format"`
	// ID is random, drawn when the sequence was created. So a sequence that was created
	// anew is not taken for the one before.
	ID string `json:"id"`
	// Creation is 1, and one above that of the sequence that was deleted before, or that a
	// mark has replaced. So a sequence that was created in an emptied store is not taken for
	// one that came after a deletion.
	Creation uint64 `json:"creation"`

	Mode   string `json:"mode"`
	Start  int64  `json:"start"`
	Stride int64  `json:"stride"`
	Offset int64  `json:"offset"`
	Max    int64  `json:"max"`
	// MinStep and MaxStep bound the segments.
	MinStep int64 `json:"min_step"`
	MaxStep int64 `json:"max_step"`
	// Created is Max, MinStep and MaxStep as the sequence was created with. They may have
	// changed since, and creating it again with the same definition is no error.
	Created [3]int64 `json:"created"`

	// Period says when numbers begin anew, in the definition of a sequence by period, which grants
	// none itself.
	Period string `json:"period,omitempty"`

	// Next is the first index that is granted to no process.
	Next uint64 `json:"next"`
	// From is where the last write began: Next as it was before a grant, and else as it is.
	From uint64 `json:"from"`
	// Most is the highest Next that the cell ever had. It is never lowered.
	Most uint64 `json:"most"`
	// Before is one above the highest number that was granted of sequences of this name that
	// were deleted, or 0. A mark raises it to all numbers that may be in use, and so does the
	// Set that ends the mark; nothing else changes it.
	Before uint64 `json:"before,omitempty"`
	// Writes counts the writes of the cell.
	Writes uint64 `json:"writes"`
	// Write is the name of this write. It is new and random, so that the writer recognizes
	// its own write.
	Write string `json:"write"`
	// Last has the names of the writes before this one, the newest first: see [Sequence.Names].
	Last []string `json:"last,omitempty"`
	// Lost says that the store has lost writes: no index is granted.
	Lost bool `json:"lost,omitempty"`
	// Deleted says that the sequence was deleted: no index of it is granted any more.
	Deleted bool `json:"deleted,omitempty"`
}

// Names returns the names of the last writes of the cell, the newest first and at most [Kept]: the
// next write has them as its Last. The zero Sequence, that of no cell, has none.
func (s Sequence) Names() []string { return names(s.Write, s.Last) }

// Encode returns the value of the cell.
func (s Sequence) Encode() []byte {
	s.Format = Format
	return encode(&s, &s.Last)
}

// MaxIndex is how many indexes there are at most, as many as a window can hand out.
const MaxIndex = 1<<62 - 1

// DecodeSequence reads the value of the cell of a sequence. The error wraps [stores.ErrDamaged]: also
// for numbers that this library never writes, as when a cell was edited by hand.
func DecodeSequence(value []byte) (Sequence, error) {
	var s Sequence
	if err := DecodeJSON(value, Format, &s); err != nil {
		return Sequence{}, err
	}
	if err := checkNames(s.Write, s.Last); err != nil {
		return Sequence{}, err
	}
	edited := func(format string, args ...any) (Sequence, error) {
		return Sequence{}, Damaged("%s; it was edited by hand", fmt.Sprintf(format, args...))
	}
	switch {
	case s.ID == "" || s.Mode == "" || s.Writes == 0 || s.Creation == 0:
		return edited("it has no id, no mode, no count of writes or none of creations")
	case s.Writes > 1<<63 || s.Creation > 1<<63: // a sum with them never overflows
		return edited("it counts %d writes and %d creations", s.Writes, s.Creation)
	case s.Offset < 0 || s.Offset >= s.Stride:
		return edited("its stride is %d with the offset %d", s.Stride, s.Offset)
	case s.Start < 0 || s.Max < 0 || s.Start > s.Max-s.Offset:
		return edited("it starts at %d, and its maximum is %d", s.Start, s.Max)
	case s.Max > s.End() || s.Created[0] > s.End():
		return edited("its maximum is %d, and the last number that it can reach is %d", max(s.Max, s.Created[0]), s.End())
	case s.MinStep < 1 || s.MinStep > s.MaxStep:
		return edited("its steps are %d to %d", s.MinStep, s.MaxStep)
	case s.From > s.Next || s.Next > s.Most || s.Most > MaxIndex:
		return edited("its next index is %d, the last write began at %d, and the most is %d", s.Next, s.From, s.Most)
	case s.Before > 1<<63:
		return edited("numbers up to %d were granted before", s.Before)
	}
	return s, nil
}

// Indexes is how many indexes the sequence has up to its maximum. The zero Sequence, that of
// no cell, has none.
func (s Sequence) Indexes() uint64 {
	if s.Stride < 1 {
		return 0
	}
	return min(uint64(s.Max-s.Start-s.Offset)/uint64(s.Stride)+1, MaxIndex)
}

// End is the last number that the sequence can reach with any maximum.
func (s Sequence) End() int64 {
	s.Max = math.MaxInt64
	return s.Number(s.Indexes() - 1)
}

// Left is how many indexes are left from Next to the maximum.
func (s Sequence) Left() uint64 {
	n := s.Indexes()
	return n - min(s.Next, n)
}

// Number is the number of an index. That of an index above the maximum may overflow.
func (s Sequence) Number(index uint64) int64 { return s.Start + s.Offset + int64(index)*s.Stride }

// Index is the index of a number, or of the first one above it. It may lie above the maximum.
func (s Sequence) Index(number uint64) uint64 {
	first := uint64(s.Number(0))
	return (max(number, first) - first + uint64(s.Stride-1)) / uint64(s.Stride)
}

// Granted is one above the highest number that was granted of this sequence and of those of
// its name that were deleted before, or 0 if none was.
func (s Sequence) Granted() uint64 {
	if s.Most == 0 {
		return s.Before
	}
	return max(s.Before, uint64(s.Number(s.Most-1))+1)
}

// LastNumber is the highest number that was granted and not given back, or one stride below the
// first.
func (s Sequence) LastNumber() int64 { return s.Start + s.Offset + (int64(s.Next)-1)*s.Stride }
