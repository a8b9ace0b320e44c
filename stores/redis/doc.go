// Package redis keeps cells in a hash of a Redis or Valkey server, by the driver go-redis.
//
// You need these names:
//
//   - [github.com/tickflake/tickflake/stores.Open] with a redis:// or rediss:// URL; import
//     this package for it.
//   - [New]: a Store with the caller's own client, for Sentinel.
//   - [ErrReplicas]: too few replicas have confirmed a write.
//
// It brings 4 modules of others into a program.
//
// # URLs
//
//	rediss://ids:secret@redis.example:6379/0?replicas=2&namespace=orders
//
// rediss:// is TLS; the port is 6379, the database 0 and the namespace stores.DefaultNamespace unless given. replicas=N
// is that of [New]. All other parameters are those of the driver's ParseURL: dial_timeout, read_timeout and so on.
//
// # Connections
//
// The URL sets how many connections a store keeps (max_idle_conns) and has (pool_size), and when the connection of an
// operation that was given up ends (read_timeout). If the network keeps connections open and passes nothing on, as a proxy that hangs, the server
// counts up to four more every 15 seconds, until its setting timeout, which is off by default, ends them.
//
// # To lose nothing
//
// By default, Redis acknowledges a write before it is safe. With the
// settings below a single server loses nothing in a crash. A failover can still lose
// writes: Redis replicates asynchronously, and no setting makes it always choose a
// replica that has all writes. If that is not acceptable, keep the cells in etcd, ZooKeeper
// or PostgreSQL.
//
//   - appendonly yes. Without it, a killed server loses all writes since the last
//     snapshot; stores.Open refuses it.
//   - appendfsync always. With everysec, the default, a crash of the machine loses up to
//     two seconds.
//   - maxmemory-policy noeviction, the default, if there is a maxmemory. Any allkeys-…
//     policy may evict the cells; stores.Open refuses it.
//   - With replicas: the argument replicas of [New], or the URL's parameter, makes each
//     operation wait until that many have received its write, or the cell that it read
//     (the command WAIT). Ask for all replicas that can be promoted. If you ask for fewer, one
//     that lacks the last writes may be promoted, and stores.Open logs a risk. If you ask for
//     all, no grant follows a failover until the former primary is back as a replica, or
//     another replica is added. A replica has the write in memory, and on its disk only as its
//     own appendfsync says. min-replicas-to-write 1 with a
//     min-replicas-max-lag of a few seconds bounds how long a primary that was cut off
//     takes writes and answers reads.
//   - Do not delete or rename the keys, run FLUSHALL or FLUSHDB, or restore an old copy.
//
// # Failovers
//
// A URL names one server. For Sentinel, give [New] the driver's NewFailoverClient: it finds the new primary, and IDs
// continue without a restart. Set its ContextTimeoutEnabled. A cluster is not supported: all cells of a namespace would lie on one
// of its shards.
//
// The tests kill the primary under load, or stop it until a replica is promoted and then
// resume it, while processes crash and clocks step. With confirmation by all replicas, no ID
// is issued twice. Without confirmation, a promoted replica may lack the last writes: a
// process notices that at its next extension (stores.ErrWentBack), and until then
// the IDs of the grants that were lost can be issued twice.
//
// # Requirements
//
// Redis 5 or later. The cells are the fields of the hash tickflake:{NAMESPACE}, and the
// sorted set tickflake:{NAMESPACE}:keys has their keys in order. An ACL must permit EVAL, HGET, HSET, HDEL, ZADD and ZRANGEBYLEX on those
// keys; WAIT for replicas; PING for stores.Open, and CONFIG GET and INFO so that it
// can check the settings.
//
// While the server is away, the driver prints a line to standard error for each failed
// connection. Its package logging has Disable, for all its clients in the process.
package redis
