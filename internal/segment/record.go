package segment

import (
	"fmt"
	"math"
	"strings"

	"github.com/tickflake/tickflake/internal/protocol"
)

// Format is the version of the format of cells. Cells of another format are not read.
const Format = 1

// Prefix begins the keys of the cells of sequences, and After is the first key behind them.
const (
	Prefix = "seq/"
	After  = "seq0"
)

// Key is the key of the cell of a sequence.
func Key(name string) string { return Prefix + name }

// NameOf is the name of the sequence with a key, or false if it is not such a key.
func NameOf(key string) (name string, ok bool) { return strings.CutPrefix(key, Prefix) }

// Record is the value of the cell of a sequence. It counts indexes: the number of an index
// is Start + Offset + index * Stride.
type Record struct {
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

	// Next is the first index that is granted to no process.
	Next uint64 `json:"next"`
	// From is where the last write began: Next as it was before a grant, and else as it is.
	From uint64 `json:"from"`
	// Most is the highest Next that the cell ever had. It is never lowered.
	Most uint64 `json:"most"`
	// Before is one above the highest number that was granted of sequences of this name that
	// were deleted, or 0. It is not changed, but by a mark that replaces another sequence.
	Before uint64 `json:"before,omitempty"`
	// Writes counts the writes of the cell.
	Writes uint64 `json:"writes"`
	// Write is the name of this write. It is new and random, so that the writer recognizes
	// its own write.
	Write string `json:"write"`
	// Lost says that the store has lost writes: no index is granted.
	Lost bool `json:"lost,omitempty"`
	// Deleted says that the sequence was deleted.
	Deleted bool `json:"deleted,omitempty"`
	// Move says that the sequence was moved, or is nil. It is not changed.
	Move *protocol.Move `json:"move,omitempty"`
}

// Encode returns the value of a cell.
func (r Record) Encode() []byte {
	r.Format = Format
	return protocol.EncodeJSON(r)
}

// maxIndex is how many indexes there are at most, as many as a window can hand out.
const maxIndex = 1<<62 - 1

// Decode reads the value of a cell. The error wraps [stores.ErrDamaged]: also for numbers
// that this package never writes, as when a cell was edited by hand. A maximum beyond
// [Record.End], as an older version has written it, is read as End.
func Decode(value []byte) (Record, error) {
	var r Record
	if err := protocol.DecodeJSON(value, Format, &r); err != nil {
		return Record{}, err
	}
	edited := func(format string, args ...any) (Record, error) {
		return Record{}, protocol.Damaged("%s; it was edited by hand", fmt.Sprintf(format, args...))
	}
	switch {
	case r.Write == "" || r.ID == "" || r.Mode == "" || r.Writes == 0 || r.Creation == 0:
		return edited("it has no name of its write, no id, no mode, no count of writes or none of creations")
	case r.Stride < 1 || r.Offset < 0 || r.Offset >= r.Stride:
		return edited("its stride is %d with the offset %d", r.Stride, r.Offset)
	case r.Start < 0 || r.Max < 0 || r.Start > r.Max-r.Offset:
		return edited("it starts at %d, and its maximum is %d", r.Start, r.Max)
	case r.MinStep < 1 || r.MinStep > r.MaxStep:
		return edited("its steps are %d to %d", r.MinStep, r.MaxStep)
	case r.From > r.Next || r.Next > r.Most || r.Most > maxIndex:
		return edited("its next index is %d, the last write began at %d, and the most is %d", r.Next, r.From, r.Most)
	case r.Before > 1<<63:
		return edited("numbers up to %d were granted before", r.Before)
	}
	end := r.End()
	r.Max, r.Created[0] = min(r.Max, end), min(r.Created[0], end)
	return r, nil
}

// Indexes is how many indexes the record has up to its maximum. The zero record, that of
// no cell, has none.
func (r Record) Indexes() uint64 {
	if r.Stride < 1 {
		return 0
	}
	return min(uint64(r.Max-r.Start-r.Offset)/uint64(r.Stride)+1, maxIndex)
}

// End is the last number that the sequence can reach with any maximum.
func (r Record) End() int64 {
	r.Max = math.MaxInt64
	return r.Number(r.Indexes() - 1)
}

// Left is how many indexes are left from Next to the maximum.
func (r Record) Left() uint64 {
	if n := r.Indexes(); r.Next < n {
		return n - r.Next
	}
	return 0
}

// Number is the number of an index. That of an index above the maximum may overflow.
func (r Record) Number(index uint64) int64 { return r.Start + r.Offset + int64(index)*r.Stride }

// Index is the index of a number, or of the first one above it. It may lie above the maximum.
func (r Record) Index(number uint64) uint64 {
	first := uint64(r.Number(0))
	return (max(number, first) - first + uint64(r.Stride-1)) / uint64(r.Stride)
}

// Granted is one above the highest number that was granted of this sequence and of those of
// its name that were deleted before, or 0 if none was.
func (r Record) Granted() uint64 {
	if r.Most == 0 {
		return r.Before
	}
	return max(r.Before, uint64(r.Number(r.Most-1))+1)
}

// Last is the highest number that was granted and not given back, or one stride below the
// first.
func (r Record) Last() int64 { return r.Start + r.Offset + (int64(r.Next)-1)*r.Stride }
