package lease_test

import (
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

// hanging is what a call has that may hang. Node 1 was claimed by a process that has crashed.
type hanging struct {
	context.Context
	stores.Store
	*lease.Keeper
}

// hangCalls are the calls of this package that reach the store.
var hangCalls = map[string]func(hanging) error{
	"Claim":               func(h hanging) error { return second(lease.Claim(polled(h.Context), h.Store, (&record{}).option())) },
	"Reserve":             func(h hanging) error { return lease.Reserve(h.Context, h.Store, 5, 9, time.Now().Add(time.Hour)) },
	"SetFleet":            func(h hanging) error { return lease.SetFleet(h.Context, h.Store, lease.Fleet{To: 1023}) },
	"ReadFleet":           func(h hanging) error { return second(lease.ReadFleet(h.Context, h.Store)) },
	"EndFleet":            func(h hanging) error { return second(lease.EndFleet(h.Context, h.Store, 5, 9, "new")) },
	"List":                func(h hanging) error { return second(lease.List(h.Context, h.Store)) },
	"Inspect":             func(h hanging) error { return second(lease.Inspect(h.Context, h.Store, 1)) },
	"ForceRelease":        func(h hanging) error { return lease.ForceRelease(h.Context, h.Store, 1) },
	"Keeper.Restored":     func(h hanging) error { return h.Restored(h.Context) },
	"Keeper.CloseContext": func(h hanging) error { return h.CloseContext(h.Context) },
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
					hangs, memory := atomic.Int32{}, storetest.NewMemory().Locking()
					hangs.Store(noKind)
					memory.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
						if kind := hangs.Load(); kind == anyKind || kind == int32(op.Kind) {
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
					hangs.Store(kind)
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
					err := call(hanging{ctx, s, k})
					took := time.Since(begin)
					hangs.Store(noKind)
					_ = k.Close()
					assert.LessOrEqual(t, took, bound, "%s: %v", about, err)
					if took > 0 {
						hung++
						if kind != int32(storetest.OpList) || !strings.HasPrefix(name, "Keeper.") { // which list only to compare clocks
							assert.Error(t, err, about)
						}
						assert.LessOrEqual(t, strings.Count(fmt.Sprint(err), context.DeadlineExceeded.Error()), 1, "%s: %v", about, err)
					}
				})
			}
		}
		require.NotZero(t, hung, "%s never hangs", name)
	}
}

// TestTimeoutOfEnd: WithTimeout bounds each operation of End, also the read that tells the layout.
func TestTimeoutOfEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		require.NoError(t, lease.SetFleet(t.Context(), memory, lease.Fleet{To: 1023}))
		memory.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
			<-ctx.Done()
			return storetest.None
		}
		for option, want := range map[string]time.Duration{"none": lease.DefaultTimeout, "a second": time.Second} {
			began, options := time.Now(), []lease.Option(nil)
			if option != "none" {
				options = append(options, lease.WithTimeout(want))
			}
			require.ErrorIs(t, second(lease.EndFleet(t.Context(), memory, 5, 9, "new", options...)), lease.ErrStore)
			require.Equal(t, want, time.Since(began), option)
		}
	})
}
