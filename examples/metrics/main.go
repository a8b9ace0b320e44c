// Command metrics issues IDs and numbers at a constant rate and serves its metrics to
// Prometheus. The README of oteltickflake shows how to put them on a dashboard.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/oteltickflake"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

const (
	every = 50 * time.Millisecond // a batch of IDs, and the number of an order
	batch = 50
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9464", "where to serve /metrics")
	traces := flag.Bool("traces", false, "print the spans of the store's operations")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *traces); err != nil {
		log.Fatal("metrics: ", err)
	}
}

// run serves and issues until ctx ends.
func run(ctx context.Context, listen string, traces bool) (err error) {
	dir, err := os.MkdirTemp("", "tickflake-example") // a service has a directory or a server that stays
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// end calls f with the time that people wait after Ctrl-C, and adds its error to err.
	end := func(f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err = errors.Join(err, f(ctx))
	}

	// The usual setup of OpenTelemetry for Prometheus.
	exporter, err := promexporter.New()
	if err != nil {
		return err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	defer end(meters.Shutdown)
	otel.SetMeterProvider(meters) // the default of oteltickflake
	if traces {
		printer, err := stdouttrace.New(stdouttrace.WithPrettyPrint())
		if err != nil {
			return err
		}
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(printer))
		defer end(tracers.Shutdown)
		otel.SetTracerProvider(tracers)
	}

	fleet := oteltickflake.WithNamespace("example")
	store, err := stores.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer end(func(context.Context) error { return store.Close() })
	store = oteltickflake.Wrap(store, fleet)
	keeper, err := lease.Claim(ctx, store)
	if err != nil {
		return err
	}
	defer end(keeper.CloseContext) // after a refusal of the generator; else it is closed already
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		return err
	}
	defer end(gen.CloseContext)
	observed, err := oteltickflake.Observe(gen, fleet)
	if err != nil {
		return err
	}
	defer end(func(context.Context) error { return observed.Unregister() })
	ids, err := oteltickflake.CountIDs(gen, fleet) // leave it out unless you want the rate
	if err != nil {
		return err
	}
	defer end(func(context.Context) error { return ids.Unregister() })
	orders, err := sequence.Open(ctx, store, "orders", sequence.WithDefinition(sequence.Definition{Max: 9_999_999_999}))
	if err != nil {
		return err
	}
	defer end(orders.CloseContext)
	numbered, err := oteltickflake.ObserveSequence(orders, fleet)
	if err != nil {
		return err
	}
	defer end(func(context.Context) error { return numbered.Unregister() })

	http.Handle("/metrics", promhttp.Handler())
	server := &http.Server{Addr: listen, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }() // until Shutdown
	defer end(server.Shutdown)
	fmt.Printf("metrics at http://%s/metrics\n", listen)

	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
		_, refused := ids.NextNContext(ctx, make([]snowflake.ID, batch))
		if _, err := orders.Next(ctx); ctx.Err() == nil && errors.Join(refused, err) != nil {
			log.Print("metrics: ", errors.Join(refused, err))
		}
	}
}
