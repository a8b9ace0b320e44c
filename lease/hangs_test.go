package lease_test

import (
	"context"
	"fmt"
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
var hangCalls = map[string]func(context.Context, stores.Store, *lease.Keeper) error{
	"Claim": func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return second(lease.Claim(polled(ctx), s, (&record{}).option()))
	},
	"Reserve": func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return lease.Reserve(ctx, s, 5, 9, time.Now().Add(time.Hour))
	},
	"SetFleet": func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return lease.SetFleet(ctx, s, lease.Fleet{To: 1023})
	},
	"ReadFleet": func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return second(lease.ReadFleet(ctx, s))
	},
	"End": func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return second(lease.End(ctx, s, 5, 9, "new"))
	},
	"List": func(ctx context.Context, s stores.Store, _ *lease.Keeper) error { return second(lease.List(ctx, s)) },
	"Inspect": func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return second(lease.Inspect(ctx, s, 1))
	},
	"ForceRelease":        func(ctx context.Context, s stores.Store, _ *lease.Keeper) error { return lease.ForceRelease(ctx, s, 1) },
	"Keeper.Restored":     func(ctx context.Context, _ stores.Store, k *lease.Keeper) error { return k.Restored(ctx) },
	"Keeper.CloseContext": func(ctx context.Context, _ stores.Store, k *lease.Keeper) error { return k.CloseContext(ctx) },
}

// TestHangs: every call returns when its context ends, or else within a few timeouts, whichever operation of the
// store hangs, and also if the keeper's own goroutine and another call hang in it. What only looks at a Keeper never waits.
func TestHangs(t *testing.T) {
	const soon, anyKind, noKind = 300 * time.Millisecond, -1, -2
	for name, call := range hangCalls {
		hung := 0
		for kind := int32(anyKind); kind <= int32(storetest.OpLock); kind++ {
			for variant := range 6 {
				locks, bounded, busy := variant%2 > 0, variant >= 2, variant >= 4
				about := fmt.Sprintf("%s, %d hangs, locks: %v, bounded: %v, busy: %v", name, kind, locks, bounded, busy)
				bubble(t, func(t *testing.T) {
					hanging, memory := atomic.Int32{}, storetest.NewMemory().Locking()
					hanging.Store(noKind)
					memory.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
						if kind := hanging.Load(); kind == anyKind || kind == int32(op.Kind) {
							<-ctx.Done()
						}
						return storetest.None
					}
					var s stores.Store = memory
					if !locks {
						s = memory.Memory
					}
					silent := (&record{}).option()
					must(lease.Claim(polled(t.Context()), s, silent, lease.WithNode(1)))
					memory.Crash()
					k := must(lease.Claim(t.Context(), s, silent, lease.WithNode(2)))
					hanging.Store(kind)
					time.Sleep(third + time.Second) // the extension is due, and may hang
					if busy {
						go func() { _ = k.Restored(context.Background()) }()
					}
					synctest.Wait()
					ctx, bound := context.Background(), 4*lease.DefaultTimeout
					if bounded {
						limited, cancel := context.WithTimeout(ctx, soon)
						defer cancel()
						ctx, bound = limited, soon
					}
					begin := time.Now()
					_, _, _, _, _ = k.Node(), k.Err(), k.Stats(), k.Layout(), k.Clock()
					_, _ = k.Granted()
					assert.Zero(t, time.Since(begin), about)
					err := call(ctx, s, k)
					took := time.Since(begin)
					hanging.Store(noKind)
					_ = k.Close()
					assert.LessOrEqual(t, took, bound, "%s: %v", about, err)
					if took > 0 {
						hung++
						assert.Error(t, err, about)
					}
				})
			}
		}
		require.NotZero(t, hung, "%s never hangs", name)
	}
}
