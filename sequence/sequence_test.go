package sequence_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func open(t testing.TB, store stores.Store, name string, d sequence.Definition, options ...sequence.Option) *sequence.Sequence {
	t.Helper()
	s, err := sequence.Open(t.Context(), store, name, append([]sequence.Option{sequence.WithDefinition(d)}, options...)...)
	require.NoError(t, err)
	return s
}

// take takes n numbers one by one.
func take(t testing.TB, s *sequence.Sequence, n int) (numbers []int64) {
	t.Helper()
	for range n {
		number, err := s.Next(t.Context())
		require.NoError(t, err)
		numbers = append(numbers, number)
	}
	return numbers
}

func TestCleanRestartsLeaveNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		want := int64(1)
		for range 100 {
			s := open(t, store, "orders", sequence.Definition{Start: 1})
			for _, n := range take(t, s, 37) {
				require.Equal(t, want, n)
				want++
			}
			require.NoError(t, s.Close())
			require.Zero(t, s.Stats().Lost)
			require.Equal(t, uint64(37), s.Stats().Issued)
		}
	})
}

func TestOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		s := open(t, store, "orders", sequence.Definition{Start: 1, Mode: sequence.Ordered})
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				for range 10 {
					n, err := s.Next(context.Background())
					if !assert.NoError(t, err) {
						return
					}
					mu.Lock()
					assert.False(t, seen[n])
					seen[n] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		assert.Len(t, seen, 1000)
		assert.True(t, seen[1000])
		t.Log(s.Stats())
		require.NoError(t, s.Close())
	})
}
