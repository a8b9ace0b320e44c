// Package lease makes IDs unique across restarts, machines and pauses, without any
// clock to trust. It grants a process a node number together with a range of ticks,
// and no other process, ever, gets the same ticks of that number:
//
//	store, err := directory.Open(path)
//	keeper, err := lease.Claim(ctx, store)
//	gen, err := generator.New(generator.WithLease(keeper))
//	defer gen.Close()
//
// A [Store] keeps one small cell per node number: who holds it, and the limit up to
// which ticks were granted. A [Keeper] claims a cell by moving its limit on, by
// compare-and-swap; what it added is its grant. It moves the limit on again when a
// third of the grant is used, and if another process took the cell meanwhile, it
// still owns the rest of its grant, and claims another cell. So uniqueness is a
// matter of counting, and no clock, timeout or pause can break it: a process that
// was frozen for an hour wakes up with ticks that are its own.
//
// What can go wrong is that time is not granted: the store is away for longer than
// the grant lasts, or all node numbers are held. Then generators return a
// [generator.GrantError], and go on by themselves when there is a grant.
//
// # Stores
//
// Package [github.com/tickflake/tickflake/stores/directory] keeps cells in plain files,
// for any number of processes on one host. The modules below stores/ keep them in etcd,
// ZooKeeper, PostgreSQL, MySQL and MariaDB, Redis and NATS JetStream. Package
// [github.com/tickflake/tickflake/lease/leasetest] has a conformance suite for
// others, and a store in memory for tests.
//
// # What it rests on
//
// The store must be linearizable and durable, as [Store] says; and the memory of a
// process must not be copied or rolled back, as by a fork or by restoring a VM's
// snapshot beside its original. Such a copy issues the same IDs until its next
// extension finds out: for a third of a window at most while the store answers, and
// until the end of the grant if it does not.
package lease
