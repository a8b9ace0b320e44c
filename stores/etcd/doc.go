// Package etcd keeps cells in etcd, so that every process of a fleet, on any machine, has
// a node number of its own.
//
// You need one name: [github.com/tickflake/tickflake/stores.Open] with an etcd:// or etcds:// URL; import this package for it.
//
// It brings 16 modules of others into a program.
//
// # URLs
//
//	etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][?namespace=NAME]
//
// or etcds:// with TLS, which has the options cacert, cert and key: files that are read at each connect. The
// port is 2379 and the namespace stores.DefaultNamespace if there is none. Proxies of the environment are not used.
//
// # Format
//
// One key per cell: /NAMESPACE/KEY, with a text of at most 1,100 bytes, the version and
// the value. A Read is one round trip, in which the server confirms with a majority that it is up to date, and a Swap
// two, or one for a new cell; a List is one for each 4,096 cells. Old revisions stay in etcd until it is compacted; configure
// automatic compaction (--auto-compaction-retention).
//
// # To lose nothing
//
// With its defaults, etcd loses no acknowledged write: a majority has written it
// to disk. These lose writes, and IDs are then issued twice: --unsafe-no-fsync, which a
// client cannot detect; disks that acknowledge a sync before it is done; and
// restoring a snapshot, which takes the fleet back to an older state. After a restore, start
// no process of the fleet before the time of the last write that the snapshot does not have,
// plus one window of the lease. If clocks of the fleet ran ahead, take the time of the write
// by the clock that was furthest ahead.
//
// # Failovers
//
// The tests kill the leader under load, replace it by a member with an empty directory, and
// kill the majority, while processes crash and clocks step. No ID is issued twice, and IDs
// continue without a restart as soon as there is a majority. Name all members in the URL.
//
// # Rights
//
// With authentication switched on, the user needs read and write on the keys from
// /NAMESPACE/ with that prefix:
//
//	etcdctl role grant-permission tickflake --prefix=true readwrite /tickflake/
package etcd
