package client

import (
	"math"
	"sync/atomic"

	"github.com/tickflake/tickflake/snowflake"
)

// run is a run of IDs that the calls take from. It ends when its IDs are taken or when it is
// sealed, whichever is first. Then, and not before, [Client.advance] publishes the next one,
// whose IDs are all above those that were taken here. So IDs stay in order across the change:
//
//   - A call that still holds the old run gets no ID of it.
//   - A call that took an ID of the old run found it as the current one. So no ID of a later
//     run had been returned when the call began.
type run struct {
	// Not written again.
	first   snowflake.ID
	stride  snowflake.ID
	count   uint64
	expires int64  // on the client's clock: from then on no ID is taken
	mark    uint64 // the marker of the page in the memory to which the IDs were given
	soft    uint64 // the index whose taker asks for more IDs, or math.MaxUint64

	_ [cacheLine]byte
	// free is the lowest index that is not taken. An index belongs to the call that moved
	// free past it. For this reason no ID is returned twice, and IDs ascend. free only grows:
	// when it has reached count it stays there or above, and when it is sealed it stays
	// sealed. An addition is at most what a slice holds, and each call makes one beyond the end at
	// most, so it takes more calls at once than there can be to overflow.
	free atomic.Uint64
	_    [cacheLine - 8]byte
}

// cacheLine is the distance at which two words do not disturb each other on most processors.
const cacheLine = 64

// sealed is the bit of free that ends a run. Counts are below it.
const sealed = 1 << 63

// ended has no ID. It is the current run while there is none.
var ended = &run{expires: math.MinInt64}

// at returns the ID at index i.
func (r *run) at(i uint64) snowflake.ID { return r.first + snowflake.ID(i)*r.stride }

// take takes the IDs from index i up to, but not including, end: up to n of them, or none.
// n is at least 1. The caller has checked that the run has not expired.
func (r *run) take(n uint64) (i, end uint64) {
	i = r.free.Add(n) - n
	if i >= r.count {
		return 0, 0
	}
	return i, min(i+n, r.count)
}

// next is the next ID that is taken, or -1 if there is none.
func (r *run) next() snowflake.ID {
	if i := r.free.Load(); i < r.count {
		return r.at(i)
	}
	return -1
}

// rest is how many IDs are not taken.
func (r *run) rest() int64 { return int64(r.count - min(r.free.Load(), r.count)) }

// seal ends the run, and returns how many IDs were taken. No ID is taken after it.
func (r *run) seal() uint64 { return min(r.free.Or(sealed)&^sealed, r.count) }
