// Package zookeeper keeps cells in ZooKeeper, so that every process of a fleet, on any
// machine, has a node number of its own.
//
// You need these names:
//
//   - [github.com/tickflake/tickflake/stores.Open] with a zk:// or zks:// URL; import
//     this package for it.
//   - [New]: a Store with a connection of the caller's.
//
// # URLs
//
//	zk://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/CHROOT][?namespace=NAME]
//
// or zks:// with TLS, with these options more: cacert=FILE for the certificate
// authorities to trust, in PEM, instead of the system's, and cert=FILE&key=FILE for
// the client's certificate. The port is 2181 (2281 with TLS), and the namespace
// stores.DefaultNamespace if there is none. With a user, the connection has its digest
// credentials, and znodes are made for this user alone; else they are open to all.
// Special characters of the password are percent-encoded.
//
// # What is kept
//
// One persistent znode per cell: /CHROOT/NAMESPACE/KEY, in whose name + stands for the
// slash, with a text of at most 1,100 bytes, the version and the value. The znode
// /CHROOT/NAMESPACE is empty, and written by each Read, which makes sure in this way that
// it sees the latest state.
//
// A Read is two round trips, and a Swap two, or one for a new cell. A List asks for the
// names of all cells, which the server's limit of a message (jute.maxbuffer, 1 MiB) bounds
// to about 50,000 cells in a namespace: plan for fleets of up to 40,000 node numbers. A
// store has one connection. Nothing depends on the session: it may expire, and the driver
// then begins another.
//
// # To lose nothing
//
// ZooKeeper as it runs by default loses nothing that it acknowledged: a majority has
// written it to disk. These lose writes, and IDs are then issued twice: forceSync=no, which a
// client cannot ask for; deleting znodes;
// disks that lie about syncing, and restoring an older snapshot of the data
// directory on a majority of the servers. Use an ensemble of three or five, with
// dataLogDir on a disk that keeps what it has synced.
//
// # Rights
//
// On the znode /NAMESPACE: read, write and create. On those below: read and write. On
// the znode above it: create, unless /NAMESPACE exists. For a list alone, read is
// enough. A user in the URL makes znodes that only this user can see (the
// ACL auth::cdrwa).
package zookeeper
