package lease_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// hangCalls are the calls of this package that reach the store. Node 1 was claimed by a process that has crashed.
func hangCalls(ctx context.Context, s stores.Store, k *lease.Keeper) map[string]func() error {
	return map[string]func() error{
		"Claim":        func() error { return second(lease.Claim(ctx, s, (&record{}).option(), lease.WithPolling())) },
		"Reserve":      func() error { return lease.Reserve(ctx, s, 5, 9, time.Now().Add(time.Hour)) },
		"SetFleet":     func() error { return lease.SetFleet(ctx, s, lease.Fleet{To: 1023}) },
		"ReadFleet":    func() error { return second(lease.ReadFleet(ctx, s)) },
		"End":          func() error { return second(lease.End(ctx, s, 5, 9, "new")) },
		"List":         func() error { return second(lease.List(ctx, s)) },
		"Inspect":      func() error { return second(lease.Inspect(ctx, s, 1)) },
		"ForceRelease": func() error { return lease.ForceRelease(ctx, s, 1) },
		"Keeper.Poll": func() error {
			return cmp.Or(second(k.Poll(ctx)), context.Canceled) // what it returns says how the lease is
		},
		"Keeper.Restored":     func() error { return k.Restored(ctx) },
		"Keeper.CloseContext": func() error { return k.CloseContext(ctx) },
		"Keeper.Close":        func() error { return k.Close() },
	}
}

// hangTimeouts are how many timeouts of an operation each takes at most if its context does not end, if not one.
var hangTimeouts = map[string]time.Duration{"Claim": 2, "Keeper.Poll": 2, "Keeper.Restored": 4, "Keeper.CloseContext": 2, "Keeper.Close": 2}

// TestHangs: every call returns when its context ends, or within its timeouts, whichever operation of the
// store hangs, and also if the keeper's own goroutine or another call hangs in it as well. What only looks
// at a Keeper never waits.
func TestHangs(t *testing.T) {
	const deadline = 300 * time.Millisecond
	const anyKind, noKind = -1, -2
	for name := range hangCalls(t.Context(), nil, nil) {
		hung := 0
		for kind := anyKind; kind <= int(storetest.OpLock); kind++ {
			for variant := range 8 {
				locks, busy, bounded := variant&1 != 0, variant&2 != 0, variant&4 != 0
				if busy && (!bounded || !strings.HasPrefix(name, "Keeper.")) {
					continue
				}
				about := fmt.Sprintf("%s, %d hangs, locks: %v, busy: %v, bounded: %v", name, kind, locks, busy, bounded)
				bubble(t, func(t *testing.T) {
					hanging := atomic.Int32{}
					hanging.Store(noKind)
					memory := storetest.NewMemory().Locking()
					memory.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
						if kind := int(hanging.Load()); kind == anyKind || kind == int(op.Kind) {
							<-ctx.Done()
						}
						return storetest.None
					}
					var s stores.Store = memory
					if !locks {
						s = memory.Memory
					}
					silent := (&record{}).option()
					must(lease.Claim(t.Context(), s, silent, lease.WithPolling(), lease.WithNode(1)))
					memory.Crash()
					options := []lease.Option{silent, lease.WithNode(2)}
					if name == "Keeper.Poll" {
						options = append(options, lease.WithPolling())
					}
					k := must(lease.Claim(t.Context(), s, options...))
					hanging.Store(int32(kind))
					time.Sleep(third + time.Second) // the extension is due, and may hang
					if busy {
						go func() { _ = k.Restored(context.Background()) }()
					}
					synctest.Wait()
					ctx, bound := context.Background(), max(hangTimeouts[name], 1)*lease.DefaultTimeout
					if bounded {
						limited, cancel := context.WithTimeout(ctx, deadline)
						defer cancel()
						ctx = limited
					}
					if bounded && name != "Keeper.Close" {
						bound = deadline
					} else if busy {
						bound += lease.DefaultTimeout // of the other call
					}
					begin := time.Now()
					_, _, _, _, _ = k.Node(), k.Err(), k.Stats(), k.Layout(), k.Clock()
					_, _ = k.Granted()
					assert.Zero(t, time.Since(begin), about)
					err := hangCalls(ctx, s, k)[name]()
					took := time.Since(begin)
					hanging.Store(noKind)
					_ = k.CloseContext(context.Background())
					assert.LessOrEqual(t, took, bound, "%s: %v", about, err)
					if took > 0 {
						hung++
						if name != "Keeper.Close" || !busy { // it may succeed once the other call has ended
							assert.Error(t, err, about)
						}
					}
				})
			}
		}
		require.NotZero(t, hung, "%s never hangs", name)
	}
}
