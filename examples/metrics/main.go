// Command metrics issues IDs and numbers at a constant rate and serves its metrics to
// Prometheus. The README of otel shows how to put them on a dashboard.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// run serves and issues until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("example", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:9464", "where to serve /metrics")
	store := flags.String("store", "", "a `directory` that keeps the grants and the sequence; without one, a temporary one")
	rate := flags.Int("rate", 1000, "how many IDs to issue in a second")
	traces := flags.Bool("traces", false, "print the spans of the store's operations")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rate < 1 || *rate > maxRate {
		return fmt.Errorf("-rate %d: want 1 to %d", *rate, maxRate)
	}
	if *store == "" {
		if *store, err = os.MkdirTemp("", "tickflake-example"); err != nil {
			return err
		}
		defer os.RemoveAll(*store)
	}

	// The usual setup of OpenTelemetry for Prometheus.
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		return err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	defer end(&err, meters.Shutdown)
	otel.SetMeterProvider(meters) // the default of oteltickflake
	tracers := sdktrace.NewTracerProvider()
	if *traces {
		printer, err := stdouttrace.New(stdouttrace.WithWriter(out), stdouttrace.WithPrettyPrint())
		if err != nil {
			return err
		}
		tracers.RegisterSpanProcessor(sdktrace.NewSimpleSpanProcessor(printer))
	}
	defer end(&err, tracers.Shutdown)
	otel.SetTracerProvider(tracers)

	service, err := open(ctx, *store)
	if err != nil {
		return err
	}
	defer end(&err, service.close)

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }() // until Shutdown
	defer end(&err, server.Shutdown)
	fmt.Fprintf(out, "metrics at http://%s/metrics\n", listener.Addr())

	ticker := time.NewTicker(time.Second / batches)
	defer ticker.Stop()
	for issued := 0; ; {
		select {
		case <-ticker.C:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
		issued = (issued + 1) % batches
		n := *rate*(issued+1)/batches - *rate*issued/batches // they add up to the rate
		if err := service.issue(ctx, n); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "example:", err)
		}
	}
}

const (
	batches = 20          // per second, each with the number of an order
	maxRate = 100_000_000 // IDs per second: more than any layout has
)

// end calls f with the time that people wait after Ctrl-C, and adds its error to err.
func end(err *error, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	*err = errors.Join(*err, f(ctx))
}
