// Package fleet puts servers and keepers under load and through faults, for tests: on real stores, with a record of all
// that they issue.
//
// You need these names:
//
//   - [Fleet] has servers of one store and clients that load them, or keepers, which issue IDs
//     by themselves. [Faults] are what can be done to its servers, Crash and Step to its keepers.
//     A [Verdict] has the promises that do not hold. [For] and [Fleet.Verify] are for tests.
//   - [Caller] asks a server, by one of [Protocols] or as the Go client.
//   - [Ledger] has what callers got and when. It finds values that came twice, and values out of
//     the order of real time.
//
// Package program runs a server of tickflake, and package servers that of a store.
//
// Only modules that are never published may import this one.
package fleet
