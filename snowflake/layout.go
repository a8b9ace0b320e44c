package snowflake

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Order is the order of the node and the sequence field. The time field is always first,
// so that IDs sort by time.
type Order int

const (
	// TimeNodeSequence is time, node, sequence from high bits to low, as
	// Twitter's Snowflake has it. Within one tick the IDs of one node stand
	// together.
	TimeNodeSequence Order = iota
	// TimeSequenceNode is time, sequence, node from high bits to low, as
	// Sonyflake has it. Within one tick the IDs of all nodes interleave.
	TimeSequenceNode
)

// String returns the fields of the order, high bits first, joined by "|".
func (o Order) String() string {
	switch o {
	case TimeNodeSequence:
		return "time|node|sequence"
	case TimeSequenceNode:
		return "time|sequence|node"
	}
	return fmt.Sprintf("order %d", int(o))
}

// Part is a named share of the node field, such as a datacenter number.
type Part struct {
	// Name identifies the part in decoded IDs and in layout specs: a lower-case
	// letter followed by lower-case letters, digits, "_" or "-", and none of
	// the words time, node, sequence, tick and epoch.
	Name string
	// Bits is the width of the part, 1 to 62.
	Bits int
}

// Layout divides the 63 usable bits of an ID into fields. It is plain data: fill in the
// fields, take a preset, or parse a spec with [ParseLayout]; then Validate it. The order TimeNodeSequence with widths 41, 10 and 12 looks like this:
//
//	 63   62                  22   21      12   11          0
//	+---+------------------------+------------+--------------+
//	| 0 | time: ticks from epoch | node       | sequence     |
//	+---+------------------------+------------+--------------+
//	  1   41 bits                  10 bits      12 bits
//
// When the widths sum to less than 63, the unused bits are the highest ones and
// stay 0. The 64th bit is the sign and is never set, so IDs sort the same as
// signed and unsigned numbers and fit any database's signed 64-bit column.
//
// Do not change a field other than Name once IDs exist: the old IDs would decode wrongly,
// and a generator may issue the same numbers again.
//
// Every method accepts every value: for a layout that does not validate, the
// methods with an error result return one that wraps [ErrLayout], and the others say
// in their docs what they return. A Layout is safe for concurrent use while it is not modified.
type Layout struct {
	// Name is for display only; "" for a layout without a name.
	Name string
	// Epoch is the instant of tick 0: from 1970-01-01T00:00:00Z to
	// 2262-04-11T23:47:16.854775807Z.
	Epoch time.Time
	// Tick is the unit of the time field, 1ns to 1h.
	Tick time.Duration
	// TimeBits is the width of the time field, 1 to 62.
	TimeBits int
	// NodeBits is the width of the node field, 0 to 62; 0 leaves room for a
	// single node, number 0.
	NodeBits int
	// SequenceBits is the width of the sequence field, 0 to 62; 0 leaves room
	// for a single ID per node and tick.
	SequenceBits int
	// Order is the order of the fields; the zero value is TimeNodeSequence.
	Order Order
	// Parts optionally names shares of the node field, high bits first. Their
	// widths must sum to NodeBits.
	Parts []Part
}

// Clone returns a layout that shares nothing with l.
func (l Layout) Clone() Layout {
	l.Parts = slices.Clone(l.Parts)
	return l
}

// Compose returns the ID of node and sequence in the tick that contains t. It serves tests and query bounds; it
// keeps no state, so calling it twice with the same arguments gives the same ID. For new, unique IDs use
// package generator, and its OpenPast for those of old rows.
//
// The error wraps [ErrLayout] for an invalid layout, and [ErrRange] for t before the epoch or from [Layout.End]
// on and for a node or sequence that is negative or too large.
func (l Layout) Compose(t time.Time, node, sequence int64) (ID, error) {
	if err := l.Validate(); err != nil {
		return 0, err
	}
	tick, err := l.tickAt(t)
	if err != nil {
		return 0, err
	}
	if err := checkField("node", node, l.MaxNode()); err != nil {
		return 0, err
	}
	if err := checkField("sequence", sequence, l.maxSequence()); err != nil {
		return 0, err
	}
	return l.pack(tick, node, sequence), nil
}

// Decode takes an ID apart.
//
// The error wraps [ErrLayout] for an invalid layout, and [ErrRange] for an ID that is
// negative, has bits set above the layout's fields, or has a time past the year
// 9999, where [Layout.End] stops. Decode cannot tell that an ID was made with another
// layout of the same width: the result then looks valid and is wrong.
func (l Layout) Decode(id ID) (Decoded, error) {
	if err := l.Validate(); err != nil {
		return Decoded{}, err
	}
	width := l.timeShift() + l.TimeBits
	if id < 0 {
		return Decoded{}, l.decodeError(id, "it is negative")
	}
	if got := bits.Len64(uint64(id)); got > width {
		return Decoded{}, l.decodeError(id, fmt.Sprintf("it takes %d bits, %d more than the layout's fields have", got, got-width))
	}
	t, ok := l.tickTime(uint64(id) >> l.timeShift())
	if !ok {
		return Decoded{}, l.decodeError(id, "its time lies past the year 9999")
	}
	node, sequence := l.shifts()
	d := Decoded{ID: id, Time: t, Node: int64(id) >> node & l.MaxNode(), Sequence: int64(id) >> sequence & l.maxSequence()}
	if len(l.Parts) > 0 {
		d.Parts = make(map[string]int64, len(l.Parts))
		rest := d.Node
		for i := len(l.Parts) - 1; i >= 0; i-- {
			d.Parts[l.Parts[i].Name] = rest & fieldMax(l.Parts[i].Bits)
			rest >>= l.Parts[i].Bits
		}
	}
	return d, nil
}

func (l Layout) decodeError(id ID, reason string) error {
	last := l.tickOf(l.end().Add(-1))
	return fmt.Errorf("ID %d is %w: %s; IDs of this layout run from 0 to %d: check the ID, or choose the layout it was made with",
		int64(id), ErrRange, reason, int64(l.pack(last, l.MaxNode(), l.maxSequence())))
}

// Node composes a node number from its parts, high bits first: for the Twitter
// layout, Node(datacenter, worker). A layout that names no parts takes the node
// number itself, and one without node bits takes nothing.
//
// The error wraps [ErrLayout] for an invalid layout, and [ErrRange] for a number that
// is negative or too large; for a wrong count of numbers it names the parts.
func (l Layout) Node(parts ...int64) (int64, error) {
	if err := l.Validate(); err != nil {
		return 0, err
	}
	named := l.Parts
	if len(named) == 0 && l.NodeBits > 0 {
		named = []Part{{Name: "node", Bits: l.NodeBits}}
	}
	if len(parts) != len(named) {
		if len(named) == 0 {
			return 0, fmt.Errorf("%d node numbers given, but the layout has no node bits; give none", len(parts))
		}
		want := make([]string, len(named))
		for i, p := range named {
			want[i] = p.Name
		}
		return 0, fmt.Errorf("%d node numbers given, but the layout takes %d: %s (high bits first)",
			len(parts), len(want), strings.Join(want, ", "))
	}
	var node int64
	for i, p := range named {
		if err := checkField(p.Name, parts[i], fieldMax(p.Bits)); err != nil {
			return 0, err
		}
		node = node<<p.Bits | parts[i]
	}
	return node, nil
}

// checkField returns an error for a number that does not fit a field, the largest number
// of which is most.
func checkField(field string, got, most int64) error {
	switch {
	case got < 0:
		return fmt.Errorf("%s %d is %w: it is negative; give a number from 0 to %d", field, got, ErrRange, most)
	case got > most:
		return fmt.Errorf("%s %d is %w: it needs %s, but the field has %s; give a number from 0 to %d, or choose a layout with a wider field",
			field, got, ErrRange, bitsText(bits.Len64(uint64(got))), bitsText(bits.Len64(uint64(most))), most)
	}
	return nil
}

// pack joins field values that are known to be in range.
func (l Layout) pack(tick uint64, node, sequence int64) ID {
	nodeShift, sequenceShift := l.shifts()
	return ID(int64(tick)<<l.timeShift() | node<<nodeShift | sequence<<sequenceShift)
}

func (l Layout) timeShift() int { return l.NodeBits + l.SequenceBits }

// shifts are how far above the lowest bit the two fields begin.
func (l Layout) shifts() (node, sequence int) {
	if l.Order == TimeSequenceNode {
		return 0, l.NodeBits
	}
	return l.SequenceBits, 0
}

// MaxNode returns the largest node number.
func (l Layout) MaxNode() int64 { return fieldMax(l.NodeBits) }

func (l Layout) maxSequence() int64 { return fieldMax(l.SequenceBits) }

// fieldMax returns the largest number in a field of width bits. A negative width, which an
// invalid layout may have, counts as 0, because a shift by it would panic.
func fieldMax(width int) int64 { return 1<<max(width, 0) - 1 }
