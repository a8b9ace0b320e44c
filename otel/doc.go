// Package oteltickflake reports how a generator, its lease and their store are doing,
// as OpenTelemetry metrics and traces.
//
//	gen, err := generator.New(generator.WithLease(keeper))
//	…
//	metrics, err := oteltickflake.Observe(gen)
//	…
//	defer metrics.Unregister()
//
// [Observe] reports [generator.Stats], and [ObserveKeeper] [lease.Stats], by callbacks
// that run when metrics are collected: the callers of Next pay nothing. [Wrap] measures
// and traces the operations of a store, of which there are a few in a minute. Only
// [CountIDs] adds to what an ID costs, and is for those who want the rate.
//
// As with the instrumentations of OpenTelemetry's contrib repository, everything goes to
// the global providers unless options say otherwise, also if these are set later.
//
// README.md beside this file lists the metrics, and leads from nothing to a dashboard
// with alerts.
//
// # The name
//
// The directory is otel, since that is what one looks for. A package of that name would
// collide with go.opentelemetry.io/otel in the one file that sets both up, so it is
// named as otelhttp and otelgrpc are.
package oteltickflake
