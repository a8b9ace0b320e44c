// Package redis keeps the cells of a fleet in one hash of a Redis or Valkey server, by
// the driver go-redis.
//
//	store, err := redis.Open(ctx, "rediss://ids:secret@redis.example:6379/0?replicas=1")
//
// # What can be lost
//
// Redis acknowledges a write before it is safe, unless told otherwise. A write that
// was acknowledged and is lost makes two processes issue the same IDs. With the
// settings below a single server loses nothing in a crash. A failover can still lose
// writes: Redis replicates asynchronously, and no setting makes it choose, always, a
// replica that has them all. If that must not be, keep the cells in etcd, ZooKeeper
// or PostgreSQL.
//
//   - appendonly yes and appendfsync always. With everysec, the default of appendfsync,
//     a crash of the machine loses up to two seconds; without appendonly, a crash of
//     the process loses all since the last snapshot.
//   - maxmemory-policy noeviction, as it is by default, if there is a maxmemory. Any
//     allkeys-… policy may throw the cells away.
//   - With replicas: the option [WithReplicas], or the URL's parameter replicas, makes each
//     operation wait until that many have received what it has written or read (the
//     command WAIT). That makes a loss rare, not impossible: a replica that has not got it may be
//     promoted, and what it has received is in its memory, and on its disk only as its own
//     appendfsync says. min-replicas-to-write 1 with a min-replicas-max-lag of a few
//     seconds bounds how long a primary that was cut off goes on taking writes, and
//     answering reads.
//   - Nobody may delete or rename the key, run FLUSHALL or FLUSHDB, or restore an old
//     copy while a fleet that used it lives.
//
// The method Warnings looks for these settings where the server permits it.
//
// A cell's version grows by a random step of up to 2³². A server that loses writes,
// and then takes others instead, does not give those the same versions; so whoever has
// seen a lost one finds that the cell is another, which a counter would hide.
//
// # What it needs
//
// Redis 5 or later. Each operation is one command and one round trip. The cells are
// the fields of the hash tickflake:{NAMESPACE}, which in a cluster lies on one shard. An
// ACL must permit EVAL, HGET, HSET and HDEL for reading and writing, and HGETALL, on
// that key; WAIT for [WithReplicas]; PING for Warnings, and CONFIG GET and INFO for it to
// find anything.
package redis
