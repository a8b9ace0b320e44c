package sequence_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

const (
	segmented = sequence.Segmented
	ordered   = sequence.Ordered
)

var bothModes = []sequence.Mode{segmented, ordered}

var quiet = sequence.WithLogger(slog.New(slog.DiscardHandler))

// open opens the sequence "orders".
func open(t testing.TB, store stores.Store, d sequence.Definition, options ...sequence.Option) *sequence.Sequence {
	t.Helper()
	s, err := sequence.Open(t.Context(), store, "orders", append([]sequence.Option{sequence.WithDefinition(d), quiet}, options...)...)
	require.NoError(t, err)
	return s
}

func next(t testing.TB, s *sequence.Sequence) int64 {
	t.Helper()
	return nextN(t, s, 1)
}

func nextN(t testing.TB, s *sequence.Sequence, n int64) int64 {
	t.Helper()
	first, err := s.NextN(t.Context(), n)
	require.NoError(t, err)
	return first
}

// set changes "orders".
func set(t testing.TB, store stores.Store, c sequence.Change) error {
	_, _, err := sequence.Set(t.Context(), store, "orders", c)
	return err
}

// inspect returns the state of "orders".
func inspect(t testing.TB, store stores.Store) sequence.Info {
	return must(sequence.Inspect(t.Context(), store, "orders"))
}

// remove deletes "orders".
func remove(t testing.TB, store stores.Store) error {
	return second(sequence.Delete(t.Context(), store, "orders"))
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func second[T any](_ T, err error) error { return err }

// slow returns a function that makes clients of one store whose operations take d.
func slow(d time.Duration) func() *storetest.Memory {
	store := storetest.NewMemory()
	return func() *storetest.Memory {
		client := store.Client()
		client.Before = func(context.Context, storetest.Op) storetest.Fault {
			time.Sleep(d)
			return storetest.None
		}
		return client
	}
}

// faulty returns a store, and a function that sets the fault of its operations. With hangs they end with
// their contexts only.
func faulty() (*storetest.Memory, func(storetest.Fault)) {
	store := storetest.NewMemory()
	var fault atomic.Uint32
	store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
		f := storetest.Fault(fault.Load())
		if f == hangs {
			<-ctx.Done()
			return storetest.None
		}
		return f
	}
	return store, func(f storetest.Fault) { fault.Store(uint32(f)) }
}

const hangs = storetest.Fault(100)
