// Package lease makes IDs unique across restarts, machines and pauses, without trust in
// any clock. It grants a process a node number and a range of ticks, the units of an ID's
// time. No other process ever gets the same ticks of that number. Most programs call
// generator.Open, which does this:
//
//	store, err := directory.Open(ctx, path)
//	keeper, err := lease.Claim(ctx, store)
//	gen, err := generator.New(generator.WithLease(keeper))
//	defer gen.Close()
//
// You need these names:
//
//   - [Claim] and [Keeper]: claim a node number, and hold it. [WithWindow] and its
//     neighbours are the options.
//   - [List] and [ForceRelease]: list the state of node numbers, and release the number
//     of a process that has died.
//   - [SetFleet], [ReadFleet] and [End]: say which node numbers a store has, and move them to
//     another one.
//   - [Reserve]: keeps node numbers for systems that do not use the store.
//   - [Keeper.Restored]: for a process whose memory was restored or cloned.
//   - [NoFreeNodeError], [ErrStore], [ErrHeld]: the errors; [stores.KindOf] tells whether a
//     retry helps.
//
// # How it works
//
// A [stores.Store] keeps a small cell for each node number: its holder, and the limit up to
// which ticks are granted. A Keeper claims a cell: it raises the limit by compare-and-swap, and
// the added ticks are its grant. When a third of the grant is used, it raises the limit again.
// (The first time it does so earlier, at a random instant: a fleet that starts at once should
// not write at once.) If another process took the cell meanwhile, the rest of the grant is still
// the Keeper's own, and it claims another cell.
//
// So uniqueness depends only on counting. No clock, timeout or pause can break it: a process
// that was frozen for an hour wakes up with ticks of its own. Package internal/grant has the
// rules, with the argument for each.
//
// There may be no grant: if the store does not answer for longer than the grant lasts, or
// all node numbers are held. Then the generator's calls fail or wait, and succeed
// again when there is a grant.
//
// One more cell, the fleet's, says which layout and which node numbers the store is for, and from when
// on. Every claim reads it and keeps to it.
//
// # Bounds
//
// However long the store misbehaves, a Keeper has one goroutine, and one call of the store at
// a time. After a failure it tries once per three tenths of a window, and at least every 9
// seconds while nothing is granted, unless the layout has more than 9,000 node numbers; a first
// claim begins with 40 ms and doubles that. On a store with locks, such as a directory, it tries once per
// second, or once per twelfth of a window below 12 seconds. A try has at most 8 rounds of a
// few calls, and lists up to 4,096 cells in a call. The Keeper remembers
// at most 64 names of writes, 8 claims, 4,096 versions of others' cells and 64 damaged cells.
// It logs at most 64 lines of each level at once, and then one per minute.
//
// # Requirements
//
// The store must be linearizable and durable, as [stores.Store] says. It may go back: by a
// restore from a backup, or a failover to a replica that was behind. A process whose limit is
// higher than the store's then notices it at its next extension, stops using its grant, and
// raises its cell again: [stores.ErrWentBack]. A process that starts later cannot notice it.
//
// The memory of a process must not be copied or rolled back, as by a fork or by restoring
// a VM's snapshot beside its original, unless the copy calls [Keeper.Restored] before it
// issues an ID, or the machine has a VMClock: [WithVMClock]. Else both issue the same IDs until
// the next extension finds the copy. That is a third of a window at most while the store
// answers, and else the rest of the grant.
package lease
