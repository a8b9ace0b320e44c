package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// hanging is a store whose operations hang until their contexts end: all of them, or those
// of one kind.
type hanging struct {
	storetest.LockingMemory
	kind atomic.Int32 // noKind, anyKind or a storetest.OpKind
	hung atomic.Int32 // operations
}

const (
	noKind  = -2
	anyKind = -1
)

func newHanging() *hanging {
	s := &hanging{LockingMemory: storetest.NewMemory().Locking()}
	s.kind.Store(noKind)
	s.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
		if kind := s.kind.Load(); kind == anyKind || kind == int32(op.Kind) {
			s.hung.Add(1)
			<-ctx.Done()
			s.hung.Add(-1)
		}
		return storetest.None
	}
	return s
}

// unlocking hides that a store is a [stores.Locker].
type unlocking struct{ stores.Store }

// endings are the ways in which a context of 300 ms ends.
var endings = map[string]func() (context.Context, context.CancelFunc){
	"deadline": func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), hangTime)
	},
	"cancel": func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(hangTime, cancel)
		return ctx, cancel
	},
	"none": func() (context.Context, context.CancelFunc) { return context.Background(), func() {} },
}

// hangLayout is a layout whose epoch is before 2000, where the time of package synctest begins.
var hangLayout = func() snowflake.Layout {
	l := snowflake.Default()
	l.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}()

var unlogged = lease.WithLogger(slog.New(slog.DiscardHandler))

const hangTime = 300 * time.Millisecond

// hangCalls are the calls of this package that reach the store, with their bounds if the
// context does not end. Node 1 was claimed by a process that has crashed.
var hangCalls = []struct {
	name string
	// timeouts is how many timeouts of an operation the call takes at most if its context does
	// not end.
	timeouts time.Duration
	polling  bool // the keeper has no goroutine
	run      func(context.Context, stores.Store, *lease.Keeper) error
}{
	{"Claim", 2, false, func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		k, err := lease.Claim(ctx, s, lease.WithLayout(hangLayout), unlogged)
		if err == nil {
			return k.Close()
		}
		return err
	}},
	{"Export", 1, false, func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		_, err := lease.Export(ctx, s, "new", lease.EvenIfRunning())
		return err
	}},
	{"Import", 1, false, func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return lease.Import(ctx, s, lease.Sealed(lease.Floors{Format: 1, Export: "e", Layout: hangLayout.String()}))
	}},
	{"Reserve", 1, false, func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return lease.Reserve(ctx, s, 5, 9, time.Now().Add(time.Hour), lease.WithLayout(hangLayout))
	}},
	{"List", 1, false, func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		_, err := lease.List(ctx, s)
		return err
	}},
	{"Inspect", 1, false, func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		_, err := lease.Inspect(ctx, s, 1)
		return err
	}},
	{"ForceRelease", 1, false, func(ctx context.Context, s stores.Store, _ *lease.Keeper) error {
		return lease.ForceRelease(ctx, s, 1)
	}},
	{"Keeper.Poll", 2, true, func(ctx context.Context, _ stores.Store, k *lease.Keeper) error {
		k.Poll(ctx)
		return errors.New("Poll returns no error")
	}},
	{"Keeper.Restored", 4, false, func(ctx context.Context, _ stores.Store, k *lease.Keeper) error { return k.Restored(ctx) }},
	{"Keeper.CloseContext", 2, false, func(ctx context.Context, _ stores.Store, k *lease.Keeper) error { return k.CloseContext(ctx) }},
	{"Keeper.Close", 2, false, func(_ context.Context, _ stores.Store, k *lease.Keeper) error { return k.Close() }},
}

// Every call returns when its context ends, whichever operation of the store hangs, and
// also if the keeper's own goroutine or another call hangs in it as well.
func TestHangs(t *testing.T) {
	kinds := []int32{anyKind, int32(storetest.OpList), int32(storetest.OpRead), int32(storetest.OpSwap), int32(storetest.OpLock)}
	for _, c := range hangCalls {
		hung := 0
		worst := map[string]time.Duration{}
		for _, kind := range kinds {
			for ending, after := range endings {
				for variant := range 4 {
					locks, busy := variant&1 != 0, variant&2 != 0
					if ending == "none" && busy || busy && !strings.HasPrefix(c.name, "Keeper.") {
						continue
					}
					about := fmt.Sprintf("%s, %d hangs, context: %s, locks: %v, busy: %v", c.name, kind, ending, locks, busy)
					synctest.Test(t, func(t *testing.T) {
						took, err := hang(t, kind, locks, busy, c.polling, after, c.run)
						bound := hangTime
						if ending == "none" || c.name == "Keeper.Close" {
							bound = c.timeouts * lease.DefaultTimeout
						}
						if busy && c.name == "Keeper.Close" {
							bound += lease.DefaultTimeout // of the other call
						}
						assert.LessOrEqual(t, took, bound, "%s: %v", about, err)
						worst[ending] = max(worst[ending], took)
						if took > 0 {
							hung++
							if c.name != "Keeper.Close" || !busy { // it may succeed once the other call has ended
								assert.Error(t, err, about)
							}
						}
					})
				}
			}
		}
		assert.NotZero(t, hung, "%s never hangs", c.name)
		t.Logf("%s: with a deadline at most %v, canceled %v, without %v", c.name, worst["deadline"], worst["cancel"], worst["none"])
	}
}

// hang makes a call while a kind of operation hangs, and returns the time it took. If busy,
// another call without a deadline hangs in the same keeper.
func hang(t *testing.T, kind int32, locks, busy, polling bool, after func() (context.Context, context.CancelFunc), run func(context.Context, stores.Store, *lease.Keeper) error) (time.Duration, error) {
	memory := newHanging()
	var s stores.Store = memory
	if !locks {
		s = unlocking{memory}
	}
	crashed, err := lease.Claim(t.Context(), s, lease.WithLayout(hangLayout), unlogged, lease.WithPolling(), lease.WithNode(lease.NodeNumber(1)))
	require.NoError(t, err)
	assert.EqualValues(t, 1, crashed.Node())
	memory.Crash()

	options := []lease.Option{lease.WithLayout(hangLayout), unlogged, lease.WithNode(lease.NodeNumber(2))}
	if polling {
		options = append(options, lease.WithPolling())
	}
	k, err := lease.Claim(t.Context(), s, options...)
	require.NoError(t, err)
	memory.kind.Store(kind)
	time.Sleep(lease.DefaultWindow/3 + time.Second) // the extension is due
	if !polling && (kind == anyKind || kind == int32(storetest.OpSwap)) {
		for memory.hung.Load() == 0 { // it is also tried again
			time.Sleep(time.Millisecond)
		}
	}

	if busy {
		go func() { _ = k.Restored(context.Background()) }()
		synctest.Wait()
	}
	ctx, cancel := after()
	defer cancel()
	begin := time.Now()
	err = run(ctx, s, k)
	took := time.Since(begin)
	memory.kind.Store(noKind)
	assert.NoError(t, k.CloseContext(context.Background()))
	return took, err
}

// These calls never wait, even while the keeper's goroutine hangs.
func TestCallsThatNeverWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHanging()
		k, err := lease.Claim(t.Context(), s, lease.WithLayout(hangLayout), unlogged)
		require.NoError(t, err)
		s.kind.Store(anyKind)
		for s.hung.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		begin := time.Now()
		calls := map[string]func(){
			"Node": func() { k.Node() }, "Granted": func() { k.Granted() }, "Err": func() { _ = k.Err() },
			"Stats": func() { k.Stats() }, "Layout": func() { k.Layout() }, "Clock": func() { k.Clock() },
		}
		for name, call := range calls {
			call()
			assert.Zero(t, time.Since(begin), name)
		}
		s.kind.Store(noKind)
		assert.NoError(t, k.Close())
	})
}
