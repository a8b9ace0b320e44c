package snowflake

import (
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// The layout of IDs, by default Twitter's. Set these before any other use of this package, and not
// once IDs have been stored.
var (
	// Epoch is the instant from which IDs count time, in milliseconds since 1970.
	Epoch int64 = 1288834974657

	// NodeBits is the width of the node number. The time has the rest of 63 bits
	// after NodeBits and StepBits: 41 bits, 69 years, if they sum to 22.
	NodeBits uint8 = 10

	// StepBits is the width of the number within a node's millisecond.
	StepBits uint8 = 12
)

// Layout returns the layout that [Epoch], [NodeBits] and [StepBits] describe: for
// lease.WithLayout, to take IDs apart, or to turn a time range into one of IDs.
func Layout() snowflake.Layout {
	return snowflake.Layout{
		Epoch: time.UnixMilli(Epoch).UTC(), Tick: time.Millisecond,
		TimeBits: min(63-int(NodeBits)-int(StepBits), 62), NodeBits: int(NodeBits), SequenceBits: int(StepBits),
	}
}

// Time returns when the ID was issued, in milliseconds since 1970.
func (f ID) Time() int64 { return int64(f)>>(uint(NodeBits)+uint(StepBits)) + Epoch }

// Node returns the number of the node that issued the ID.
func (f ID) Node() int64 { return int64(f) >> StepBits & (1<<NodeBits - 1) }

// Step returns the number of the ID within its node's millisecond.
func (f ID) Step() int64 { return int64(f) & (1<<StepBits - 1) }
