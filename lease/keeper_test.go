package lease_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

var noon = time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)

// nodeOf is the node number of a key.
func nodeOf(key string) int64 {
	node, ok := cell.NodeOf(key)
	if !ok {
		panic(key)
	}
	return node
}

// isSwap reports whether an operation writes the cell of a node number.
func isSwap(op storetest.Op) bool {
	return op.Kind == storetest.OpSwap && op.Key != cell.LayoutKey
}

// claim claims on a virtual clock, polled by the test.
func claim(t *testing.T, store stores.Store, clock *clocktest.Virtual, options ...lease.Option) *lease.Keeper {
	t.Helper()
	k, err := lease.Claim(t.Context(), store, append([]lease.Option{lease.WithClock(clock), lease.WithPolling(), lease.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, k.Close()) })
	return k
}
