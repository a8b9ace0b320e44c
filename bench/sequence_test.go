package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// BenchmarkSequence holds counted numbers in segmented mode to their speed. Take 100 rounds
// or more: -benchtime 200x.
func BenchmarkSequence(b *testing.B) {
	b.Run("next", func(b *testing.B) {
		number := loop(b, cases.Number(), 1)
		require.Zero(b, testing.AllocsPerRun(1000, func() { require.NoError(b, number(1)) }), "allocations")
		atMost(b, 1.5, "×add", ratio(b, number, loop(b, cases.AddFloor(), 1)))
	})
	for _, goroutines := range []int{2, 4, 8, 16, 32, 64} {
		b.Run(fmt.Sprintf("shared-%d", goroutines), func(b *testing.B) {
			atMost(b, 1.3, "×swap-loop", ratio(b, loop(b, cases.Number(), goroutines), loop(b, cases.SwapFloor(), goroutines)))
		})
	}
	b.Run("nextN-1000", func(b *testing.B) {
		bulk := interleave(b, measure.Work{Do: loop(b, cases.Numbers(1000), 1), Unit: 1000})[0]
		atMost(b, 0.1, "ns/number", median(bulk))
	})
}

// silent keeps the log of sequences out of the benchmark's output.
func silent() sequence.Option { return sequence.WithLogger(slog.New(slog.DiscardHandler)) }

// openSequence opens a sequence that counts from 1, until the benchmark is over.
func openSequence(tb testing.TB, store stores.Store, name string, mode sequence.Mode) *sequence.Sequence {
	s, err := sequence.Open(tb.Context(), store, name, silent(), sequence.WithDefinition(sequence.Definition{Mode: mode, Start: 1}))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

// BenchmarkStarved calls at a rate that doubles every second, from one call per second to
// 1,048,576. It takes 21 seconds. The calls are due at their time, whether or not an earlier
// one waits: while a call waits for the store, all that fall due count as starved.
func BenchmarkStarved(b *testing.B) {
	store := storetest.NewMemory()
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpSwap {
			time.Sleep(5 * time.Millisecond)
		}
		return storetest.None
	}
	s := openSequence(b, store, "orders", sequence.Segmented)
	var calls, starved uint64
	for b.Loop() {
		began := time.Now()
		for second := range 21 {
			rate := float64(uint64(1) << second)
			from := began.Add(time.Duration(second) * time.Second)
			for done := 0.0; done < rate; {
				now := time.Now()
				due := min(math.Floor(now.Sub(from).Seconds()*rate)+1, rate) // the first is due at once
				before := s.Stats().Starved
				for ; done < due; done++ {
					_, err := s.Next(b.Context())
					require.NoError(b, err)
					calls++
				}
				if waited := s.Stats().Starved - before; waited > 0 {
					starved += max(waited, uint64(time.Since(now).Seconds()*rate))
				}
				time.Sleep(time.Until(from.Add(time.Duration(done / rate * float64(time.Second)))))
			}
			time.Sleep(time.Until(from.Add(time.Second)))
		}
	}
	b.ReportMetric(float64(calls)/float64(b.N), "calls/op")
	b.ReportMetric(float64(s.Stats().Refills)/float64(b.N), "refills/op")
	atMost(b, 1, "starved-per-million", 1e6*float64(starved)/float64(calls))
}

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
			s, err := sequence.Open(b.Context(), store, name, silent())
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
	atMost(b, 2048, "B/sequence", median(bytes))
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
