// Package stores keeps cells: small values by key, changed by compare-and-swap. Packages lease
// and sequence need nothing else from a database.
//
// You need these names:
//
//   - [Open]: opens a store by its URL, or a directory by its path.
//   - [Store]: the methods of an engine. Implement it for an engine of your own.
//   - [ErrConflict]: the cell has another version than the caller thought.
//   - [Kind]: tells whether a retry helps: not if errors.Is(err, stores.Refused).
//   - [CheckDurability]: asks an engine whether it forgets acknowledged writes.
//
// Engines register themselves when they are imported, as drivers of database/sql do:
//
//	import _ "github.com/tickflake/tickflake/stores/etcd"
//
//	store, err := stores.Open(ctx, "etcd://10.0.0.5:2379,10.0.0.6:2379")
//
// Package [github.com/tickflake/tickflake/stores/storetest] has the conformance suite
// that every engine here passes.
package stores
