package oteltickflake_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tickflake/tickflake/lease"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/stores/storetest"
)

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
