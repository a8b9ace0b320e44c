// Package lease makes IDs unique across restarts, machines and pauses, without trust in
// any clock. It grants a process a node number and a range of ticks, the units of an ID's
// time. No other process ever gets the same ticks of that number. Most programs call
// generator.Open, which does what this program does:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		"github.com/tickflake/tickflake/generator"
//		"github.com/tickflake/tickflake/lease"
//		"github.com/tickflake/tickflake/stores"
//		_ "github.com/tickflake/tickflake/stores/directory"
//	)
//
//	func main() {
//		ctx := context.Background()
//		store, err := stores.Open(ctx, "ids")
//		if err != nil {
//			log.Fatal(err)
//		}
//		keeper, err := lease.Claim(ctx, store)
//		if err != nil {
//			log.Fatal(err)
//		}
//		gen, err := generator.New(generator.WithLease(keeper))
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer gen.Close() // closes the keeper, which releases the node number
//		fmt.Println(gen.Next())
//	}
//
// You need these names:
//
//   - [Claim] and [Keeper]: claim a node number, and hold it. [WithWindow] and its
//     neighbours are the options.
//   - [List] and [ForceRelease]: list the state of node numbers, and release the number
//     of a process that has died.
//   - [SetFleet], [ReadFleet] and [EndFleet]: set which node numbers a store has, read it, and give
//     them to another store.
//   - [Reserve]: keeps node numbers for systems that do not use the store.
//   - [Keeper.Restored]: for a process whose memory was restored or copied.
//   - [NoFreeNodeError], [ErrStore], [ErrHeld]: the errors; [stores.KindOf] tells whether a
//     retry helps.
//
// # How it works
//
// A [stores.Store] keeps a small cell for each node number: its holder, and the limit up to
// which ticks are granted. A Keeper claims a cell: it raises the limit by compare-and-swap, and
// the ticks below the new limit are its grant. When a third of the grant is used, it raises the
// limit again. (The first time it does so earlier, at a random instant, so that a fleet that
// starts at once does not write at once.) If another process has taken the cell meanwhile, the
// rest of the grant is still the Keeper's own, and it claims another cell.
//
// So uniqueness depends only on counting. No clock, timeout or pause can break it: a process
// that was frozen for an hour wakes up with ticks of its own. Package internal/grant has the
// rules, with the argument for each.
//
// When the store does not answer for longer than the grant lasts, or all node numbers are held,
// there is no grant. The doc of NextContext of a generator says what a call does then.
//
// One more cell, the fleet's, says which layout and which node numbers the store is for, and
// from when on. Every claim reads it and keeps to it.
//
// # Bounds
//
// A function or method with a context returns as soon as the context ends, whatever the store
// does. Without a deadline, it returns at most one timeout, that of [WithTimeout] or
// [DefaultTimeout], after the last answer of the store. Close and Restored of a Keeper have
// bounds of their own.
//
// However long the store misbehaves, a Keeper has one goroutine, and one call of the store at
// a time. After a failure it tries once per three tenths of a window. While nothing is granted,
// it tries at least every 9 seconds, unless the layout has more than 9,000 node numbers. A first
// claim tries again after 40 ms, and doubles that. On a store with locks, such as a directory,
// it tries once per second, or once per twelfth of a window below 12 seconds. A try has at most
// 8 rounds of a few calls, and lists up to 4,096 cells in a call. The Keeper remembers at most
// 64 names of writes, 8 claims, 4,096 versions of others' cells and 64 damaged cells. It logs
// changes of its state, and not each failure.
//
// # Requirements
//
// The store must be linearizable and durable, as [stores.Store] says. A restore from a backup,
// or a failover to a replica that was behind, breaks that. A process whose limit is higher than
// the store's notices it at its next extension, stops using its grant, and raises its cell
// again: [stores.ErrWentBack]. A process that starts later cannot notice it.
//
// The memory of a process must not be copied or rolled back, as by a fork or a VM's snapshot. If
// it is, the copy must call [Keeper.Restored] before it issues an ID, or the machine must have a
// VMClock: [WithVMClock]. Otherwise the copy and the original issue the same IDs until the grant is
// next extended: at most a third of a window later while the store answers, and until the grant
// ends at the latest.
package lease
