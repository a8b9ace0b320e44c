// Package stores keeps cells: small values by key, changed by compare-and-swap. Packages lease
// and sequence need nothing else from a database.
//
// You need these names:
//
//   - [Open]: opens a store by its URL, or a directory by its path.
//   - [Store]: the methods of an engine. Implement it for an engine of your own.
//   - [Traits]: what a store is and can do besides. A wrapper of a store passes them on.
//   - [ErrConflict]: the cell has another version than the caller thought.
//   - [Kind]: tells whether a retry helps: not if errors.Is(err, stores.Permanent).
//   - [CheckDurability]: asks an engine whether it forgets acknowledged writes.
//
// Engines register themselves when they are imported, as drivers of database/sql do:
//
//	import _ "github.com/tickflake/tickflake/stores/etcd"
//
//	store, err := stores.Open(ctx, "etcd://10.0.0.5:2379,10.0.0.6:2379")
//
// Every engine's URL has ?namespace=NAME, which separates fleets that share a server. Special characters of a password
// are percent-encoded, and no error shows a password. The URLs of etcd, ZooKeeper and NATS with TLS also have
// cacert=FILE, the certificate authorities to trust, in PEM, instead of the system's, and cert=FILE&key=FILE, the
// client's certificate. All hosts of a URL must be servers of one cluster: servers that know nothing of each other give the same node
// numbers, unnoticed.
//
// A store that was opened by a URL has one connection at rest, and at most 4 to each server. PostgreSQL has 4 more,
// which cancel statements; S3 has up to 16 in use and 32 in all, Kubernetes 4 and 16. An operation that was given up
// keeps its connection until the server has answered, or for 15 seconds. On Linux, a connection is closed 10 seconds
// after the server's machine no longer acknowledges. One that was silent for 15 seconds, as after a suspend, is made
// anew before the next operation.
//
// With every engine, IDs are issued twice if cells are deleted, or if an older state of them is restored while a process
// of the fleet may run. A version grows by a random step of up to 2³², so that none recurs after that.
//
// Package [github.com/tickflake/tickflake/stores/storetest] has the conformance suite
// that every engine here passes.
package stores
