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
// Every engine's URL has ?namespace=NAME, which separates fleets that share a server, and percent-encodes the special
// characters of a password, which no error shows. Those of etcd, ZooKeeper and NATS with TLS also have cacert=FILE,
// the certificate authorities to trust in PEM instead of the system's, and cert=FILE&key=FILE, the client's
// certificate. A store that was opened by a URL keeps one connection and has at most four to a server, unless its
// package says otherwise: one whose operation was given up counts until the server has answered, or 15 seconds have passed.
//
// With every engine, IDs are issued twice if cells are deleted, or if an older state of them is restored while a process
// of the fleet may run. A version grows by a random step of up to 2³², so that none recurs after that.
//
// Package [github.com/tickflake/tickflake/stores/storetest] has the conformance suite
// that every engine here passes.
package stores
