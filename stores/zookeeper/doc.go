// Package zookeeper keeps cells in ZooKeeper, so that every process of a fleet, on any
// machine, has a node number of its own.
//
// You need one name: [github.com/tickflake/tickflake/stores.Open] with a zk:// or zks:// URL; import this package for it.
//
// It brings 1 module of others into a program.
//
// # URLs
//
//	zk://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/CHROOT][?namespace=NAME]
//
// or zks:// with TLS, which has the options cacert, cert and key: files that are read at each connect. The
// port is 2181 (2281 with TLS), and the namespace stores.DefaultNamespace if there is none. With a user, the connection logs in with digest
// credentials, and only this user can access the znodes (the ACL auth::cdrwa); else they are open to all.
//
// # Format
//
// One persistent znode per cell: /CHROOT/NAMESPACE/KEY, with + for the slash in the key.
// Its text of at most 1,100 bytes is the version and the value. The znode
// /CHROOT/NAMESPACE is empty, and each Read writes to it. Cells do not depend on the session.
//
// A Read is two round trips: that write takes a majority of the servers, and then it reads from a server that has seen it. A
// Swap is two, or one for a new cell. A List asks for the names of all cells, and then for each cell that it returns, with up to
// 64 requests in flight; it may be out of date. The server's limit of a message (jute.maxbuffer, 1 MiB) bounds them
// to about 50,000 cells in a namespace: plan for fleets of up to 40,000 node numbers.
//
// # To lose nothing
//
// With its defaults, ZooKeeper loses no acknowledged write: a majority has
// written it to disk. These lose writes, and IDs are then issued twice: forceSync=no, which
// a client cannot detect; disks that acknowledge a sync before it is done; and restoring an older snapshot of the data
// directory on a majority of the servers. Use an ensemble of three or five, with
// dataLogDir on a disk that keeps what it has synced.
//
// # Failovers
//
// The tests kill the leader of three servers of version 3.8 under load, stop the next leader
// and later resume it, and stop the majority, while processes crash and clocks step. No ID is
// issued twice, and IDs continue without a restart: with a syncLimit of 1.5 s, some 3 s after
// a leader was killed, and 12 s after it was stopped. A replaced leader that does not know it
// yet shows no old cell to a Read.
//
// # Rights
//
// On the znode /NAMESPACE: read, write and create. On those below: read and write. On
// the znode above it: create, unless /NAMESPACE exists. To list, read is enough.
package zookeeper
