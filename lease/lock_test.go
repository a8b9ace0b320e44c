package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// On a store that locks, a number is held by the lock, and free with it at once.
func TestLockIsHeldAndGivenBack(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	pin := lease.WithNode(lease.NodeNumber(1))
	for range 3 {
		k, err := lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin, lease.WithOwner("first"))...)
		require.NoError(t, err)
		_, err = lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin)...)
		require.ErrorIs(t, err, lease.ErrHeld)
		require.ErrorIs(t, err, stores.ErrLocked)
		require.ErrorContains(t, err, "first")
		clock.Advance(time.Hour) // however long it is silent
		_, err = lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin)...)
		require.ErrorIs(t, err, lease.ErrHeld)
		require.NoError(t, k.Close())
	}
	// A claim whose outcome is not known holds nothing.
	store := memory.Client()
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			return storetest.Unavailable
		}
		return storetest.None
	}
	_, err := lease.Claim(t.Context(), store.Locking(), quiet(clock, pin)...)
	require.ErrorIs(t, err, storetest.ErrFault)
	claim(t, memory.Client(), clock, pin)
	k, err := lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin)...)
	require.NoError(t, err)
	require.NoError(t, k.Close())
}

// Between the list and the lock, its holder may write the cell and give it back.
func TestLockOfAListedHolder(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	pin := lease.WithNode(lease.NodeNumber(1))
	memory := storetest.NewMemory()
	first, err := lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin)...)
	require.NoError(t, err)
	_, limit := first.Granted()
	store := memory.Client()
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpLock {
			require.NoError(t, first.Close())
		}
		return storetest.None
	}
	second, err := lease.Claim(t.Context(), store.Locking(), quiet(clock, pin)...)
	require.NoError(t, err)
	from, _ := second.Granted()
	require.True(t, from.Before(limit), "which the first gave back")
	require.NoError(t, second.Close())
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// A claim that fails after the lock gives that back, and overwrites nothing.
func TestLockIsGivenBackByAClaimThatFails(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	pin := lease.WithNode(lease.NodeNumber(1))
	memory := storetest.NewMemory()
	otherLayout := func() {
		layout := snowflake.Default()
		layout.NodeBits--
		r := cell.Node{Limit: 7, Write: "w", Layout: layout.String()}
		_, err := memory.Client().Swap(t.Context(), cell.NodeKey(1), 0, r.Encode())
		require.NoError(t, err)
	}
	damage := func() {
		_, err := memory.Client().Swap(t.Context(), cell.NodeKey(1), 0, []byte("rubbish"))
		require.NoError(t, err)
	}
	for name, tt := range map[string]struct {
		meanwhile func()
		fault     storetest.Fault
		want      func(error) bool
	}{
		"not readable": {func() {}, storetest.Unavailable, is(lease.ErrStore)},
		"damaged":      {damage, storetest.None, is(stores.ErrDamaged)},
		"of a layout":  {otherLayout, storetest.None, func(err error) bool { return errors.As(err, new(*lease.LayoutMismatchError)) }},
	} {
		t.Run(name, func(t *testing.T) {
			memory = storetest.NewMemory()
			store := memory.Client()
			var before []byte
			reads := 0
			store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if op.Kind != storetest.OpRead || op.Key != cell.NodeKey(1) {
					return storetest.None
				}
				if reads++; reads < 2 {
					return storetest.None // of the candidate; then comes the lock
				}
				tt.meanwhile()
				before = memory.Peek(cell.NodeKey(1)).Value
				return tt.fault
			}
			_, err := lease.Claim(t.Context(), store.Locking(), quiet(clock, pin)...)
			require.True(t, tt.want(err), "%v", err)
			require.Equal(t, before, memory.Peek(cell.NodeKey(1)).Value)
			unlock, err := memory.Client().Locking().TryLock(t.Context(), cell.NodeKey(1))
			require.NoError(t, err)
			unlock()
		})
	}
}

// Another process may have given any text as its owner: an error shows one line of it.
func TestTheOwnerInAnErrorIsPrintable(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	pin := lease.WithNode(lease.NodeNumber(1))
	memory := storetest.NewMemory().Locking()
	_, err := lease.Claim(t.Context(), memory, quiet(clock, pin, lease.WithOwner("red\x1b[31m\nhost"))...)
	require.NoError(t, err)
	_, err = lease.Claim(t.Context(), memory, quiet(clock, pin)...)
	require.ErrorIs(t, err, lease.ErrHeld)
	require.ErrorContains(t, err, "held by red?[31m?host: ")
}
