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
	pin := lease.WithNode(lease.NodeNumber(1))
	memory := leasetest.NewMemory()
	first, err := lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, pin)...)
	require.NoError(t, err)
	_, limit := first.Granted()
	store := memory.Client()
	store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
		if op.Kind == leasetest.OpLock {
			require.NoError(t, first.Close())
		}
		return leasetest.None
	}
	second, err := lease.Claim(t.Context(), store.Locking(), quiet(clock, pin)...)
	require.NoError(t, err)
	from, _ := second.Granted()
	require.True(t, from.Before(limit), "which the first gave back")
	require.NoError(t, second.Close())
}

// A claim that fails after the lock gives that back, and overwrites nothing.
func TestLockIsGivenBackByAClaimThatFails(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	pin := lease.WithNode(lease.NodeNumber(1))
	memory := leasetest.NewMemory()
	otherLayout := func() {
		_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(3), pin)...)
		require.NoError(t, err)
	}
	damage := func() {
		_, err := memory.Client().Swap(t.Context(), lease.Cell{Node: 1}, []byte("rubbish"))
		require.NoError(t, err)
	}
	for name, tt := range map[string]struct {
		meanwhile func()
		fault     leasetest.Fault
		want      any
	}{
		"not readable": {func() {}, leasetest.Unavailable, new(*lease.StoreError)},
		"damaged":      {damage, leasetest.None, new(*lease.RecordError)},
		"of a layout":  {otherLayout, leasetest.None, new(*lease.LayoutMismatchError)},
	} {
		t.Run(name, func(t *testing.T) {
			memory = leasetest.NewMemory()
			store := memory.Client()
			var before []byte
			store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
				if op.Kind != leasetest.OpRead {
					return leasetest.None
				}
				tt.meanwhile()
				before = memory.Peek(1).Value
				return tt.fault
			}
			_, err := lease.Claim(t.Context(), store.Locking(), quiet(clock, pin)...)
			require.ErrorAs(t, err, tt.want)
			require.Equal(t, before, memory.Peek(1).Value)
			unlock, err := memory.Client().Locking().TryLock(t.Context(), 1)
			require.NoError(t, err)
			unlock()
		})
	}
}
