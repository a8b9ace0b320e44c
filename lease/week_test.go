package lease_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

var weekLong = flag.Bool("lease.week", false, "run TestWeekOfTrouble for a week in virtual time, which takes an hour, not for some minutes")

// trouble makes each operation of a keeper's store fail in some way. rival is another
// client of the same cells.
type trouble struct {
	clock   *clocktest.Virtual
	rival   *storetest.Memory
	restore func() // the cells as they were at the beginning
	layout  snowflake.Layout
	rng     *rand.Rand
}

// ways are the ways to fail.
var ways = map[string]func(*trouble, context.Context, storetest.Op) storetest.Fault{
	"each write has an unknown outcome": func(tr *trouble, _ context.Context, op storetest.Op) storetest.Fault {
		if !isSwap(op) {
			return storetest.None
		}
		for range tr.rival.Late() {
			tr.rival.Drop(0)
		}
		return []storetest.Fault{storetest.Delayed, storetest.ReplyLost, storetest.Unavailable}[tr.rng.IntN(3)]
	},
	"no write lands": func(tr *trouble, _ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			return storetest.Unavailable
		}
		return storetest.None
	},
	"away": func(*trouble, context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable },
	"hangs until the timeout": func(tr *trouble, _ context.Context, _ storetest.Op) storetest.Fault {
		tr.clock.Advance(lease.DefaultTimeout)
		if tr.rng.IntN(2) == 0 {
			return storetest.ReplyLost
		}
		return storetest.Unavailable
	},
	"slow": func(tr *trouble, _ context.Context, _ storetest.Op) storetest.Fault {
		tr.clock.Advance(lease.DefaultTimeout * 9 / 10)
		return storetest.None
	},
	"another takes each number": func(tr *trouble, ctx context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			tr.write(ctx, op.Key, nil)
		}
		return storetest.None
	},
	"each number is damaged": func(tr *trouble, ctx context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			tr.write(ctx, op.Key, []byte("damaged"))
		}
		return storetest.None
	},
	"goes back": func(tr *trouble, ctx context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) && tr.rng.IntN(2) == 0 {
			tr.restore()
		}
		return storetest.None
	},
}

// write changes a cell as another process does: it holds the cell for a short while.
func (tr *trouble) write(ctx context.Context, key string, value []byte) {
	c := tr.rival.Peek(key)
	if value == nil {
		r, err := cell.DecodeNode(c.Value)
		if err != nil {
			r = cell.Node{Layout: tr.layout.String()}
		}
		r.Holder, r.Owner, r.Write = "rival", "rival", fmt.Sprint(tr.rng.Uint64())
		r.Floor, r.Window = r.Limit, 10
		value = r.Encode()
	}
	if _, err := tr.rival.Swap(ctx, key, c.Version, value); err != nil {
		panic(err) // a Memory without faults
	}
}

// TestWeekOfTrouble bounds the use of memory, log lines and the store while the store
// misbehaves, all the time or every 20 tries.
func TestWeekOfTrouble(t *testing.T) {
	for _, window := range []time.Duration{lease.DefaultWindow, 6 * time.Millisecond} {
		for name := range ways {
			for _, flips := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/recovers=%t", window, name, flips), func(t *testing.T) { week(t, window, name, flips) })
			}
		}
	}
}

func week(t *testing.T, window time.Duration, name string, flips bool) {
	layout := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Millisecond, TimeBits: 41, NodeBits: 7, SequenceBits: 8}
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	log := &lines{}
	store := memory.Client()
	k, err := lease.Claim(t.Context(), store, lease.WithClock(clock), lease.WithPolling(), lease.WithLogger(slog.New(log)), lease.WithLayout(layout), lease.WithWindow(window))
	require.NoError(t, err)
	tr := &trouble{clock: clock, rival: memory, restore: memory.Snapshot(), layout: layout, rng: rand.New(rand.NewPCG(1, 2))}
	calls, polls, back := 0, 0, false
	store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
		calls++
		if back {
			return storetest.None
		}
		return ways[name](tr, ctx, op)
	}
	enough, pause := 150, min(window/12, time.Second)
	if *weekLong {
		enough = 1 << 30
	}
	goroutines, heap := runtime.NumGoroutine(), uint64(0)
	for ; polls < enough && clock.Now().Sub(noon) < 7*24*time.Hour; polls++ {
		back = flips && polls/20%2 == 1
		before := calls
		clock.Advance(first(k.Poll(t.Context())))
		require.LessOrEqual(t, calls-before, 20, "calls of one try")
		if err := k.Err(); err != nil {
			require.Less(t, len(err.Error()), 1000)
		}
		names, claims, seen, bad := k.Remembers()
		require.LessOrEqual(t, names, 64)
		require.LessOrEqual(t, claims, 8)
		require.LessOrEqual(t, seen, 4096)
		require.LessOrEqual(t, bad, 64)
		if polls == min(enough, 100_000)/2 {
			heap = heapInUse()
		}
	}
	took := clock.Now().Sub(noon)
	t.Logf("%d tries in %s, %d calls, %d lines", polls, took.Round(time.Second), calls, log.n)
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	assert.LessOrEqual(t, heapInUse(), heap+1<<20)
	assert.LessOrEqual(t, log.n, 3*(64+int(took/time.Minute)))
	if took > 2*time.Minute && name == "goes back" && !flips {
		assert.Positive(t, log.dropped, "and a later line says so")
	}
	// A Keeper tries soon after the first ten failures, and then once in a pause.
	assert.LessOrEqual(t, polls, 60+int(took/max(pause, time.Millisecond)))
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// lines counts the lines of a log, and those that it says were dropped.
type lines struct{ n, dropped int }

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.n++
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "dropped" {
			l.dropped += int(a.Value.Int64())
		}
		return true
	})
	return nil
}

func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *lines) WithGroup(string) slog.Handler      { return l }
