package lease_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
)

// stale is a store whose lists are out of date, as a cluster's may be.
type stale struct {
	*leasetest.Memory
	list []lease.Cell
}

func (s stale) List(context.Context) ([]lease.Cell, error) { return slices.Clone(s.list), nil }

var five = lease.WithNode(lease.NodeNumber(5))

// Who takes its own number up again goes by the cell as it is, not by an old list.
func TestPinnedClaimOnAStaleList(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	before, err := memory.List(t.Context())
	require.NoError(t, err)
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, five)...)
	require.NoError(t, err)
	claimed, err := memory.List(t.Context())
	require.NoError(t, err)
	clock.Advance(lease.DefaultWindow / 3)
	k.Poll(t.Context())
	_, limit := k.Granted()
	for _, list := range [][]lease.Cell{before, claimed} {
		next, err := lease.Claim(t.Context(), stale{memory.Client(), list}, quiet(clock, five)...)
		require.NoError(t, err)
		from, until := next.Granted()
		require.Equal(t, limit, from)
		limit = until
		clock.Advance(time.Second)
	}
}

// So it does at the end of time, which a number that was given back has not come to.
func TestPinnedClaimOnAStaleListAtTheEnd(t *testing.T) {
	clock := clocktest.NewVirtual(snowflake.Default().End().Add(-lease.DefaultWindow / 2))
	memory := leasetest.NewMemory()
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, five)...)
	require.NoError(t, err)
	list, err := memory.List(t.Context())
	require.NoError(t, err)
	_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, five)...)
	require.ErrorAs(t, err, new(*lease.EndOfTimeError))
	require.NoError(t, k.Close())
	clock.Advance(time.Second)
	_, err = lease.Claim(t.Context(), stale{memory.Client(), list}, quiet(clock, five)...)
	require.NoError(t, err)
}

// A write of unknown outcome that has landed is ours, and what it granted, though no list
// shows it yet.
func TestPinnedClaimThatLanded(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	clock.AutoAdvance(true)
	memory := leasetest.NewMemory()
	store := memory.Client()
	swaps, reads := 0, 0
	store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
		switch op.Kind {
		case leasetest.OpSwap:
			swaps++
			return leasetest.ReplyLost
		case leasetest.OpRead:
			if reads++; reads == 2 { // of what has become of it
				return leasetest.Unavailable
			}
		}
		return leasetest.None
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	k, err := lease.Claim(ctx, stale{store, nil}, quiet(clock, five)...)
	require.NoError(t, err)
	require.Equal(t, 1, swaps)
	from, until := k.Granted()
	require.True(t, from.Equal(noon), from)
	require.True(t, until.Equal(noon.Add(lease.DefaultWindow)), until)
}
