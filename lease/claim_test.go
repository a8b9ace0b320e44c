package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestClaimOptions: an option out of range is refused by its name, before a call of the store.
func TestClaimOptions(t *testing.T) {
	hour := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Hour, TimeBits: 30, NodeBits: 4, SequenceBits: 8}
	wide := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Second, TimeBits: 32, NodeBits: 30, SequenceBits: 1}
	at := func(at time.Time) lease.Option { return lease.WithClock(clocktest.NewVirtual(at)) }
	end := snowflake.Default().End()
	var noMemory *storetest.Memory
	for name, test := range map[string]struct {
		refused string // the option, or "" if none is
		options []lease.Option
	}{
		"the shortest window":       {"", []lease.Option{lease.WithWindow(6 * time.Millisecond)}},
		"too short a window":        {"WithWindow", []lease.Option{lease.WithWindow(6*time.Millisecond - 1)}},
		"the longest window":        {"", []lease.Option{lease.WithWindow(366 * 24 * time.Hour)}},
		"too long a window":         {"WithWindow", []lease.Option{lease.WithWindow(366*24*time.Hour + 1)}},
		"ticks of an hour":          {"", []lease.Option{lease.WithLayout(hour)}}, // the default window is made longer
		"few ticks of an hour":      {"WithWindow", []lease.Option{lease.WithLayout(hour), lease.WithWindow(5 * time.Hour)}},
		"no timeout":                {"WithTimeout", []lease.Option{lease.WithTimeout(0)}},
		"a limit below zero":        {"WithFleetCheck", []lease.Option{lease.WithFleetCheck(-1, false)}},
		"the longest owner":         {"", []lease.Option{lease.WithOwner(strings.Repeat("o", 200))}},
		"an owner of long escapes":  {"WithOwner", []lease.Option{lease.WithOwner(string(make([]byte, 200)))}},
		"too long an owner":         {"WithOwner", []lease.Option{lease.WithOwner(strings.Repeat("o", 201))}},
		"no clock":                  {"WithClock", []lease.Option{lease.WithClock(nil)}},
		"no logger":                 {"WithLogger", []lease.Option{lease.WithLogger(nil)}},
		"no option":                 {"Claim", []lease.Option{nil}},
		"no layout":                 {"WithLayout", []lease.Option{lease.WithLayout(snowflake.Layout{})}},
		"at the end of time":        {"WithLayout", []lease.Option{at(end)}},
		"before the epoch":          {"WithLayout", []lease.Option{at(snowflake.Default().Epoch.Add(-1))}},
		"a number below zero":       {"WithNode", []lease.Option{pin(-1)}},
		"a number above all":        {"WithNode", []lease.Option{pin(1024)}},
		"no source":                 {"WithNode", []lease.Option{lease.WithNode(nil)}},
		"a source that fails":       {"WithNode", []lease.Option{lease.WithNode(lease.NodeFromEnv("TICKFLAKE_NOT_SET"))}},
		"the last number of stores": {"", []lease.Option{lease.WithLayout(wide), pin(1<<22 - 1)}}, // whatever the layout has
		"above the last number":     {"WithNode", []lease.Option{lease.WithLayout(wide), pin(1 << 22)}},
	} {
		w := newWorld(t)
		k, err := w.try(nil, test.options...)
		if test.refused != "" {
			w.refuses(test.refused, err)
			assert.Zero(t, w.trips(), name)
			continue
		}
		require.NoError(t, err, name)
		require.GreaterOrEqual(t, k.Stats().Window, 6*k.Layout().Tick, name)
		require.NoError(t, k.Close())
	}
	for name, call := range map[string]func(s stores.Store) error{
		"Claim":        func(s stores.Store) error { return second(lease.Claim(t.Context(), s)) },
		"List":         func(s stores.Store) error { return second(lease.List(t.Context(), s)) },
		"Inspect":      func(s stores.Store) error { return second(lease.Inspect(t.Context(), s, 1)) },
		"ForceRelease": func(s stores.Store) error { return lease.ForceRelease(t.Context(), s, 1) },
		"Reserve":      func(s stores.Store) error { return lease.Reserve(t.Context(), s, 1, 1, noon) },
		"Export":       func(s stores.Store) error { return second(lease.Export(t.Context(), s, "new", lease.EvenIfRunning())) },
		"Import":       func(s stores.Store) error { return lease.Import(t.Context(), s, lease.Floors{}) },
	} {
		newWorld(t).refuses(name, call(nil))
		newWorld(t).refuses(name, call(noMemory))
	}
}

func TestNodeSources(t *testing.T) {
	for host, want := range map[string]int64{
		"web-0": 0, "a-b-12": 12, "web-7.web.default.svc.cluster.local": 7, "web-007": 7, "web--7": 7,
		"web": -1, "-7": -1, "7": -1, "web-": -1, "web-+7": -1, "web-7x": -1, "": -1, "web-99999999999999999999": -1,
	} {
		got, err := lease.Ordinal(host)
		if want < 0 {
			require.ErrorContains(t, err, fmt.Sprintf("%q", host), host)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got, host)
	}
	const name = "TICKFLAKE_TEST_NODE"
	for text, want := range map[string]int64{"7": 7, " 12\n": 12, "": -1, "1.5": -1, "0x10": -1} {
		t.Setenv(name, text)
		got, err := lease.NodeFromEnv(name)(snowflake.Default())
		if want < 0 {
			require.ErrorContains(t, err, name)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// TestClaimCosts: a claim takes few calls, on an empty store and among many processes.
func TestClaimCosts(t *testing.T) {
	w := newWorld(t)
	k := w.claim(nil)
	require.LessOrEqual(t, w.trips(), 4, "on an empty store, the layout included")
	value := w.cells.Peek(cell.NodeKey(k.Node())).Value
	for node := range int64(1000) {
		w.write(cell.NodeKey(node), value)
	}
	for range 20 {
		clear(w.calls)
		w.claim(nil)
		require.LessOrEqual(t, w.trips(), 5, "with 1,000 of 1,024 numbers taken")
	}
}

// TestClaimFails has a claim meet what ends it, and checks the error and whether it waits.
func TestClaimFails(t *testing.T) {
	refused := fmt.Errorf("%w: WRONGTYPE", stores.Refused.New("use another namespace"))
	for name, test := range map[string]struct {
		options []lease.Option
		prepare func(w *world)
		err     error // of the store
		want    error
		says    string
		once    bool // no wait helps
	}{
		"the store is away":    {err: errors.New("no\nroute"), want: lease.ErrStore, says: "store does not answer: read layout: no; route"},
		"the store refuses":    {err: refused, want: stores.Refused, says: "store refuses: read layout: use another namespace: WRONGTYPE", once: true},
		"all numbers are held": {options: []lease.Option{small(0)}, prepare: func(w *world) { w.claim(nil, small(0)) }, says: "1 of 1 are held"},
		"a window of ages": {options: []lease.Option{small(0)}, prepare: func(w *world) {
			r := cell.Node{Holder: "h", Limit: 1, Window: math.MaxUint64, Write: "w", Layout: smallLayout(0).String()}
			w.write(cell.NodeKey(0), r.Encode())
		}, says: "1 of 1 are held"},
		"the number is held": {options: []lease.Option{pin(1)}, want: lease.ErrHeld, says: "held by red?[31m?host: ", prepare: func(w *world) {
			w.claim(w.cells.Client().Locking(), pin(1), lease.WithOwner("red\x1b[31m\nhost")) // any text may stand there
		}},
		"the layout is another": {options: []lease.Option{small(7)}, prepare: func(w *world) { w.claim(nil, small(8)) },
			want: stores.Refused, says: "store holds cells for the layout", once: true},
		"the layout is damaged": {prepare: func(w *world) { w.write(cell.LayoutKey, []byte("rubbish")) }, want: stores.ErrDamaged, says: "cell of the layout: ", once: true},
		"the number is damaged": {options: []lease.Option{pin(1)}, want: stores.ErrDamaged, says: "cell of node number 1 cannot be read: ", once: true,
			prepare: func(w *world) { w.write(cell.NodeKey(1), []byte("rubbish")) }},
		"no time is left": {options: []lease.Option{small(0)}, want: lease.ErrEndOfTime, once: true, prepare: func(w *world) {
			w.clock.Step(snowflake.Default().End().Sub(noon) - time.Second)
			k := w.claim(nil, small(0))
			_, limit := k.Granted()
			require.Equal(w, snowflake.Default().End(), limit, "no more than there is")
			w.pass(time.Millisecond, k)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.prepare != nil {
				test.prepare(w)
			}
			cause := errors.New("the deploy was stopped")
			for _, deadline := range []bool{false, true} {
				ctx, cancel := context.WithCancelCause(t.Context())
				if deadline {
					bounded, stop := context.WithTimeout(ctx, time.Hour)
					defer stop()
					ctx = bounded
				}
				tries := 0
				store := failing{w.cells.Client().Locking(), func() error {
					if tries++; tries == 4 {
						cancel(cause)
					}
					return test.err
				}}
				var s stores.Store = store
				if test.want != lease.ErrHeld {
					s = struct{ stores.Store }{store} // no Locker
				}
				w.clock.AutoAdvance(true)
				_, err := lease.Claim(ctx, s, w.options(test.options...)...)
				w.clock.AutoAdvance(false)
				require.ErrorContains(t, err, test.says)
				require.NotContains(t, err.Error(), "\n")
				if test.want != nil {
					require.ErrorIs(t, err, test.want)
				}
				waits := deadline && !test.once
				require.Equal(t, waits, errors.Is(err, context.Canceled) && errors.Is(err, cause), "%v", err)
				require.Equal(t, waits, tries > 1)
				require.Equal(t, waits, w.log.count("lease: waiting for a node number") == 1, "%s", w.log)
				cancel(nil)
			}
		})
	}
}

// failing is a store whose reads fail as a function says.
type failing struct {
	storetest.LockingMemory
	read func() error
}

func (f failing) Read(ctx context.Context, key string) (stores.Cell, error) {
	if key == cell.LayoutKey {
		if err := f.read(); err != nil {
			return stores.Cell{}, err
		}
	}
	return f.LockingMemory.Read(ctx, key)
}

// TestClaimWaits: with a deadline, a claim on a full store gets the first number that is free.
func TestClaimWaits(t *testing.T) {
	w := newWorld(t)
	for range 4 {
		w.claim(nil, small(2), lease.WithWindow(time.Minute))
		w.clock.Advance(time.Second)
	}
	_, err := w.try(nil, small(2))
	full, _ := errors.AsType[*lease.NoFreeNodeError](err)
	require.Equal(t, &lease.NoFreeNodeError{Held: 4, Nodes: 4, Soonest: noon.Add(2 * time.Minute)}, full)
	w.clock.AutoAdvance(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	begin := w.clock.Elapsed()
	must(lease.Claim(ctx, w.client(nil), w.options(small(2))...))
	require.InDelta(t, 2*time.Minute, w.clock.Elapsed()-begin, float64(grant.Urgent), "a window after the end of the grant, or two after the last sign of life")
}

// TestOthersAreFaster has another process take each number that a claim writes.
func TestOthersAreFaster(t *testing.T) {
	for name, test := range map[string]struct {
		option lease.Option
		most   int // of the numbers that others take
		check  func(t *testing.T, err error)
	}{
		"both numbers": {small(1), 9, func(t *testing.T, err error) {
			full, _ := errors.AsType[*lease.NoFreeNodeError](err)
			require.NotNil(t, full)
			require.EqualValues(t, 2, full.Held)
		}},
		"the pinned number": {pin(7), 1, func(t *testing.T, err error) {
			require.ErrorIs(t, err, lease.ErrHeld)
			require.ErrorIs(t, err, stores.ErrConflict)
			require.NotErrorIs(t, err, lease.ErrStore)
		}},
		"each number": {small(10), 99, func(t *testing.T, err error) {
			require.ErrorIs(t, err, stores.ErrConflict)
			require.ErrorContains(t, err, "8 times in a row: many processes claim at once")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			taken := 0
			store := w.client(func(op storetest.Op) storetest.Fault {
				if isSwap(op) && taken < test.most {
					taken++
					w.claim(w.cells.Client(), test.option, pin(nodeOf(op.Key)))
				}
				return storetest.None
			})
			_, err := w.try(store, test.option)
			test.check(t, err)
		})
	}
}

// TestSameFleet: the names of parts, and a wider time field, make no other layout; all else does.
func TestSameFleet(t *testing.T) {
	w := newWorld(t)
	w.claim(nil, small(8))
	parts := smallLayout(8)
	parts.Parts = []snowflake.Part{{Name: "a", Bits: 3}, {Name: "b", Bits: 5}}
	w.claim(nil, lease.WithLayout(parts))
	for _, change := range []func(*snowflake.Layout){
		func(l *snowflake.Layout) { l.NodeBits-- }, func(l *snowflake.Layout) { l.SequenceBits-- }, func(l *snowflake.Layout) { l.Tick *= 2 },
		func(l *snowflake.Layout) { l.Epoch = l.Epoch.Add(time.Second) }, func(l *snowflake.Layout) { l.Order = snowflake.TimeSequenceNode },
	} {
		other := smallLayout(8)
		change(&other)
		_, err := w.try(nil, lease.WithLayout(other))
		mismatch, _ := errors.AsType[*lease.LayoutMismatchError](err)
		require.Equal(t, &lease.LayoutMismatchError{Ours: other, Theirs: smallLayout(8)}, mismatch)
	}
}

// TestLocks: on a Locker the lock holds a number, and a claim that fails after it gives it back.
func TestLocks(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		k := w.claim(w.cells.Client().Locking(), pin(1))
		w.clock.Advance(time.Hour) // however long it is silent
		_, err := w.try(w.cells.Client().Locking(), pin(1))
		require.ErrorIs(t, err, lease.ErrHeld)
		require.ErrorIs(t, err, stores.ErrLocked)
		require.NoError(t, k.Close())
	}
	other := cell.Node{Limit: 7, Write: "w", Layout: smallLayout(9).String()}
	for name, meanwhile := range map[string]func() storetest.Fault{
		"not readable": func() storetest.Fault { return storetest.Unavailable },
		"damaged":      func() storetest.Fault { w.write(cell.NodeKey(1), []byte("rubbish")); return storetest.None },
		"of a layout":  func() storetest.Fault { w.write(cell.NodeKey(1), other.Encode()); return storetest.None },
		"not written":  nil,
	} {
		w = newWorld(t)
		reads := 0
		store := w.client(func(op storetest.Op) storetest.Fault {
			switch {
			case isSwap(op):
				return storetest.Unavailable
			case op.Kind == storetest.OpRead && op.Key == cell.NodeKey(1):
				if reads++; reads == 2 && meanwhile != nil { // after the lock
					return meanwhile()
				}
			}
			return storetest.None
		})
		_, err := w.try(store.Locking(), pin(1))
		require.Error(t, err, name)
		require.NotErrorIs(t, err, lease.ErrHeld, name)
		unlock, err := w.cells.Client().Locking().TryLock(t.Context(), cell.NodeKey(1))
		require.NoError(t, err, name)
		unlock()
	}
}

// lateTimer is a context whose timer is late: Done closes after its deadline.
type lateTimer struct {
	context.Context
	deadline time.Time
}

func (l lateTimer) Deadline() (time.Time, bool) { return l.deadline, true }

// punctual is a store that knows by the clock that the deadline of its context has passed.
type punctual struct{ storetest.LockingMemory }

func (p punctual) Read(ctx context.Context, key string) (stores.Cell, error) {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return stores.Cell{}, context.DeadlineExceeded
	}
	return p.LockingMemory.Read(ctx, key)
}

// TestReasonAtALateDeadline: a claim that gives up says why it waited, and not that its last try was
// interrupted.
func TestReasonAtALateDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cells, log := storetest.NewMemory(), &record{}
		holder := must(lease.Claim(t.Context(), cells.Client().Locking(), pin(7), log.option()))
		defer holder.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := lease.Claim(lateTimer{ctx, time.Now().Add(time.Second)}, punctual{cells.Client().Locking()}, pin(7), log.option())
		assert.ErrorIs(t, err, lease.ErrHeld)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// bubble runs a test with real goroutines in the virtual time of package synctest, which begins in 2000:
// before the epoch of layouts.
func bubble(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour)
		test(t)
	})
}
