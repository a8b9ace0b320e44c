// Package lease makes IDs unique across restarts, machines and pauses, without any
// clock to trust. It grants a process a node number together with a range of ticks,
// and no other process, ever, gets the same ticks of that number:
//
//	store, err := directory.Open(ctx, path)
//	keeper, err := lease.Claim(ctx, store)
//	gen, err := generator.New(generator.WithLease(keeper))
//	defer gen.Close()
//
// generator.Open does all of that in one call.
//
// You need these names:
//
//   - [Claim] and [Keeper]: claim a node number, and hold it. The Options are [WithWindow]
//     and its neighbours.
//   - [Inspect] and [ForceRelease]: what a store tells about node numbers, and how to give
//     one back in the place of a process that has died.
//   - [Reserve]: keeps node numbers for systems that do not use the store.
//   - [Keeper.Restored]: this process's memory was restored or cloned.
//   - [NoFreeNodeError], [ErrStore], [ErrHeld], [ErrStoreWentBack]: what can go wrong.
//
// # How it works
//
// A [stores.Store] keeps one small cell per node number: who holds it, and the limit, up to
// which ticks were granted. A Keeper claims a cell by raising its limit, by
// compare-and-swap; the ticks that this adds are its grant. It raises the limit again when a
// third of the grant is used. If another process took the cell meanwhile, the rest of the
// grant is still the Keeper's own, and it claims another cell. So uniqueness is a
// matter of counting, and no clock, timeout or pause can break it: a process that
// was frozen for an hour wakes up with ticks that are its own. Package internal/protocol
// has the rules, in one function, with the argument for each.
//
// Time may also not be granted: if the store is away for longer than the grant lasts, or
// all node numbers are held. Then the generator's calls fail or wait, and go on by
// themselves when there is a grant.
//
// One more cell keeps the fleet's layout. Every claim reads it, and refuses another layout.
//
// # What it rests on
//
// The store must be linearizable and durable, as [stores.Store] says. If it was restored
// from a backup, or failed over to a replica that was behind, the processes that held more
// than it now knows notice that at their next extension, stop using their grants, and raise
// their cells again: [ErrStoreWentBack]. A process that starts on such a store cannot know.
//
// The memory of a process must not be copied or rolled back, as by a fork or by restoring
// a VM's snapshot beside its original, unless the copy calls [Keeper.Restored] before it
// issues an ID. Without that call it issues the same IDs until its next extension finds
// out: for a third of a window at most while the store answers, and until the end of the
// grant if it does not.
package lease
