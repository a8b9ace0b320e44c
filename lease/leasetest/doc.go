// Package leasetest tests generators under a lease.
//
// You need these names:
//
//   - [Leased]: tickflake's own generator under a lease, as a subject of package
//     generatortest: scripts with restart, crash and takeover apply to it.
//
// The conformance suite of stores, and a store in memory with faults on demand, are in
// package [github.com/tickflake/tickflake/stores/storetest].
package leasetest
