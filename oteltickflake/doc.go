// Package oteltickflake reports the state of generators, leases, sequences and stores as
// OpenTelemetry metrics and traces. You need these names:
//
//   - [Observe]: all metrics of a generator and its lease.
//   - [ObserveSequence]: all metrics of a sequence; [ObserveSequences]: of many.
//   - [WithNamespace]: separates fleets on the dashboard.
//   - [Wrap]: latency and spans of a store's operations, for callers of [lease.Claim] and
//     [sequence.Open].
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
// Observe and ObserveSequence read their values when metrics are collected, so they do not
// slow Next down. Without options, everything goes to the global providers, also if they are
// set later.
//
// README.md beside this file lists the metrics, and shows how to set up a dashboard with
// alerts.
package oteltickflake
