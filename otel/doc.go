// Package oteltickflake reports the state of a generator, its lease and its store as
// OpenTelemetry metrics and traces. You need these names:
//
//   - [Observe]: all metrics of a generator and its lease.
//   - [WithNamespace]: tells fleets apart on the dashboard.
//   - [Wrap]: latency and spans of a store's operations, for callers of [lease.Claim].
//   - [CountIDs]: the rate of IDs, the only metric that costs anything per ID.
//
// A service needs two calls:
//
//	gen, err := generator.Open(ctx, "ids")
//	…
//	metrics, err := oteltickflake.Observe(gen)
//	…
//	defer metrics.Unregister()
//
// Observe reads its values when metrics are collected, so the callers of Next pay nothing.
// Without options, everything goes to the global providers, also if they are set later.
//
// README.md beside this file lists the metrics, and leads from nothing to a dashboard with
// alerts.
//
// The directory is named otel, and the package is not, since programs import
// go.opentelemetry.io/otel beside it.
package oteltickflake
