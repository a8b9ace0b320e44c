// Package etcd keeps the cells of package lease in etcd, so that every process of a
// fleet, on any machine, has a node number of its own.
//
// # What is kept
//
// One key per node number that was ever claimed: /NAMESPACE/ and the node number in
// seven digits, with a value of at most 1 KiB. Each extension of a lease is one
// transaction of one compare and one put. Keys are never deleted, and must not be by
// hand while a process of the fleet may run: with the key goes the memory of what was
// issued. etcd keeps old revisions until it is compacted; let it do so by itself
// (--auto-compaction-retention).
//
// # What can be lost
//
// Nothing that was acknowledged, as etcd runs by default: a majority has written it to
// disk. It is lost, and with it the uniqueness of IDs, by --unsafe-no-fsync, by disks
// that lie about syncing, and by restoring a snapshot: that takes the fleet back to an
// older state. After a restore, start no process of the fleet before the time of
// the last write that the snapshot does not have, plus one window of the lease; if
// clocks have run ahead, before the latest of theirs.
//
// # Rights
//
// With authentication switched on, the user needs read and write on the keys from
// /NAMESPACE/ with that prefix:
//
//	etcdctl role grant-permission tickflake --prefix=true readwrite /tickflake/
package etcd
