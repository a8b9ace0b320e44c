package oteltickflake_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// nowhere is an exporter that counts collections.
type nowhere struct {
	sdkmetric.Exporter
	metrics int // of the last
	times   int
}

func (*nowhere) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(k)
}

func (*nowhere) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (n *nowhere) Export(_ context.Context, all *metricdata.ResourceMetrics) error {
	n.times, n.metrics = n.times+1, 0
	for _, s := range all.ScopeMetrics {
		n.metrics += len(s.Metrics)
	}
	return nil
}

func (*nowhere) Shutdown(context.Context) error { return nil }

// collected returns a provider that collects 100 times a second, which is far more
// often than anybody would.
func collected(b *testing.B) *sdkmetric.MeterProvider {
	exporter := &nowhere{}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(
		sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(10*time.Millisecond))))
	b.Cleanup(func() {
		require.NoError(b, provider.Shutdown(context.Background())) // which waits for the reader
		require.Positive(b, exporter.times)
		require.Positive(b, exporter.metrics)
	})
	return provider
}

// leased returns a generator under a lease, with everything reported to provider, or
// nothing for nil. The layout's sequence is one that no run exhausts.
func leased(b *testing.B, provider *sdkmetric.MeterProvider) *generator.Generator {
	layout := snowflake.Default()
	layout.NodeBits, layout.SequenceBits = 0, 22
	store, meters := stores.Store(storetest.NewMemory()), oteltickflake.WithMeterProvider(provider)
	if provider != nil {
		store = oteltickflake.Wrap(store, meters)
	}
	keeper, err := lease.Claim(b.Context(), store, lease.WithLayout(layout), lease.WithWindow(time.Second), lease.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(b, err)
	gen, err := generator.New(generator.WithLease(keeper))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, gen.Close()) })
	if provider != nil {
		_, err = oteltickflake.Observe(gen, meters)
		require.NoError(b, err)
	}
	return gen
}

// BenchmarkObserved fails when an ID costs over 3% more with all metrics on, and a
// reader collecting them, than without, in the same run.
func BenchmarkObserved(b *testing.B) {
	for _, goroutines := range []int{1, 2, 8} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			with, without := leased(b, collected(b)), leased(b, nil)
			got := ratio(b, issue(b, with.Next, goroutines), issue(b, without.Next, goroutines))
			if got > 1.03 && b.N >= enoughRounds {
				b.Errorf("%.3f × without metrics, want at most 1.03", got)
			}
		})
	}
}

// reserving returns the Next of a sequence, reported to provider, or to nothing for nil. Its
// steps are so large that no run waits for the store.
func reserving(b *testing.B, provider *sdkmetric.MeterProvider) func() (int64, error) {
	ctx := b.Context()
	seq, err := sequence.Open(ctx, storetest.NewMemory(), "orders",
		sequence.WithDefinition(sequence.Definition{MinStep: sequence.MaxStep, MaxStep: sequence.MaxStep}))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, seq.Close()) })
	if provider != nil {
		_, err = oteltickflake.ObserveSequence(seq, oteltickflake.WithMeterProvider(provider))
		require.NoError(b, err)
	}
	return func() (int64, error) { return seq.Next(ctx) }
}

// BenchmarkObservedSequence is BenchmarkObserved for the numbers of a sequence.
func BenchmarkObservedSequence(b *testing.B) {
	for _, goroutines := range []int{1, 2, 8} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			with, without := reserving(b, collected(b)), reserving(b, nil)
			got := ratio(b, issue(b, with, goroutines), issue(b, without, goroutines))
			if got > 1.03 && b.N >= enoughRounds {
				b.Errorf("%.3f × without metrics, want at most 1.03", got)
			}
		})
	}
}

// BenchmarkCounted tells what [oteltickflake.CountIDs] costs: the figure is how many
// times as long an ID takes.
//
//	go test ./otel -run '^$' -bench Counted -benchtime 2s
func BenchmarkCounted(b *testing.B) {
	for _, goroutines := range []int{1, 2, 8} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			provider := collected(b)
			counted, err := oteltickflake.CountIDs(leased(b, nil), oteltickflake.WithMeterProvider(provider))
			require.NoError(b, err)
			ratio(b, issue(b, counted.Next, goroutines), issue(b, leased(b, nil).Next, goroutines))
		})
	}
}

// perRound is how many IDs are issued between one change of sides and the next.
const perRound = 1 << 15

// enoughRounds is how many rounds make a result that can fail.
const enoughRounds = 50

// issue has goroutines issue perRound IDs or numbers between them.
func issue[T any](b *testing.B, next func() (T, error), goroutines int) func() {
	return func() {
		var done sync.WaitGroup
		for range goroutines {
			done.Go(func() {
				for range perRound / goroutines {
					if _, err := next(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		done.Wait()
	}
}

// ratio returns how the time that subject takes stands to that of base. They take turns,
// so that what disturbs meets both; as that can only slow down, the fast quarter of
// the rounds counts.
func ratio(b *testing.B, subject, base func()) float64 {
	sides := []func(){subject, base}
	var times [2][]time.Duration
	for _, run := range sides {
		run() // warm up
	}
	for round := 0; b.Loop(); round++ {
		for i := range sides {
			i = (i + round) % 2 // neither is always first
			begin := time.Now()
			sides[i]()
			times[i] = append(times[i], time.Since(begin))
		}
	}
	var quarter [2]float64
	for i, t := range times {
		slices.Sort(t)
		quarter[i] = float64(t[len(t)/4])
	}
	b.ReportMetric(quarter[0]/quarter[1], "×without")
	b.ReportMetric(quarter[1]/perRound, "ns/ID-without")
	b.ReportMetric(0, "ns/op") // that of a round says nothing
	return quarter[0] / quarter[1]
}
