package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// crash claims node as a process that then does nothing more: it gives nothing back,
// and extends nothing.
func crash(t *testing.T, store stores.Store, node int64, options ...lease.Option) *lease.Keeper {
	t.Helper()
	k, err := lease.Claim(t.Context(), store, append([]lease.Option{lease.WithPolling(), lease.WithNode(lease.NodeNumber(node)),
		lease.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	require.NoError(t, err)
	return k
}

func at(d time.Duration) lease.Option {
	return lease.WithClock(clocktest.NewVirtual(time.Now().Add(d)))
}

func TestList(t *testing.T) {
	twitter, err := snowflake.ParseLayout("twitter")
	require.NoError(t, err)
	fleet := lease.WithLayout(twitter)
	const window = 30 * time.Second
	store := storetest.NewMemory()
	crash(t, store, 9, fleet, at(0), lease.WithOwner("nine"))
	crash(t, store, 4, fleet, at(12*time.Minute), lease.WithOwner("four"))
	crash(t, store, 5, fleet, at(-window-window/2), lease.WithOwner("five")) // limit past, by less than a window
	crash(t, store, 6, fleet, at(-3*window), lease.WithOwner("six"))
	crash(t, store, 7, fleet, at(-window/2), lease.WithOwner("seven")) // its extension is overdue
	released := crash(t, store, 2, fleet, at(0))
	require.NoError(t, released.Close())
	_, err = store.Swap(t.Context(), cell.NodeKey(3), 0, []byte("rubbish"))
	require.NoError(t, err)

	got, err := lease.List(t.Context(), store)
	require.NoError(t, err)
	type row struct {
		node  int64
		state lease.State
		owner string
	}
	var rows []row
	for _, h := range got {
		rows = append(rows, row{h.Node, h.State, h.Owner})
		one, err := lease.Inspect(t.Context(), store, h.Node)
		require.NoError(t, err)
		assert.InDelta(t, h.Ahead, one.Ahead, float64(10*time.Second))
		one.Ahead = h.Ahead // it is as of now
		assert.Equal(t, h, one)
	}
	assert.Equal(t, []row{
		{2, lease.Released, ""}, {3, lease.Damaged, ""}, {4, lease.Held, "four"},
		{5, lease.Held, "five"}, {6, lease.Expired, "six"}, {7, lease.Held, "seven"}, {9, lease.Held, "nine"},
	}, rows)

	require.ErrorIs(t, got[1].Err, stores.ErrDamaged)
	assert.ErrorContains(t, got[1].Err, "node number 3")

	four := got[2]
	assert.Equal(t, window, four.Window)
	assert.Equal(t, twitter.String(), four.Layout.String())
	assert.WithinDuration(t, time.Now().Add(12*time.Minute+window), four.Limit, 10*time.Second)
	assert.InDelta(t, 12*time.Minute, four.Ahead, float64(window/6+10*time.Second))
	assert.InDelta(t, 0, got[6].Ahead, float64(window/6+10*time.Second))
	for _, h := range got[3:6] {
		assert.Zero(t, h.Ahead, "its clock may be right: %s", h.Owner)
	}
	assert.NoError(t, four.Err)
}

// Of a Locker the lock says who is alive, and not the time.
func TestInspectAsksTheLock(t *testing.T) {
	store := storetest.NewMemory().Locking()
	crash(t, store, 1, at(-time.Hour))
	crash(t, store, 2)
	other := store.Client()
	crash(t, other.Locking(), 3)
	other.Crash()

	for range 2 { // looking must not leave a lock behind
		got, err := lease.List(t.Context(), store)
		require.NoError(t, err)
		var states []lease.State
		for _, h := range got {
			states = append(states, h.State)
		}
		assert.Equal(t, []lease.State{lease.Held, lease.Held, lease.Expired}, states)
	}
}

func TestForceRelease(t *testing.T) {
	store := storetest.NewMemory()
	holder, err := lease.Claim(t.Context(), store, lease.WithPolling(), lease.WithOwner("holder"), lease.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(holder))
	require.NoError(t, err)
	node := holder.Node()
	before, err := lease.Inspect(t.Context(), store, node)
	require.NoError(t, err)

	for range 2 { // the second time there is nothing to do
		require.NoError(t, lease.ForceRelease(t.Context(), store, node))
		after, err := lease.Inspect(t.Context(), store, node)
		require.NoError(t, err)
		before.State, before.Owner, before.Ahead = lease.Released, "", 0
		assert.Equal(t, before, after, "all else is as it was, the limit above all")
	}
	version := store.Peek(cell.NodeKey(node)).Version
	require.NoError(t, lease.ForceRelease(t.Context(), store, node))
	assert.Equal(t, version, store.Peek(cell.NodeKey(node)).Version, "what is released is not written")

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
		require.ErrorIs(t, lease.ForceRelease(t.Context(), storetest.NewMemory(), 7), lease.ErrNeverClaimed)
		_, err := lease.Inspect(t.Context(), storetest.NewMemory(), 7)
		require.ErrorIs(t, err, lease.ErrNeverClaimed)
	})
	t.Run("alive", func(t *testing.T) {
		store := storetest.NewMemory().Locking()
		crash(t, store, 7, lease.WithOwner("seven"))
		was := store.Peek(cell.NodeKey(7))
		require.ErrorIs(t, lease.ForceRelease(t.Context(), store, 7), lease.ErrHeld)
		require.ErrorIs(t, lease.ForceRelease(t.Context(), store, 7), stores.ErrLocked)
		require.ErrorContains(t, lease.ForceRelease(t.Context(), store, 7), "seven")
		assert.Equal(t, was, store.Peek(cell.NodeKey(7)))

		store.Crash()
		require.NoError(t, lease.ForceRelease(t.Context(), store, 7))
		crash(t, store, 7) // the lock was left to the next
	})
	t.Run("extended meanwhile", func(t *testing.T) {
		store := storetest.NewMemory()
		crash(t, store, 7, lease.WithOwner("seven"))
		meddler := store.Client()
		store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
			if isSwap(op) {
				_, err := meddler.Swap(t.Context(), op.Key, meddler.Peek(op.Key).Version, meddler.Peek(op.Key).Value)
				require.NoError(t, err)
			}
			return storetest.None
		}
		err := lease.ForceRelease(t.Context(), store, 7)
		require.ErrorIs(t, err, stores.ErrConflict)
		assert.ErrorContains(t, err, "seven")
	})
	t.Run("damaged", func(t *testing.T) {
		store := storetest.NewMemory()
		_, err := store.Swap(t.Context(), cell.NodeKey(7), 0, []byte("rubbish"))
		require.NoError(t, err)
		require.ErrorIs(t, lease.ForceRelease(t.Context(), store, 7), stores.ErrDamaged)
		assert.Equal(t, "rubbish", string(store.Peek(cell.NodeKey(7)).Value))
	})
	t.Run("store fails", func(t *testing.T) {
		for _, kind := range []storetest.OpKind{storetest.OpRead, storetest.OpSwap} {
			store := storetest.NewMemory()
			crash(t, store, 7)
			store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if op.Kind == kind {
					return storetest.Unavailable
				}
				return storetest.None
			}
			err := lease.ForceRelease(t.Context(), store, 7)
			require.ErrorIs(t, err, lease.ErrStore)
			assert.ErrorContains(t, err, ": "+kind.String()+" node/0000007: ")
		}
	})
}

// half is a store that cannot list all of its cells, such as a directory with a
// damaged file.
type half struct {
	stores.Store
	err error
}

func (h half) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	cells, err := h.Store.List(ctx, from, to, limit)
	return cells, errors.Join(err, h.err)
}

func TestInspectOfAStoreThatFails(t *testing.T) {
	store := storetest.NewMemory()
	crash(t, store, 7)
	broken := fmt.Errorf("cell 8 is on fire: %w", stores.ErrDamaged)
	got, err := lease.List(t.Context(), half{store, broken})
	require.ErrorIs(t, err, broken)
	assert.Len(t, got, 1, "what could be listed")

	away := errors.New("the server is away")
	_, err = lease.List(t.Context(), half{store, away})
	require.ErrorIs(t, err, lease.ErrStore)
	require.ErrorIs(t, err, away)
}

func TestStateNames(t *testing.T) {
	for state, want := range map[lease.State]string{lease.Damaged: "damaged", lease.Held: "held", lease.Released: "released", lease.Expired: "expired", lease.Reserved: "reserved"} {
		assert.Equal(t, want, state.String())
	}
	assert.True(t, strings.HasPrefix(lease.State(9).String(), "State("))
}

// pages is a store of two pages, each with a damaged cell.
type pages struct {
	stores.Store
	listed int
}

func (p *pages) List(_ context.Context, _, _ string, limit int) (cells []stores.Cell, _ error) {
	p.listed++
	if p.listed == 1 {
		for node := range limit {
			cells = append(cells, stores.Cell{Key: fmt.Sprintf("node/%07d", node), Version: 1})
		}
	}
	return cells, &stores.DamagedError{Key: fmt.Sprint("page/", p.listed)}
}

func TestInspectTellsOfDamageOnEachPage(t *testing.T) {
	_, err := lease.List(t.Context(), &pages{})
	assert.ErrorIs(t, err, stores.ErrDamaged)
	assert.ErrorContains(t, err, "page/1")
	assert.ErrorContains(t, err, "page/2")
}
