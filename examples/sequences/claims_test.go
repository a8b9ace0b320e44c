package sequences_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// orders opens a sequence with segments of 10 numbers. It has no goroutine of its own.
func orders(t *testing.T, store stores.Store, clock monoclock.Interface) *sequence.Sequence {
	t.Helper()
	s, err := sequence.Open(t.Context(), store, "orders", sequence.WithPolling(), sequence.WithClock(clock),
		sequence.WithDefinition(sequence.Definition{Start: 1, MinStep: 10, MaxStep: 10}))
	require.NoError(t, err)
	return s
}

// take takes n numbers, and returns them.
func take(t *testing.T, s *sequence.Sequence, n int) (numbers []int64) {
	t.Helper()
	for range n {
		number, err := s.Next(t.Context())
		require.NoError(t, err)
		numbers = append(numbers, number)
	}
	return numbers
}

// The claims of docs/sequences.md on a clean stop.
func TestCleanStop(t *testing.T) {
	next := func(store stores.Store) int64 {
		info, err := sequence.Inspect(context.Background(), store, "orders")
		require.NoError(t, err)
		return info.Next
	}
	// Two processes: the first is granted 1 to 10, and the other 11 to 20.
	start := func() (*storetest.Memory, []*sequence.Sequence) {
		store, clock := storetest.NewMemory(), clocktest.NewVirtual(time.Now())
		processes := []*sequence.Sequence{orders(t, store, clock), orders(t, store, clock)}
		for i, want := range [][]int64{{1, 2}, {11, 12}} {
			assert.Equal(t, want, take(t, processes[i], 2))
		}
		return store, processes
	}
	store, processes := start()
	require.NoError(t, processes[0].Close())
	assert.EqualValues(t, 21, next(store), "numbers were granted above its own")
	require.NoError(t, processes[1].Close())
	assert.EqualValues(t, 13, next(store))

	store, processes = start()
	require.NoError(t, processes[1].Close())
	require.NoError(t, processes[0].Close())
	assert.EqualValues(t, 13, next(store), "11 and 12 are issued: 3 to 10 cannot be given back")

	// The first process alone goes on, in all segments: no gap.
	store = storetest.NewMemory()
	for range 3 {
		process := orders(t, store, clocktest.NewVirtual(time.Now()))
		want := next(store)
		assert.Equal(t, []int64{want}, take(t, process, 1))
		require.NoError(t, process.Close())
		assert.Equal(t, want+1, next(store))
	}
}

// The claims of docs/sequences.md on a store that went back.
func TestStoreThatWentBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // no call needs any time
	defer cancel()
	store, clock := storetest.NewMemory(), clocktest.NewVirtual(time.Now())
	knows := orders(t, store, clock)
	issued := take(t, knows, 35)
	restore := store.Snapshot() // the next number is 41
	copied, err := sequence.Inspect(ctx, store, "orders")
	require.NoError(t, err)
	issued = append(issued, take(t, knows, 200)...)
	lost, err := sequence.Inspect(ctx, store, "orders")
	require.NoError(t, err)
	restore()

	// A new process repeats numbers, at most as many as lie between the copy's next number
	// and the lost one.
	fresh := orders(t, store, clock)
	repeats := 0
	seen := map[int64]bool{}
	for _, number := range issued {
		seen[number] = true
	}
	for _, number := range take(t, fresh, 25) {
		if seen[number] {
			repeats++
		}
	}
	assert.Equal(t, 25, repeats)
	assert.LessOrEqual(t, int64(repeats), lost.Next-copied.Next)

	// The process with proof marks the sequence, and the other one then finds the mark.
	refill := func(s *sequence.Sequence) (err error) {
		for range 1000 {
			if _, err = s.Next(ctx); err != nil {
				break
			}
		}
		return err
	}
	require.ErrorIs(t, refill(knows), stores.ErrWentBack)
	require.ErrorIs(t, refill(fresh), stores.ErrWentBack)
	marked, err := sequence.Inspect(ctx, store, "orders")
	require.NoError(t, err)
	assert.True(t, marked.WentBack)
	assert.Equal(t, lost.Next-1, marked.Last)

	// Only a higher next number ends that, and both continue above it.
	_, _, err = sequence.Set(ctx, store, "orders", sequence.Change{Next: marked.Last})
	require.ErrorIs(t, err, sequence.ErrLowered)
	_, _, err = sequence.Set(ctx, store, "orders", sequence.Change{Next: marked.Last + 1})
	require.NoError(t, err)
	clock.Advance(time.Second) // a call that failed is not repeated at once
	for _, s := range []*sequence.Sequence{knows, fresh} {
		for _, number := range take(t, s, 30) {
			assert.Greater(t, number, marked.Last)
			assert.False(t, seen[number], "%d", number)
			seen[number] = true
		}
	}
}
