package client

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/snowflake"
)

// TestWordIsAlone guards that a word that is written with every ID does not disturb the
// fields that are read with every ID.
func TestWordIsAlone(t *testing.T) {
	t.Parallel()
	var r run
	assert.GreaterOrEqual(t, unsafe.Offsetof(r.free)-unsafe.Offsetof(r.soft), uintptr(cacheLine))
	assert.GreaterOrEqual(t, unsafe.Sizeof(r)-unsafe.Offsetof(r.free), uintptr(cacheLine))
	var c Client
	assert.GreaterOrEqual(t, unsafe.Offsetof(c.config)-unsafe.Offsetof(c.current), uintptr(cacheLine))
}

// TestNextAllocatesNothing is not parallel: it counts the allocations of the process.
func TestNextAllocatesNothing(t *testing.T) {
	c := &Client{base: time.Now(), marker: new(word.Uint64)}
	c.current.Store(&run{first: 1, stride: 1, count: 1 << 40, expires: math.MaxInt64, soft: math.MaxUint64})
	ctx, ids := t.Context(), make([]snowflake.ID, 10)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		_, err1 := c.Next(ctx)
		_, err2 := c.NextN(ctx, ids)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
	}))
	assert.Equal(t, snowflake.ID(11*1001), ids[9])
}

// TestRetire guards that a call which still holds a run gets no ID of it once the run has ended: its rest is in
// another run by then, but for the IDs that are not above one that was seen.
func TestRetire(t *testing.T) {
	c := offline()
	old := &run{first: 1, stride: 2, count: 9, expires: math.MaxInt64}
	c.current.Store(old)
	old.take(2)
	c.enqueue(pending{snowflake.Run{First: 21, Count: 1, Stride: 1}, math.MaxInt64})
	for _, seen := range []snowflake.ID{5, 9} {
		require.True(t, c.advance(0, seen))
		assert.Greater(t, c.current.Load().next(), seen)
	}
	i, end := old.take(1)
	assert.Equal(t, i, end)
	assert.GreaterOrEqual(t, old.free.Add(1)-1, old.count, "what Next looks at")
	assert.EqualValues(t, -1, old.next())
	now := c.current.Load()
	assert.Equal(t, []snowflake.ID{11, 13}, []snowflake.ID{now.at(0), now.at(1)})
	assert.EqualValues(t, []int64{4, 2, 3}, []int64{now.rest(), int64(c.stats.Issued), int64(c.stats.Disordered)})
}

// TestTakenOnce takes a million IDs of one run from several goroutines at once. Where two calls
// can take one index, most runs of NextN show it, and some of Next.
func TestTakenOnce(t *testing.T) {
	for name, batch := range map[string]int{"Next": 1, "NextN": 3} {
		t.Run(name, func(t *testing.T) {
			const callers, count = 4, 1_000_000
			c := offline() // a call after the last ID fails
			c.current.Store(&run{first: 1, stride: 1, count: count, expires: math.MaxInt64, soft: math.MaxUint64})
			taken := make([]atomic.Uint32, 1+count) // by ID
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					ids, err := make([]snowflake.ID, batch), error(nil)
					for {
						if batch == 1 {
							ids[0], err = c.Next(t.Context())
						} else {
							_, err = c.NextN(t.Context(), ids)
						}
						if err != nil {
							return
						}
						for _, id := range ids {
							taken[id].Add(1)
						}
					}
				})
			}
			group.Wait()
			counts := map[uint32]int{}
			for id := 1; id <= count; id++ {
				counts[taken[id].Load()]++
			}
			assert.GreaterOrEqual(t, counts[1], count-callers*batch, "the rest may be lost with the last batches")
			assert.Equal(t, count, counts[0]+counts[1], "an ID came twice")
		})
	}
}
