package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
)

// crash claims node as a process that then does nothing more: it gives nothing back,
// and extends nothing.
func crash(t *testing.T, store lease.Store, node int64, options ...lease.Option) *lease.Keeper {
	t.Helper()
	k, err := lease.Claim(t.Context(), store, append([]lease.Option{lease.WithPolling(), lease.WithNode(lease.NodeNumber(node)),
		lease.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	require.NoError(t, err)
	return k
}

func at(d time.Duration) lease.Option {
	return lease.WithClock(clocktest.NewVirtual(time.Now().Add(d)))
}

func TestInspect(t *testing.T) {
	twitter, err := snowflake.ParseLayout("twitter")
	require.NoError(t, err)
	fleet := lease.WithLayout(twitter)
	const window = 30 * time.Second
	store := leasetest.NewMemory()
	crash(t, store, 9, fleet, at(0), lease.WithOwner("nine"))
	crash(t, store, 4, fleet, at(12*time.Minute), lease.WithOwner("four"))
	crash(t, store, 5, fleet, at(-window-window/2), lease.WithOwner("five")) // limit past, by less than a window
	crash(t, store, 6, fleet, at(-3*window), lease.WithOwner("six"))
	released := crash(t, store, 2, fleet, at(0))
	require.NoError(t, released.Close())
	_, err = store.Swap(t.Context(), lease.Cell{Node: 3}, []byte("rubbish"))
	require.NoError(t, err)

	got, err := lease.Inspect(t.Context(), store)
	require.NoError(t, err)
	type row struct {
		node  int64
		state lease.State
		owner string
	}
	var rows []row
	for _, h := range got {
		rows = append(rows, row{h.Node, h.State, h.Owner})
		one, err := lease.InspectNode(t.Context(), store, h.Node)
		require.NoError(t, err)
		assert.InDelta(t, h.Ahead, one.Ahead, float64(10*time.Second))
		one.Ahead = h.Ahead // it is as of now
		assert.Equal(t, h, one)
	}
	assert.Equal(t, []row{
		{2, lease.Released, ""}, {3, lease.Damaged, ""}, {4, lease.Held, "four"},
		{5, lease.Held, "five"}, {6, lease.Abandoned, "six"}, {9, lease.Held, "nine"},
	}, rows)

	var damaged *lease.RecordError
	require.ErrorAs(t, got[1].Err, &damaged)
	assert.Equal(t, int64(3), damaged.Node)

	four := got[2]
	assert.Equal(t, window, four.Window)
	assert.Equal(t, twitter.String(), four.Layout.String())
	assert.WithinDuration(t, time.Now().Add(12*time.Minute+window), four.Limit, 10*time.Second)
	assert.InDelta(t, 12*time.Minute, four.Ahead, float64(window/6+10*time.Second))
	assert.InDelta(t, 0, got[5].Ahead, float64(window/6+10*time.Second))
	assert.Zero(t, got[4].Ahead, "whoever is gone has no clock")
	assert.NoError(t, four.Err)
}

// Of a Locker the lock says who is alive, and not the time.
func TestInspectAsksTheLock(t *testing.T) {
	store := leasetest.NewMemory().Locking()
	crash(t, store, 1, at(-time.Hour))
	crash(t, store, 2)
	other := store.Client()
	crash(t, other.Locking(), 3)
	other.Crash()

	for range 2 { // looking must not leave a lock behind
		got, err := lease.Inspect(t.Context(), store)
		require.NoError(t, err)
		var states []lease.State
		for _, h := range got {
			states = append(states, h.State)
		}
		assert.Equal(t, []lease.State{lease.Held, lease.Held, lease.Abandoned}, states)
	}
}

func TestForceRelease(t *testing.T) {
	store := leasetest.NewMemory()
	holder, err := lease.Claim(t.Context(), store, lease.WithPolling(), lease.WithOwner("holder"), lease.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(holder))
	require.NoError(t, err)
	node := holder.Node()
	before, err := lease.InspectNode(t.Context(), store, node)
	require.NoError(t, err)

	for range 2 { // the second time there is nothing to do
		require.NoError(t, lease.ForceRelease(t.Context(), store, node))
		after, err := lease.InspectNode(t.Context(), store, node)
		require.NoError(t, err)
		before.State, before.Owner, before.Ahead = lease.Released, "", 0
		assert.Equal(t, before, after, "all else is as it was, the limit above all")
	}
	version := store.Peek(node).Version
	require.NoError(t, lease.ForceRelease(t.Context(), store, node))
	assert.Equal(t, version, store.Peek(node).Version, "what is released is not written")

	// The next one begins where the holder ends, who may go on until then.
	next := crash(t, store, node)
	floor, _ := next.Granted()
	assert.Equal(t, before.Limit, floor)
	id, err := gen.Next()
	require.NoError(t, err)
	decoded, err := gen.Layout().Decode(id)
	require.NoError(t, err)
	assert.Equal(t, node, decoded.Node)
	assert.True(t, decoded.Time.Before(floor))
	require.NoError(t, gen.Close())
}

func TestForceReleaseFails(t *testing.T) {
	t.Run("never claimed", func(t *testing.T) {
		var never *lease.NeverClaimedError
		require.ErrorAs(t, lease.ForceRelease(t.Context(), leasetest.NewMemory(), 7), &never)
		assert.Equal(t, int64(7), never.Node)
		_, err := lease.InspectNode(t.Context(), leasetest.NewMemory(), 7)
		require.ErrorAs(t, err, &never)
	})
	t.Run("alive", func(t *testing.T) {
		store := leasetest.NewMemory().Locking()
		crash(t, store, 7, lease.WithOwner("seven"))
		was := store.Peek(7)
		var held *lease.HeldError
		require.ErrorAs(t, lease.ForceRelease(t.Context(), store, 7), &held)
		assert.Equal(t, "seven", held.Owner)
		require.ErrorIs(t, held, lease.ErrLocked)
		assert.Equal(t, was, store.Peek(7))

		store.Crash()
		require.NoError(t, lease.ForceRelease(t.Context(), store, 7))
		crash(t, store, 7) // the lock was left to the next
	})
	t.Run("extended meanwhile", func(t *testing.T) {
		store := leasetest.NewMemory()
		crash(t, store, 7, lease.WithOwner("seven"))
		meddler := store.Client()
		store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
			if op.Kind == leasetest.OpSwap {
				_, err := meddler.Swap(t.Context(), meddler.Peek(7), meddler.Peek(7).Value)
				require.NoError(t, err)
			}
			return leasetest.None
		}
		var changed *lease.ChangedError
		require.ErrorAs(t, lease.ForceRelease(t.Context(), store, 7), &changed)
		assert.Equal(t, int64(7), changed.Node)
		assert.Equal(t, "seven", changed.Owner)
		assert.ErrorIs(t, changed, lease.ErrConflict)
	})
	t.Run("damaged", func(t *testing.T) {
		store := leasetest.NewMemory()
		_, err := store.Swap(t.Context(), lease.Cell{Node: 7}, []byte("rubbish"))
		require.NoError(t, err)
		var damaged *lease.RecordError
		require.ErrorAs(t, lease.ForceRelease(t.Context(), store, 7), &damaged)
		assert.Equal(t, "rubbish", string(store.Peek(7).Value))
	})
	t.Run("store fails", func(t *testing.T) {
		for _, kind := range []leasetest.OpKind{leasetest.OpRead, leasetest.OpSwap} {
			store := leasetest.NewMemory()
			crash(t, store, 7)
			store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
				if op.Kind == kind {
					return leasetest.Unavailable
				}
				return leasetest.None
			}
			var failed *lease.StoreError
			require.ErrorAs(t, lease.ForceRelease(t.Context(), store, 7), &failed)
			assert.Equal(t, kind.String(), failed.Op)
		}
	})
}

// half is a store that cannot list all of its cells, such as a directory with a
// damaged file.
type half struct {
	lease.Store
	err error
}

func (h half) List(ctx context.Context) ([]lease.Cell, error) {
	cells, err := h.Store.List(ctx)
	return cells, errors.Join(err, h.err)
}

func TestInspectOfAStoreThatFails(t *testing.T) {
	store := leasetest.NewMemory()
	crash(t, store, 7)
	broken := errors.New("cell 8 is on fire")
	got, err := lease.Inspect(t.Context(), half{store, broken})
	var failed *lease.StoreError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, broken)
	assert.Len(t, got, 1, "what could be listed")
}

func TestStateNames(t *testing.T) {
	for state, want := range map[lease.State]string{lease.Damaged: "damaged", lease.Held: "held", lease.Released: "released", lease.Abandoned: "abandoned"} {
		assert.Equal(t, want, state.String())
	}
	assert.True(t, strings.HasPrefix(lease.State(9).String(), "State("))
}
