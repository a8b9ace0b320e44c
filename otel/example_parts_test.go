package oteltickflake_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

func ExampleObserve() {
	// Your service has set this up, and exports it; without the option, the global one.
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	gen, err := generator.New(generator.WithNode(7))
	if err != nil {
		log.Fatal(err)
	}
	metrics, err := oteltickflake.Observe(gen, oteltickflake.WithMeterProvider(meters), oteltickflake.WithNamespace("orders"))
	if err != nil {
		log.Print(err) // IDs are issued even so
	} else {
		defer metrics.Unregister()
	}

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Unordered output:
	// tickflake.generator.waits
	// tickflake.generator.wait_time
	// tickflake.generator.borrowed_ticks
	// tickflake.generator.rejections
	// tickflake.generator.lead
	// tickflake.generator.max_lead
	// tickflake.generator.granted
	// tickflake.generator.drift
	// tickflake.generator.node
}

func ExampleObserveSequence() {
	// Your service has set this up, and exports it; without the option, the global one.
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	ctx, store := context.Background(), storetest.NewMemory() // yours is one that processes share
	orders, err := sequence.Open(ctx, store, "orders", sequence.WithDefinition(sequence.Definition{Start: 1}))
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	metrics, err := oteltickflake.ObserveSequence(orders, oteltickflake.WithMeterProvider(meters), oteltickflake.WithNamespace("shop"))
	if err != nil {
		log.Print(err) // numbers are issued even so
	} else {
		defer metrics.Unregister()
	}

	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Unordered output:
	// tickflake.sequence.issued
	// tickflake.sequence.refills
	// tickflake.sequence.refill_time
	// tickflake.sequence.starved
	// tickflake.sequence.lost
	// tickflake.sequence.conflicts
	// tickflake.sequence.failures
	// tickflake.sequence.store_went_back
	// tickflake.sequence.rate
	// tickflake.sequence.step
	// tickflake.sequence.reserved
	// tickflake.sequence.gap_bound
	// tickflake.sequence.last
	// tickflake.sequence.left
	// tickflake.sequence.utilization
}

func ExampleWrap() {
	// Your service has set this up, and exports it; without the option, the global one.
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))

	store := storetest.NewMemory() // yours is one that processes share
	reported := oteltickflake.Wrap(store, oteltickflake.WithTracerProvider(tracers), oteltickflake.WithNamespace("orders"))
	keeper, err := lease.Claim(context.Background(), reported, lease.WithNode(lease.NodeNumber(7)), lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	if err := keeper.Close(); err != nil {
		log.Fatal(err)
	}

	for _, span := range spans.Ended() {
		fmt.Print(span.Name(), ":")
		for _, a := range span.Attributes() {
			fmt.Printf(" %s=%s", a.Key, a.Value.String())
		}
		fmt.Println()
	}
	// Output:
	// tickflake.store read: tickflake.namespace=orders tickflake.store.key=layout tickflake.store.operation=read tickflake.store.outcome=ok
	// tickflake.store swap: tickflake.namespace=orders tickflake.store.key=layout tickflake.store.operation=swap tickflake.store.outcome=ok
	// tickflake.store read: tickflake.namespace=orders tickflake.store.key=node/0000007 tickflake.store.operation=read tickflake.store.outcome=ok
	// tickflake.store swap: tickflake.namespace=orders tickflake.store.key=node/0000007 tickflake.store.operation=swap tickflake.store.outcome=ok
	// tickflake.store swap: tickflake.namespace=orders tickflake.store.key=node/0000007 tickflake.store.operation=swap tickflake.store.outcome=ok
}
