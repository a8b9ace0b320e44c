package lease_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/storetest"
)

var weekLong = flag.Bool("lease.week", false, "run TestWeekOfTrouble for a week in virtual time, which takes an hour, not for some minutes")

// trouble makes each operation of a keeper's store fail in some way.
type trouble struct {
	*rig
	restore func() // the cells as they were at the beginning
	rng     *rand.Rand
}

// ways are the ways to fail.
var ways = map[string]func(*trouble, storetest.Op) storetest.Fault{
	"each write has an unknown outcome": func(tr *trouble, op storetest.Op) storetest.Fault {
		if !isSwap(op) {
			return storetest.None
		}
		for range tr.cells.Late() {
			tr.cells.Drop(0)
		}
		return []storetest.Fault{storetest.Delayed, storetest.ReplyLost, storetest.Unavailable}[tr.rng.IntN(3)]
	},
	"no write lands": func(_ *trouble, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			return storetest.Unavailable
		}
		return storetest.None
	},
	"away": func(*trouble, storetest.Op) storetest.Fault { return storetest.Unavailable },
	"hangs until the timeout": func(tr *trouble, _ storetest.Op) storetest.Fault {
		tr.clock.Advance(lease.DefaultTimeout)
		if tr.rng.IntN(2) == 0 {
			return storetest.ReplyLost
		}
		return storetest.Unavailable
	},
	"slow": func(tr *trouble, _ storetest.Op) storetest.Fault {
		tr.clock.Advance(lease.DefaultTimeout * 9 / 10)
		return storetest.None
	},
	"another takes each number": func(tr *trouble, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			r, err := cell.DecodeNode(tr.cells.Peek(op.Key).Value)
			if err != nil {
				r = cell.Node{Layout: smallLayout(7).String()}
			}
			r.Holder, r.Owner, r.Write, r.Floor, r.Window = "rival", "rival", fmt.Sprint(tr.rng.Uint64()), r.Limit, 10
			tr.write(op.Key, r.Encode())
		}
		return storetest.None
	},
	"each number is damaged": func(tr *trouble, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			tr.write(op.Key, []byte("damaged"))
		}
		return storetest.None
	},
	"goes back": func(tr *trouble, op storetest.Op) storetest.Fault {
		if isSwap(op) && tr.rng.IntN(2) == 0 {
			tr.restore()
		}
		return storetest.None
	},
}

// TestWeekOfTrouble bounds the use of memory, log lines and the store while the store
// misbehaves, all the time or every 20 tries. When it is over, the log says so.
func TestWeekOfTrouble(t *testing.T) {
	for _, length := range []time.Duration{period, 6 * time.Millisecond} {
		for name := range ways {
			for _, flips := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/recovers=%t", length, name, flips), func(t *testing.T) { week(t, length, name, flips) })
			}
		}
	}
}

func week(t *testing.T, length time.Duration, name string, flips bool) {
	tr := &trouble{rig: newRig(t), rng: rand.New(rand.NewPCG(1, 2))}
	calls, polls, begun, back := 0, 0, false, false
	k := tr.claim(tr.client(func(op storetest.Op) storetest.Fault {
		calls++
		if !begun || back {
			return storetest.None
		}
		return ways[name](tr, op)
	}), small(7), lease.WithWindow(length))
	tr.restore, begun = tr.cells.Snapshot(), true
	enough, pause := 150, max(min(length/12, time.Second), time.Millisecond)
	if *weekLong {
		enough = 1 << 30
	}
	goroutines, heap := runtime.NumGoroutine(), uint64(0)
	for ; polls < enough && tr.clock.Now().Sub(noon) < 7*24*time.Hour; polls++ {
		back = flips && polls/20%2 == 1
		before := calls
		tr.clock.Advance(first(k.Poll(t.Context())))
		require.LessOrEqual(t, calls-before, 20, "calls of one try")
		if err := k.Err(); err != nil {
			require.Less(t, len(err.Error()), 1000)
		}
		names, claims, seen, bad := k.Remembers()
		for most, n := range map[int]int{64: max(names, bad), 8: claims, 4096: seen} {
			require.LessOrEqual(t, n, most)
		}
		if polls == min(enough, 100_000)/2 {
			heap = heapInUse()
		}
	}
	took := tr.clock.Now().Sub(noon)
	lines := 0
	for line := range strings.Lines(tr.log.String()) {
		if !strings.Contains(line, "level=DEBUG") {
			lines++
		}
	}
	t.Logf("%d tries in %s, %d calls, %d lines", polls, took.Round(time.Second), calls, lines)
	assert.Less(t, runtime.NumGoroutine(), goroutines+10) // the runtime and other tests have some
	assert.LessOrEqual(t, heapInUse(), heap+2<<20)
	assert.LessOrEqual(t, lines, 3*(64+int(took/time.Minute)))
	// A Keeper tries soon after the first ten failures, and then once in a pause.
	assert.LessOrEqual(t, polls, 60+int(took/pause))
	if name == "each number is damaged" {
		return
	}
	failed := k.Err() != nil
	back, flips = true, true
	for range 60 {
		tr.clock.Advance(third)
		k.Poll(t.Context())
	}
	require.NoError(t, k.Err())
	if failed {
		text := tr.log.String()
		assert.Greater(t, strings.LastIndex(text, "lease: recovered"), strings.LastIndex(text, "lease: not extended yet"), "the last line comes late, but comes")
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestTheLastLineIsLogged: after many outages the log still says, late, that the last one is over.
func TestTheLastLineIsLogged(t *testing.T) {
	const length = 60 * time.Millisecond
	w, gone := newRig(t), away(false)
	k := w.claim(w.client(gone.fault), small(7), lease.WithWindow(length))
	live := func(d time.Duration) {
		for end := w.clock.Elapsed() + d; w.clock.Elapsed() < end; {
			w.clock.Advance(max(first(k.Poll(t.Context())), time.Millisecond))
		}
	}
	for range 100 {
		gone = true
		live(2 * length)
		gone = false
		live(2 * length)
	}
	lines := w.log.count("lease: recovered")
	live(2 * time.Minute)
	require.Greater(t, w.log.count("lease: recovered"), lines)
}
