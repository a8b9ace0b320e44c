package lease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/storetest"
)

// ways are the ways in which each write of a store can fail, or each operation. restore brings the cells
// back as they were at the beginning.
var ways = map[string]func(r *rig, rng *rand.Rand, restore func(), key string) storetest.Fault{
	"each write has an unknown outcome": func(r *rig, rng *rand.Rand, _ func(), _ string) storetest.Fault {
		for range r.cells.Late() {
			r.cells.Drop(0)
		}
		return []storetest.Fault{storetest.Delayed, storetest.ReplyLost, storetest.Unavailable}[rng.IntN(3)]
	},
	"each write meets another": func(r *rig, rng *rand.Rand, _ func(), key string) storetest.Fault {
		n, err := cell.DecodeNode(r.cells.Peek(key).Value)
		if err != nil {
			n = cell.Node{Layout: smallLayout(7).String()}
		}
		n.Holder, n.Owner, n.Write, n.Floor, n.Window = "rival", "rival", fmt.Sprint(rng.Uint64()), n.Limit, 10
		r.write(key, n.Encode())
		return storetest.None
	},
	"each write finds damage": func(r *rig, _ *rand.Rand, _ func(), key string) storetest.Fault {
		r.write(key, []byte("damaged"))
		return storetest.None
	},
	"each write may find that it went back": func(_ *rig, rng *rand.Rand, restore func(), _ string) storetest.Fault {
		if rng.IntN(2) == 0 {
			restore()
		}
		return storetest.None
	},
	"no write lands": func(*rig, *rand.Rand, func(), string) storetest.Fault { return storetest.Unavailable },
	"away":           func(*rig, *rand.Rand, func(), string) storetest.Fault { return storetest.Unavailable },
}

// TestTrouble bounds the use of memory and the store while the store
// misbehaves, all the time or every 20 tries. It is over when the store is.
func TestTrouble(t *testing.T) {
	for _, length := range []time.Duration{period, 6 * time.Millisecond} {
		for name := range ways {
			for _, flips := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/recovers=%t", length, name, flips), func(t *testing.T) { trouble(t, length, name, flips) })
			}
		}
	}
}

func trouble(t *testing.T, length time.Duration, name string, flips bool) {
	const enough = 150
	r, rng, restore := newRig(t), rand.New(rand.NewPCG(1, 2)), func() {}
	calls, polls, over := 0, 0, true
	c := r.client()
	c.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if calls++; over || name != "away" && (op.Kind != storetest.OpSwap || op.Key == cell.FleetKey) {
			return storetest.None
		}
		return ways[name](r, rng, restore, op.Key)
	}
	k := r.claim(c, small(7), lease.WithWindow(length))
	restore = r.cells.Snapshot()
	for ; polls < enough; polls++ {
		over = flips && polls/20%2 == 1
		before := calls
		r.clock.Advance(first(k.Poll(t.Context())))
		require.LessOrEqual(t, calls-before, 20, "calls of one try")
		if err := k.Err(); err != nil {
			require.Less(t, len(err.Error()), 1000)
		}
		names, claims, seen, bad := k.Remembers()
		for most, n := range map[int]int{64: max(names, bad), 8: claims, 4096: seen} {
			require.LessOrEqual(t, n, most)
		}
	}
	took := r.clock.Now().Sub(noon)
	// A Keeper tries soon after the first ten failures, and then once in a pause.
	assert.LessOrEqual(t, polls, 60+int(took/max(min(length/12, time.Second), time.Millisecond)))
	if name == "each write finds damage" {
		return
	}
	over = true
	for range 60 {
		r.clock.Advance(third)
		k.Poll(t.Context())
	}
	require.NoError(t, k.Err())
}
