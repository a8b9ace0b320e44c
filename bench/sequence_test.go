package main

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// BenchmarkAtRest opens 10,000 sequences on one store, takes a number of each, and reports
// the memory of each.
func BenchmarkAtRest(b *testing.B) {
	const count = 10_000
	store := storetest.NewMemory()
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("orders-%d", i)
		require.NoError(b, sequence.Create(b.Context(), store, names[i], sequence.Definition{Start: 1}))
	}
	var bytes, goroutines []float64
	for b.Loop() {
		all := make([]*sequence.Sequence, count)
		heap, before := heapInUse(), runtime.NumGoroutine()
		for i, name := range names {
			s, err := sequence.Open(b.Context(), store, name, sequence.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(b, err)
			_, err = s.Next(b.Context())
			require.NoError(b, err)
			all[i] = s
		}
		// Segments are prefetched in the background. At rest, this ends.
		for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		goroutines = append(goroutines, float64(runtime.NumGoroutine()-before))
		bytes = append(bytes, (float64(heapInUse())-float64(heap))/count)
		for _, s := range all {
			require.NoError(b, s.Close())
		}
	}
	b.ReportMetric(slices.Max(goroutines), "goroutines")
	b.ReportMetric(slices.Max(bytes), "B/sequence")
	require.Zero(b, slices.Max(goroutines), "goroutines at rest")
	require.LessOrEqual(b, slices.Max(bytes), 2048.0, "bytes of a sequence at rest")
}

// heapInUse is the memory of objects that can be reached.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one leaves the contents of pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
