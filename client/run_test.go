package client

import (
	"math"
	"math/rand/v2"
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
		err2 := c.NextN(ctx, ids)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
	}))
	assert.Equal(t, snowflake.ID(11*1001), ids[9])
}

// TestSeal guards that a call which still holds a run gets no ID of it once the run has ended: its rest may be in
// another run by then.
func TestSeal(t *testing.T) {
	r := &run{first: 1, stride: 1, count: 3}
	r.free.Add(1)
	assert.EqualValues(t, 1, r.seal())
	i, end := r.take(1)
	assert.Equal(t, i, end)
	assert.GreaterOrEqual(t, r.free.Add(1)-1, r.count, "what Next looks at")
	assert.EqualValues(t, -1, r.next())
}

// step is a call of Next that a simulation carries out piece by piece, as Next does.
type step struct {
	begun int // the number of IDs that had been returned when the call began
	now   int64
	run   *run
	stage int
}

// TestSwitching runs calls of Next in random interleavings, one access to shared memory at a
// time, while runs of two servers with different clocks come, and time passes. It checks the
// order, freshness and uniqueness of the IDs, and that each is counted.
func TestSwitching(t *testing.T) {
	t.Parallel()
	late := 0
	for seed := range uint64(1000) {
		late += switching(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	assert.Greater(t, late, 100, "calls took an ID of a run after it had been superseded, or tried to")
}

func switching(t *testing.T, seed uint64) (late int) {
	random := rand.New(rand.NewPCG(seed, 3))
	c := offline()
	var now int64
	clocks := [2]int64{0, random.Int64N(40)} // of the servers
	var slots [2]int64
	asked, stamps := map[snowflake.ID]int64{}, map[snowflake.ID]bool{}
	var returned []snowflake.ID // in the order of return
	highest := []snowflake.ID{0}
	calls := make([]*step, 4)
	const useWithin = 12
	compose, stride := func(slot, node int64) int64 { return slot/8*16 + node*8 + slot%8 }, int64(1)
	if seed%2 == 0 { // the node stands last, so that runs of two servers interleave
		compose, stride = func(slot, node int64) int64 { return slot*2 + node }, 2
	}
	for range 400 {
		switch k := random.IntN(10); {
		case k == 0:
			now += random.Int64N(4)
		case k == 1: // an answer comes: runs of a server, of one or two ticks
			node, at := random.Int64N(2), now-random.Int64N(3) // it was asked at
			a := answer{freshness: time.Second}
			for range 1 + random.IntN(2) {
				slots[node] = max(slots[node], (now+clocks[node]+1)*8)
				n := 1 + random.Int64N(8-slots[node]%8)
				r := snowflake.Run{First: snowflake.ID(compose(slots[node], node)), Count: n, Stride: stride}
				slots[node] += n
				for i := range n {
					asked[r.At(i)] = at
				}
				a.ids += n
				a.runs = append(a.runs, pending{Run: r, expires: at + useWithin})
			}
			c.accept(a)
		default:
			i := random.IntN(len(calls))
			call := calls[i]
			if call == nil {
				call = &step{begun: len(returned)}
				calls[i] = call
			}
			id, done := snowflake.ID(0), false
			switch call.stage {
			case 0:
				call.now = now
			case 1:
				call.run = c.current.Load()
			case 2:
				if call.run != c.current.Load() {
					late++
				}
				if call.now < call.run.expires {
					if i := call.run.free.Add(1) - 1; i < call.run.count {
						id, done = call.run.at(i), true
					}
				}
			case 3: // acquire, under its lock
				if c.advance(now, 0) {
					r := c.current.Load()
					i, _ := r.take(1)
					id, done, call.now = r.at(i), true, now
				} else {
					calls[i] = nil // it would wait
				}
			}
			call.stage++
			if done {
				calls[i] = nil
				require.Greater(t, id, highest[call.begun], "an ID that was returned before the call began")
				require.False(t, stamps[id], "%d comes twice", id)
				require.Less(t, call.now, asked[id]+useWithin, "%d is too old", id)
				stamps[id] = true
				returned = append(returned, id)
				highest = append(highest, max(highest[len(highest)-1], id))
			}
		}
	}
	s := c.stats
	r := c.current.Load()
	assert.Equal(t, s.Fetched, s.Issued+s.Expired+s.Disordered+r.count+uint64(c.queued))
	return late
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
							err = c.NextN(t.Context(), ids)
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
