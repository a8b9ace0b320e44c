// Package fleet puts servers and keepers under load and through faults, for tests and
// benchmarks: on real stores, with a record of all that they issue.
//
// You need these names:
//
//   - [Main] runs the tests of a package, and removes what was built.
//   - [Serve] runs the real "tickflake serve" in a process that is stopped, killed, frozen and
//     started again at its addresses. Its wall clock can be stepped.
//   - [Caller] asks a server, by one of [Protocols] or as a [GoClient].
//   - [Ledger] has what callers got and when. It finds values that came twice, and values out of
//     the order of real time.
//   - [Fleet] has servers of one store and clients that load them, or keepers, which issue IDs
//     by themselves. [Faults] are what can be done to its servers, Crash and Step to its keepers.
//     A [Verdict] has the promises that do not hold. [For] and [Fleet.Verify] are for tests.
//
// Package integration/servers runs a server of each store.
//
// Only modules that are never published may import this one.
package fleet
