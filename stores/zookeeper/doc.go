// Package zookeeper keeps the cells of package lease in ZooKeeper, so that every
// process of a fleet, on any machine, has a node number of its own.
//
// # What is kept
//
// One persistent znode per node number that was ever claimed: /NAMESPACE/ and the node
// number in seven digits, with a value of at most 1 KiB. Each extension of a lease is
// one setData with a version. The znode /NAMESPACE is empty, and written by each Read,
// which makes sure in this way that it sees the latest state.
//
// Znodes are never deleted, and must not be by hand while a process of the fleet may
// run: with a znode goes the memory of what was issued, and its versions begin again
// at 1, so that a late write to the old one may find the version that it expects in
// the new one.
//
// Nothing depends on the session: it may expire, and the driver then begins another.
//
// # What can be lost
//
// Nothing that was acknowledged, as ZooKeeper runs by default: a majority has written
// it to disk. It is lost, and with it the uniqueness of IDs, by forceSync=no, by
// disks that lie about syncing, and by restoring an older snapshot of the data
// directory on a majority of the servers. Use an ensemble of three or five, with
// dataLogDir on a disk that keeps what it has synced.
//
// # Rights
//
// On the znode /NAMESPACE: read, write and create. On those below: read and write. On
// the znode above it: create, unless /NAMESPACE exists. For a list alone, read is
// enough. Open with a user in its URL makes znodes that only this user can see (the
// ACL auth::cdrwa).
package zookeeper
