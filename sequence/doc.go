// Package sequence issues counted numbers, as for orders and invoices: short, ascending, and
// never twice, by any number of processes on one store.
//
//	store, err := stores.Open(ctx, "ids") // a directory, or the URL of a server
//	orders, err := sequence.Open(ctx, store, "orders", sequence.WithDefinition(sequence.Definition{}))
//	defer orders.Close()
//	number, err := orders.Next(ctx)
//
// For a server, also import its engine, such as stores/etcd. A process with a generator takes the store of that:
// Store of the generator.
//
// You need these names:
//
//   - [Open] and [Sequence]: open a sequence, and take numbers. [WithOutage] and its
//     neighbours are the options.
//   - [OpenPeriods] and [Periods]: numbers that begin anew each year, month or day, or each [NewPeriod].
//   - [Definition], [Segmented] and [Ordered]: which numbers, and how they are given out.
//   - [Create], [Inspect], [List], [Set] and [Delete]: manage sequences. [Info.Continued] is the
//     definition with which another store continues one that was deleted.
//   - [Sequence.Restored]: for a process whose memory was restored or copied.
//   - [ExhaustedError], [ErrNotFound], [stores.ErrWentBack]: the errors; [stores.KindOf] tells
//     whether a retry helps.
//
// # Which mode
//
// In segmented mode a process reserves numbers ahead of need, and a call costs as much as a
// local counter. The numbers of several processes interleave, and a crash loses the reserved
// ones. In ordered mode each call waits for the store. The numbers are in the order of real
// time across all processes, and a number is lost only by a crash, or by a call that ends
// while its write is in flight. Calls that wait at the same time share a write, so the rate
// grows with the load. One process at a time is fastest; several take turns.
//
// Neither mode promises numbers without any gap. That takes a row lock in the caller's own
// transaction.
//
// # How it works
//
// A [stores.Store] keeps one small cell per sequence: the next number that is granted to no
// process. A process raises it by compare-and-swap before it uses the numbers below it. So
// uniqueness depends only on counting: no clock, timeout or pause can break it. Package
// internal/count has the rules, with the argument for each.
//
// In segmented mode a process reserves the next segment as soon as it takes a number of the
// last one: it holds at most two. A segment has as many numbers as an outage of [WithOutage]
// needs at the present rate, at most twice as many as the one before, and not more than the
// definition's MaxStep. So a crash loses at most two segments of MaxStep numbers and the
// largest batch: [Stats] has that bound. Close gives unused numbers back, if no other process
// has been granted numbers since.
//
// # Bounds
//
// A function or method with a context returns as soon as the context ends, whatever the store does. Without a
// deadline, it returns at most two timeouts of [WithTimeout] after the last answer of the store; [Sequence.Next]
// and [Sequence.NextN] return after one timeout, and Close and Restored have their own bounds.
//
// A Sequence has no goroutine at rest, and two while it refills: one makes one call of the store
// at a time, and one watches timeouts. While the store fails and calls wait, it tries again after
// 40 ms, and doubles that up to once per second. It remembers at most 64 writes of unknown
// outcome. At rest it takes less than 2.5 KiB.
//
// # Requirements
//
// The store must be linearizable and durable, as [stores.Store] says. A restore from a backup,
// or a failover to a replica that was behind, breaks that. The first process that has read or
// owned more than the store has notices it at its next refill. It gives up its reserved numbers
// and marks the cell. Then every process stops at its next refill with [stores.ErrWentBack],
// until [Set] raises the next number. Before the cell is marked, other processes can repeat the
// numbers that the store has lost, and no others.
//
// The memory of a process must not be copied or rolled back, as by a fork or a VM's snapshot. If it is, the copy
// must call [Sequence.Restored] before it takes a number, or the machine must have a VMClock: [WithVMClock].
// Otherwise it repeats the numbers that were reserved in segmented mode, at most two segments, and in either mode
// the numbers of a write that was in flight.
package sequence
