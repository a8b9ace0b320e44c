package cell

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// Past says what a node number is that was given to the past: it issues IDs for old rows, and no process
// claims it any more.
type Past string

const (
	Given   Past = "given"
	Retired Past = "retired" // no ID is issued with it any more
)

// PastFrom and PastTo are the range of the keys of the lanes' definitions.
const (
	PastFrom = "past/"
	PastTo   = "past0"
)

// PastKey is the key of the definition of the lanes of a node number.
func PastKey(node int64) string { return fmt.Sprintf(PastFrom+"%07d", node) }

// PastOf is the node number of such a key.
func PastOf(key string) (node int64, ok bool) {
	digits, ok := strings.CutPrefix(key, PastFrom)
	if !ok {
		return 0, false
	}
	return NodeOf(NodesFrom + digits)
}

// LaneKey is the key of the cell that counts the lanes of one bucket of a node number. The
// keys of all its buckets lie between LaneKey(node, 0) and LanesTo(node).
func LaneKey(node, bucket int64) string { return lanes(node) + strconv.FormatInt(bucket, 10) }

// LanesTo is above the keys of all buckets of a node number.
func LanesTo(node int64) string { return lanes(node) + "a" }

func lanes(node int64) string { return fmt.Sprintf("lane/%07d.", node) }

// Lanes is the definition of the lanes of a node number. It never changes.
type Lanes struct {
	Bucket time.Duration // the time in which lanes are counted, from the epoch on
	Width  int64         // slots of a tick in one lane
	Count  int64         // lanes of a bucket
}

// MaxBucket is how many ticks a bucket has at most.
const MaxBucket = 1 << 32

// NewLanes returns the lanes of a layout, or why there are none such.
func NewLanes(layout snowflake.Layout, bucket time.Duration, width int64) (Lanes, error) {
	slots := int64(1) << layout.SequenceBits
	switch n := int64(bucket / layout.Tick); {
	case bucket%layout.Tick != 0 || n < 1 || n > MaxBucket:
		return Lanes{}, fmt.Errorf("bucket %s: want a multiple of the tick, %s, of at most %d ticks", bucket, layout.Tick, int64(MaxBucket))
	case width < 1 || width > slots || slots%width != 0:
		return Lanes{}, fmt.Errorf("lane of %d slots: want a power of two from 1 to the %d slots of a tick", width, slots)
	}
	return Lanes{bucket, width, slots / width}, nil
}

// Cell is the definition as a cell, and, with a bucket's first write, the cell of a bucket: a sequence whose numbers
// are the first slots of lanes.
func (l Lanes) Cell() Sequence {
	last := (l.Count - 1) * l.Width
	return Sequence{ID: "past", Creation: 1, Mode: "past", Stride: l.Width, Max: last, MinStep: 1, MaxStep: 1, Created: [3]int64{last, 1, 1}, Period: l.Bucket.String()}
}

// DecodeLanes reads the definition of a node number's lanes.
func DecodeLanes(value []byte) (Lanes, error) {
	s, err := DecodeSequence(value)
	if err != nil {
		return Lanes{}, err
	}
	bucket, err := time.ParseDuration(s.Period)
	l := Lanes{bucket, s.Stride, s.Max/s.Stride + 1}
	if c := l.Cell(); err != nil || s.Mode != c.Mode || s.Max != c.Max || s.Created != c.Created || s.Period != c.Period {
		return Lanes{}, Damaged("it defines no lanes; it was edited by hand")
	}
	return l, nil
}
