package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// unansweredWrites is a store that reads, and answers no write of a node number until it is back.
type unansweredWrites struct {
	stores.Store
	back  bool
	tried map[string]int // writes by key
}

func (s *unansweredWrites) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if s.back || !strings.HasPrefix(key, "node/") {
		return s.Store.Swap(ctx, key, version, value)
	}
	s.tried[key]++
	return 0, errors.New("no answer")
}

// A claim writes a bounded number of cells while the store answers no write, as on a disk that
// hangs: the server may keep a connection for each of them.
func TestClaimsWithoutAnAnswerTryFewNumbers(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	store := &unansweredWrites{Store: storetest.NewMemory(), back: true, tried: map[string]int{}}
	k := claim(t, store, clock)
	store.back = false
	require.ErrorIs(t, k.Restored(t.Context()), lease.ErrStore) // it claims again
	for range 200 {
		clock.Advance(time.Minute)
		k.Poll(t.Context())
	}
	total := 0
	for _, n := range store.tried {
		total += n
	}
	require.Greater(t, total, 100, "it tries again")
	require.LessOrEqual(t, len(store.tried), 10)
	store.back = true
	clock.Advance(time.Minute)
	k.Poll(t.Context())
	require.NoError(t, k.Err())
	require.Equal(t, uint64(2), k.Stats().Claims)
}
