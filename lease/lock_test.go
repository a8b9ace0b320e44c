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
