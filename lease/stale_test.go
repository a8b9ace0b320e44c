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
)

// stale is a store whose lists are out of date, as a cluster's may be.
type stale struct {
	*leasetest.Memory
	list []lease.Cell
}

func (s stale) List(context.Context) ([]lease.Cell, error) { return slices.Clone(s.list), nil }

// Who takes its own number up again goes by the cell as it is, not by an old list.
func TestPinnedClaimOnAStaleList(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	five := lease.WithNode(lease.NodeNumber(5))
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
