package lease_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// sentTwice is a store behind a driver or proxy that sends one write again after it was carried
// out, and tells only of the second time: a conflict with itself.
type sentTwice struct {
	stores.Store
	between func() // the two, of one write
}

func (s *sentTwice) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	next, err := s.Store.Swap(ctx, key, version, value)
	if err == nil && s.between != nil {
		s.between()
		s.between = nil
		return s.Store.Swap(ctx, key, version, value)
	}
	return next, err
}

// An extension that was sent twice has landed: its number is not lost.
func TestExtensionSentTwice(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	store := &sentTwice{Store: storetest.NewMemory()}
	k := claim(t, store, clock, five)
	store.between = func() {}
	clock.Advance(lease.DefaultWindow / 2)
	k.Poll(t.Context())
	require.NoError(t, k.Err())
	require.Zero(t, k.Stats().Conflicts)
	_, limit := k.Granted()
	require.Equal(t, clock.Now().Add(lease.DefaultWindow), limit)
}
