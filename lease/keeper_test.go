package lease_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

var noon = time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)

// nodeOf is the node number of a key.
func nodeOf(key string) int64 {
	node, ok := protocol.NodeOf(key)
	if !ok {
		panic(key)
	}
	return node
}

// isSwap reports whether an operation writes the cell of a node number.
func isSwap(op storetest.Op) bool {
	return op.Kind == storetest.OpSwap && op.Key != protocol.LayoutKey
}

// claim claims on a virtual clock, polled by the test.
func claim(t *testing.T, store stores.Store, clock *clocktest.Virtual, options ...lease.Option) *lease.Keeper {
	t.Helper()
	k, err := lease.Claim(t.Context(), store, append([]lease.Option{lease.WithClock(clock), lease.WithPolling(), lease.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, k.Close()) })
	return k
}

func TestRestartAfterStepBack(t *testing.T) {
	for _, back := range []time.Duration{time.Second, time.Hour, 365 * 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			store := storetest.NewMemory()
			clock := clocktest.NewVirtual(noon)
			seen := map[snowflake.ID]bool{}
			for range 3 {
				k := claim(t, store, clock, lease.WithNode(lease.NodeNumber(7)))
				gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(3*back)))
				require.NoError(t, err)
				for range 10_000 {
					id, err := gen.Next()
					require.NoError(t, err)
					require.False(t, seen[id])
					seen[id] = true
				}
				require.NoError(t, gen.Close())
				clock.Step(-back)
			}
		})
	}
}

func TestKeeperExtendsByItself(t *testing.T) {
	store := storetest.NewMemory()
	k, err := lease.Claim(t.Context(), store, lease.WithWindow(60*time.Millisecond))
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for k.Stats().Extensions < 5 {
		_, err := gen.NextContext(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, gen.Close())
}

func TestStoreAway(t *testing.T) {
	store := storetest.NewMemory()
	clock := clocktest.NewVirtual(noon)
	k := claim(t, store, clock)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	store.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable }
	for range 30 {
		clock.Advance(time.Second)
		k.Poll(t.Context())
		_, limit := k.Granted()
		_, err := gen.Next()
		if clock.Wall().Before(limit) {
			require.NoError(t, err)
			continue
		}
		var none *generator.GrantError
		require.ErrorAs(t, err, &none)
		require.ErrorIs(t, err, generator.ErrNotGranted)
		require.ErrorIs(t, err, storetest.ErrFault)
	}
	store.Before = nil
	clock.Advance(protocol.Urgent)
	k.Poll(t.Context())
	_, err = gen.Next()
	require.NoError(t, err)
}
