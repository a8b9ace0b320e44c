package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// stale is a store whose lists are out of date, as a cluster's may be.
type stale struct {
	*storetest.Memory
	list []stores.Cell
}

func (s stale) List(_ context.Context, from, to string, _ int) (cells []stores.Cell, err error) {
	for _, cell := range s.list {
		if from <= cell.Key && cell.Key < to {
			cells = append(cells, cell)
		}
	}
	return cells, nil
}

var five = lease.WithNode(lease.NodeNumber(5))

// Who takes its own number up again goes by the cell as it is, not by an old list.
func TestPinnedClaimOnAStaleList(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	before, err := memory.List(t.Context(), "", "~", 5000)
	require.NoError(t, err)
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, five)...)
	require.NoError(t, err)
	claimed, err := memory.List(t.Context(), "", "~", 5000)
	require.NoError(t, err)
	clock.Advance(lease.DefaultWindow / 3)
	k.Poll(t.Context())
	_, limit := k.Granted()
	for _, list := range [][]stores.Cell{before, claimed} {
		next, err := lease.Claim(t.Context(), stale{memory.Client(), list}, quiet(clock, five)...)
		require.NoError(t, err)
		from, until := next.Granted()
		require.Equal(t, limit, from)
		limit = until
		clock.Advance(time.Second)
	}
}

// A write of unknown outcome that has landed is ours, and what it granted, though no list
// shows it yet.
func TestPinnedClaimThatLanded(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	clock.AutoAdvance(true)
	memory := storetest.NewMemory()
	store := memory.Client()
	swaps, reads := 0, 0
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		switch {
		case op.Key == cell.LayoutKey:
		case op.Kind == storetest.OpSwap:
			swaps++
			return storetest.ReplyLost
		case op.Kind == storetest.OpRead:
			if reads++; reads == 2 { // of what has become of it
				return storetest.Unavailable
			}
		}
		return storetest.None
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
