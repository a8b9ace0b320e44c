package sequence

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Numbers that were given back are not granted: they are not the last ones, and the maximum
// can be set below them.
func TestLastAfterGivingBack(t *testing.T) {
	store := storetest.NewMemory()
	s, err := Open(t.Context(), store, "orders", WithDefinition(Definition{Start: 1, MinStep: 100}), WithPolling())
	require.NoError(t, err)
	n, err := s.Next(t.Context())
	require.NoError(t, err)
	info, err := Inspect(t.Context(), store, "orders")
	require.NoError(t, err)
	assert.Equal(t, int64(100), info.Last, "all of them are reserved")
	require.NoError(t, s.Close())

	info, err = Inspect(t.Context(), store, "orders")
	require.NoError(t, err)
	assert.Equal(t, []int64{n, n + 1}, []int64{info.Last, info.Next})
	_, after, err := Set(t.Context(), store, "orders", Change{Max: 10})
	require.NoError(t, err)
	assert.Equal(t, int64(9), after.Left)
	_, _, err = Set(t.Context(), store, "orders", Change{Max: 10, Next: 1})
	assert.ErrorIs(t, err, ErrLowered)
}

// The error for a damaged cell tells which one it is.
func TestDamagedCellIsNamed(t *testing.T) {
	store := storetest.NewMemory()
	require.NoError(t, Create(t.Context(), store, "orders", Definition{Start: 1}))
	_, err := store.Swap(t.Context(), "seq/bad", 0, []byte("rubbish"))
	require.NoError(t, err)
	for name, err := range map[string]error{
		"Inspect": func() error { _, err := Inspect(t.Context(), store, "bad"); return err }(),
		"Create":  Create(t.Context(), store, "bad", Definition{}),
		"Open":    func() error { _, err := Open(t.Context(), store, "bad"); return err }(),
	} {
		var damaged *stores.DamagedError
		require.ErrorAs(t, err, &damaged, name)
		assert.Equal(t, "seq/bad", damaged.Key, name)
		assert.ErrorContains(t, err, `cell "seq/bad" is damaged: it begins with "rubbish"`, name)
	}
	infos, err := List(t.Context(), store)
	assert.Len(t, infos, 1)
	assert.ErrorContains(t, err, `cell "seq/bad" is damaged`)
}

// An error of CloseContext that could not begin says that the store hangs, and not that the
// sequence is closed.
func TestCloseWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		var hangs atomic.Bool
		store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
			if hangs.Load() {
				<-ctx.Done()
			}
			return storetest.None
		}
		s, err := Open(t.Context(), store, "orders", WithDefinition(Definition{Start: 1}))
		require.NoError(t, err)
		hangs.Store(true)
		waiting, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = s.Next(waiting)
		require.Error(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err = s.CloseContext(ctx)
		assert.ErrorIs(t, err, ErrNotGivenBack)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, `sequence "orders": the rest of the segment was not given back: the store does not answer: context deadline exceeded`)
		hangs.Store(false)
		assert.NoError(t, s.Close(), "a later one tries again")
	})
}
