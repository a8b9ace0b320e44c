package sequence_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// The bugs that the simulation of a fleet has found, one by one.

// TestMarkIsRemembered: a process that has read a mark has read more than a store has that
// went back once more, to a time before the mark.
func TestMarkIsRemembered(t *testing.T) {
	store := storetest.NewMemory()
	d := sequence.Definition{Start: 1, Mode: sequence.Ordered}
	a := open(t, store, "orders", d, sequence.WithPolling())
	b := open(t, store, "orders", d, sequence.WithPolling())
	for range 5 {
		next(t, b)
	}
	restore := store.Snapshot()
	next(t, a)
	restore()
	_, err := a.Next(t.Context()) // it marks the cell
	require.ErrorIs(t, err, stores.ErrWentBack)
	_, err = b.Next(t.Context()) // it reads the mark
	require.ErrorIs(t, err, stores.ErrWentBack)
	restore()
	require.ErrorIs(t, b.Poll(t.Context()), stores.ErrWentBack)
	info, err := sequence.Inspect(t.Context(), store, "orders")
	require.NoError(t, err)
	assert.True(t, info.WentBack, "b marks the cell")
}

// TestMarkAfterAnUnknownOutcome: a process that finds proof when it reads its last write back
// stops at once.
func TestMarkAfterAnUnknownOutcome(t *testing.T) {
	memory := storetest.NewMemory()
	d := sequence.Definition{Start: 1, MinStep: 10, MaxStep: 10}
	restore := memory.Snapshot() // of the empty store
	client := memory.Client()
	s := open(t, client, "orders", d, sequence.WithPolling())
	next(t, s)
	client.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpSwap {
			client.Before = nil
			restore()
			return storetest.Unavailable
		}
		return storetest.None
	}
	require.ErrorIs(t, s.Poll(t.Context()), stores.ErrWentBack, "and not the failure of the write")
	assert.Zero(t, s.Stats().Reserved)
}

// TestRevokedWhileClosing: the numbers that a process takes back while Close waits for its
// turn are lost, and not issued.
func TestRevokedWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		client := memory.Client()
		s := open(t, client, "orders", sequence.Definition{Start: 1, MinStep: 10}, sequence.WithPolling())
		next(t, s)
		closed := make(chan error, 1)
		reads := 0
		client.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
			switch op.Kind {
			case storetest.OpSwap:
				_, err := sequence.Delete(t.Context(), memory.Client(), "orders")
				assert.NoError(t, err)
			case storetest.OpRead: // of the refill, after the conflict
				if reads++; reads == 1 {
					go func() { closed <- s.Close() }()
					synctest.Wait()
				}
			}
			return storetest.None
		}
		require.ErrorIs(t, s.Poll(t.Context()), sequence.ErrDeleted)
		require.NoError(t, <-closed)
		stats := s.Stats()
		assert.EqualValues(t, 1, stats.Issued)
		assert.EqualValues(t, 9, stats.Lost)
	})
}
