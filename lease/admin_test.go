package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// at is a clock that differs from the machine's, by which Inspect goes.
func at(d time.Duration) lease.Option {
	return lease.WithClock(clocktest.NewVirtual(time.Now().Add(d)))
}

// TestInspect shows the states of all numbers, and of each. On a Locker the lock says which process is
// alive, and not the time.
func TestInspect(t *testing.T) {
	for name, locks := range map[string]bool{"all hosts": false, "one host": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var store stores.Store = w.cells
			if locks {
				store = w.cells.Locking()
			}
			claim := func(node int64, ahead time.Duration) *lease.Keeper {
				return w.claim(store, pin(node), at(ahead), lease.WithWindow(period), lease.WithOwner(fmt.Sprint("owner ", node)))
			}
			claim(4, 12*time.Minute)
			claim(5, -3*period/2) // the limit is past, by less than a window
			claim(7, -period/2)   // its extension is overdue
			claim(9, 0)
			require.NoError(t, claim(2, 0).Close())
			w.write(cell.NodeKey(3), []byte("rubbish"))
			other := w.cells.Client()
			w.claim(other.Locking(), pin(6), at(-3*period), lease.WithWindow(period), lease.WithOwner("owner 6"))
			other.Crash()
			for range 2 { // it must not leave a lock behind
				got, err := lease.List(t.Context(), store)
				require.NoError(t, err)
				want := map[int64]lease.State{2: lease.Released, 3: lease.Damaged, 4: lease.Held, 5: lease.Held, 6: lease.Expired, 7: lease.Held, 9: lease.Held}
				require.Len(t, got, len(want))
				last := int64(-1)
				for _, h := range got {
					require.Greater(t, h.Node, last)
					last = h.Node
					assert.Equal(t, want[h.Node], h.State, h.Node)
					one := must(lease.Inspect(t.Context(), store, h.Node))
					assert.InDelta(t, h.Ahead, one.Ahead, float64(10*time.Second))
					one.Ahead = h.Ahead // it is as of now
					assert.Equal(t, h, one)
					switch {
					case h.Node == 4:
						assert.InDelta(t, 12*time.Minute, h.Ahead, float64(period/6+10*time.Second))
						assert.WithinDuration(t, time.Now().Add(12*time.Minute+period), h.Limit, 10*time.Second)
					case h.Node != 9:
						assert.Zero(t, h.Ahead, "its clock may be right: %d", h.Node)
					}
					if h.State == lease.Damaged {
						require.ErrorIs(t, h.Err, stores.ErrDamaged)
						require.ErrorContains(t, h.Err, "node number 3")
						continue
					}
					assert.Equal(t, period, h.Window)
					assert.Equal(t, snowflake.Default().String(), h.Layout.String())
					if h.State != lease.Released {
						assert.Equal(t, fmt.Sprint("owner ", h.Node), h.Owner)
					}
				}
			}
		})
	}
	assert.Equal(t, []string{"damaged", "held", "released", "expired", "reserved", "State(9)"},
		[]string{lease.Damaged.String(), lease.Held.String(), lease.Released.String(), lease.Expired.String(), lease.Reserved.String(), lease.State(9).String()})
}

// unlockable is a store whose locks fail with one error, and whose lists end with another.
type unlockable struct {
	*storetest.Memory
	lock, list error
}

func (s unlockable) TryLock(context.Context, string) (func(), error) { return func() {}, s.lock }

func (s unlockable) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	cells, err := s.Memory.List(ctx, from, to, limit)
	return cells, errors.Join(err, s.list)
}

// TestInspectFails: on a store that it must not write, the limits tell which numbers are held.
func TestInspectFails(t *testing.T) {
	w := newWorld(t)
	w.claim(w.cells, pin(7), at(0))
	refused, gone := stores.Refused.New("read only"), stores.Passing.New("connection refused")
	for lock, want := range map[error]lease.State{
		refused: lease.Held,
		fmt.Errorf("%w: it is", stores.ErrLocked):                                                   lease.Held,
		fmt.Errorf("lock: %w", &stores.DamagedError{Problem: "its file cannot be used", Err: gone}): lease.Damaged,
	} {
		damaged := &stores.DamagedError{Key: "node/0000008"}
		all, err := lease.List(t.Context(), unlockable{w.cells, lock, damaged})
		require.ErrorIs(t, err, stores.ErrDamaged)
		require.Len(t, all, 1, "what could be listed")
		require.Equal(t, want, all[0].State, "%v", lock)
	}
	for _, store := range []unlockable{{w.cells, gone, nil}, {w.cells, nil, gone}} {
		_, err := lease.List(t.Context(), store)
		require.ErrorIs(t, err, lease.ErrStore)
		require.ErrorIs(t, err, gone)
	}
	_, err := lease.Inspect(t.Context(), w.cells, 8)
	require.ErrorIs(t, err, lease.ErrNeverClaimed)
}

// TestForceRelease releases a number whose holder is alive: the next one begins where that one ends.
func TestForceRelease(t *testing.T) {
	w := newWorld(t)
	k := w.claim(nil, pin(7))
	gen := w.generator(k)
	before := w.holding(7)
	for range 2 { // the second time there is nothing to do
		require.NoError(t, lease.ForceRelease(t.Context(), w.cells, 7))
		before.State, before.Owner, before.Ahead = lease.Released, "", 0
		require.Equal(t, before, w.holding(7), "all else is as it was, the limit above all")
	}
	require.Equal(t, 1+1+1, int(w.cells.Peek(cell.NodeKey(7)).Version), "what is released is not written")
	floor, _ := w.claim(nil, pin(7)).Granted()
	require.Equal(t, before.Limit, floor)
	require.True(t, must(gen.Layout().Decode(must(gen.Next()))).Time.Before(floor))
}

func TestForceReleaseFails(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(w *world, store *storetest.Memory)
		locks   bool
		want    error
		says    string
	}{
		"never claimed":       {prepare: func(*world, *storetest.Memory) {}, want: lease.ErrNeverClaimed, says: "node number 7 was never claimed"},
		"alive":               {func(w *world, _ *storetest.Memory) { w.claim(w.cells.Locking(), pin(7), lease.WithOwner("seven")) }, true, lease.ErrHeld, "seven"},
		"damaged":             {func(w *world, _ *storetest.Memory) { w.write(cell.NodeKey(7), []byte("rubbish")) }, false, stores.ErrDamaged, "node number 7"},
		"reserved":            {func(w *world, _ *storetest.Memory) { w.reserve(7, noon.Add(time.Hour)) }, false, lease.ErrHeld, "reserved until 2029-06-01T13:00:00"},
		"it cannot be read":   {func(_ *world, store *storetest.Memory) { store.Fail(storetest.Unavailable, 1) }, false, lease.ErrStore, ": read node/0000007: "},
		"it cannot be locked": {failSecond, true, lease.ErrStore, ": lock node/0000007: "},
		"it cannot be written": {func(w *world, store *storetest.Memory) {
			w.claim(w.cells, pin(7))
			failSecond(w, store)
		}, false, lease.ErrStore, ": swap node/0000007: "},
		"extended meanwhile": {func(w *world, store *storetest.Memory) {
			w.claim(w.cells, pin(7), lease.WithOwner("seven"))
			store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if isSwap(op) {
					w.write(op.Key, w.cells.Peek(op.Key).Value)
				}
				return storetest.None
			}
		}, false, stores.ErrConflict, "seven"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			memory := w.cells.Client()
			if test.prepare(w, memory); name == "it cannot be locked" {
				w.claim(w.cells, pin(7))
			}
			was := w.cells.Peek(cell.NodeKey(7)).Value
			var store stores.Store = memory
			if test.locks {
				store = memory.Locking()
			}
			err := lease.ForceRelease(t.Context(), store, 7)
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.says)
			require.Equal(t, was, w.cells.Peek(cell.NodeKey(7)).Value)
			if test.want == lease.ErrHeld && test.locks {
				w.cells.Crash()
				require.NoError(t, lease.ForceRelease(t.Context(), store, 7))
				w.claim(store, pin(7)) // the lock was left to the next
			}
		})
	}
}

// failSecond fails the second call.
func failSecond(_ *world, store *storetest.Memory) {
	store.Fail(storetest.None, 1)
	store.Fail(storetest.Unavailable, 1)
}

func (w *world) reserve(node int64, until time.Time) {
	require.NoError(w, lease.Reserve(w.Context(), w.cells, node, node, until, w.options()...))
}

func TestReserve(t *testing.T) {
	for name, locks := range map[string]bool{"all hosts": false, "one host": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clock = clocktest.NewVirtual(time.Now().Truncate(time.Second)) // Inspect goes by the machine's
			store := func() stores.Store {
				if locks {
					return w.cells.Client().Locking()
				}
				return w.cells.Client()
			}
			reserve := func(from, to int64, until time.Time) error {
				return lease.Reserve(t.Context(), store(), from, to, until, w.options(small(2))...)
			}
			until := w.clock.Wall().AddDate(0, 6, 0).Add(time.Microsecond)
			holder := w.claim(store(), small(2), pin(3))
			err := reserve(0, 3, until)
			require.ErrorIs(t, err, lease.ErrHeld)
			require.ErrorContains(t, err, "3")
			require.NoError(t, holder.Close())
			for node := range int64(3) { // those before it are reserved
				require.Equal(t, lease.Reserved, w.holding(node).State)
				require.WithinDuration(t, until, w.holding(node).Limit, 2*time.Millisecond)
				require.False(t, w.holding(node).Limit.Before(until))
			}
			w.clock.Advance(time.Hour)
			require.EqualValues(t, 3, w.claim(store(), small(2)).Node())
			_, err = w.try(store(), small(2))
			require.ErrorContains(t, err, "4 of 4 are held or reserved")
			_, err = w.try(store(), small(2), pin(1))
			require.ErrorIs(t, err, lease.ErrHeld)
			require.ErrorContains(t, err, "reserved until "+w.holding(1).Limit.Format("2006-01-02"))

			// A later date extends it, an earlier one changes nothing.
			later := until.AddDate(0, 1, 0)
			require.NoError(t, reserve(0, 0, later))
			version := w.cells.Peek(cell.NodeKey(0)).Version
			require.NoError(t, reserve(0, 0, until))
			require.Equal(t, version, w.cells.Peek(cell.NodeKey(0)).Version)
			require.WithinDuration(t, later, w.holding(0).Limit, 2*time.Millisecond)

			// After the date, the number is as any other, and begins at the date.
			w.clock.Step(until.Add(time.Second).Sub(w.clock.Wall()))
			from, _ := w.claim(store(), small(2), pin(1)).Granted()
			require.False(t, from.Before(until))
			require.Equal(t, lease.Held, w.holding(1).State)
		})
	}
}

func TestReserveRefuses(t *testing.T) {
	w := newWorld(t)
	soon := noon.Add(time.Hour)
	reserve := func(from, to int64, until time.Time, nodeBits int) error {
		return lease.Reserve(t.Context(), w.cells, from, to, until, w.options(small(nodeBits))...)
	}
	for _, err := range []error{reserve(-1, 2, soon, 2), reserve(2, 1, soon, 2), reserve(0, 4, soon, 2), reserve(0, 1, noon, 2), reserve(0, 1, noon.AddDate(500, 0, 0), 2)} {
		w.refuses("Reserve", err)
	}
	require.NoError(t, reserve(0, 1, soon, 2))
	require.NotZero(t, w.cells.Peek(cell.LayoutKey).Version)
	require.ErrorAs(t, reserve(0, 1, soon, 3), new(*lease.LayoutMismatchError))

	// A process that an operator took for dead may issue until the end of its grant.
	k := w.claim(nil, small(2), pin(3))
	gen := w.generator(k)
	require.NoError(t, lease.ForceRelease(t.Context(), w.cells, 3))
	must(gen.Next())
	_, limit := k.Granted()
	err := reserve(3, 3, soon, 2)
	require.ErrorIs(t, err, lease.ErrHeld)
	require.ErrorContains(t, err, limit.Format("15:04:05"))
	w.clock.Advance(period)
	require.NoError(t, reserve(3, 3, soon, 2))
	_, err = gen.Next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
}
