package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// On a store that locks, a number is held by the lock, and free with it at once.
func TestLockIsHeldAndGivenBack(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	pin := lease.WithNode(lease.NodeNumber(1))
	for range 3 {
		k, err := lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin, lease.WithOwner("first"))...)
		require.NoError(t, err)
		_, err = lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin)...)
		var held *lease.HeldError
		require.ErrorAs(t, err, &held)
		require.ErrorIs(t, err, lease.ErrLocked)
		require.Equal(t, "first", held.Owner)
		clock.Advance(time.Hour) // however long it is silent
		_, err = lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin)...)
		require.ErrorAs(t, err, &held)
		require.NoError(t, k.Close())
	}
	// A claim whose outcome is not known holds nothing.
	store := memory.Client()
	store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
		if op.Kind == leasetest.OpSwap {
			return leasetest.Unavailable
		}
		return leasetest.None
	}
	_, err := lease.Claim(t.Context(), store.Locking(), quiet(clock, pin)...)
	require.ErrorIs(t, err, leasetest.ErrFault)
	claim(t, memory.Client(), clock, pin)
	k, err := lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin)...)
	require.NoError(t, err)
	require.NoError(t, k.Close())
}

// Between the list and the lock, its holder may write the cell and give it back.
func TestLockOfAListedHolder(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	for _, options := range [][]lease.Option{{small(0)}, {small(0), lease.WithNode(lease.NodeNumber(0))}} {
		memory := leasetest.NewMemory()
		first, err := lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, options...)...)
		require.NoError(t, err)
		_, limit := first.Granted()
		store := memory.Client()
		store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
			if op.Kind == leasetest.OpLock {
				require.NoError(t, first.Close())
			}
			return leasetest.None
		}
		second, err := lease.Claim(t.Context(), store.Locking(), quiet(clock, options...)...)
		require.NoError(t, err)
		from, _ := second.Granted()
		require.True(t, from.Before(limit), "which the first gave back")
		require.NoError(t, second.Close())
	}
}

// Another's faster swap is no failure of the store.
func TestPinnedNumberIsTakenMeanwhile(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	five := lease.WithNode(lease.NodeNumber(5))
	store := memory.Client()
	store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
		if op.Kind == leasetest.OpSwap {
			_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, five)...)
			require.NoError(t, err)
		}
		return leasetest.None
	}
	_, err := lease.Claim(t.Context(), store, quiet(clock, five)...)
	require.ErrorAs(t, err, new(*lease.HeldError))
	require.ErrorIs(t, err, lease.ErrConflict)
	require.NotErrorAs(t, err, new(*lease.StoreError))
}
