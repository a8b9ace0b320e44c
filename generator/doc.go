// Package generator issues 64-bit IDs that are unique, ordered by time, and safe
// from a clock that goes back. This program prints one:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		"github.com/tickflake/tickflake/generator"
//	)
//
//	func main() {
//		gen, err := generator.Open(context.Background(), "ids") // a directory, or the URL of a server
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer gen.Close()       // releases the node number
//		fmt.Println(gen.Next()) // an ID, and nil as its error
//	}
//
// For a server, also import its engine, such as stores/etcd.
//
// You need these names:
//
//   - [Open]: opens a store, claims a node number and returns a generator.
//   - [Generator.Next] and [Generator.NextContext]: one ID.
//   - [Generator.NextAfter]: an ID above one that was seen, from whatever machine.
//   - [Generator.NextN]: many at once. [Generator.NextRuns] describes them instead.
//   - [Generator.Close]: releases the node number.
//   - [Generator.Ready] and [Generator.Err]: whether a call would be served now, and whether only a restart
//     helps, for probes of readiness and liveness.
//   - [Generator.Stats]: counts for a dashboard.
//   - [Generator.Layout]: its Decode returns when, and by which node, an ID was issued.
//   - [Generator.Store]: the store that Open opened, for package sequence.
//   - [WithFloor]: IDs above those of another system.
//
// # In your code
//
// Give code that needs IDs a function instead of a generator:
//
//	type Orders struct {
//		NextID func(context.Context) (snowflake.ID, error)
//	}
//
// Such functions are gen.NextContext, NextContext of a stream, Next of a client of the service, and any function of a
// test. The doc of package github.com/tickflake/tickflake/client has a program that moves from a generator to a client
// by one line, and says what its probes ask in place of [Generator.Ready] and [Generator.Err].
//
// # In your tests
//
// To get the same IDs in each run, use a clock that stands still: [WithClock] with a
// [github.com/tickflake/tickflake/monoclock/clocktest.Virtual], as in the example FixedIDs:
//
//	clock := clocktest.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
//	gen, err := generator.New(generator.WithNode(7), generator.WithClock(clock))
//
// After the 4,096 IDs that the default layout has in a tick, the next call waits until the test calls
// clock.Advance. After clock.AutoAdvance(true), it moves the clock itself.
//
// For a fake, write that function by hand, as in the example Fake. When the store was away until the grant ended, a
// generator returns a [*GrantError]. Code that calls [Open] itself takes t.TempDir() in place of a URL.
//
// A bubble of testing/synctest begins in the year 2000, before the epoch of the default layout. Sleep first,
// which costs nothing there. Then a generator made by [New] reads the bubble's time, and its IDs are fixed as well:
//
//	synctest.Test(t, func(t *testing.T) {
//		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
//		gen, err := generator.New(generator.WithNode(7))
//
// To see what your program does while the store is away, and afterwards, use [WithLease] with a
// [github.com/tickflake/tickflake/stores/storetest.Memory]. In such a bubble:
//
//	store := storetest.NewMemory()
//	keeper, err := lease.Claim(t.Context(), store)
//	gen, err := generator.New(generator.WithLease(keeper))
//	defer gen.Close() // a bubble waits for all goroutines
//	store.Fail(storetest.Unavailable)
//	time.Sleep(time.Minute) // the grant ends
//	_, err = gen.Next()     // a GrantError
//	store.Fail(storetest.None)
//	time.Sleep(time.Minute) // the lease tries again
//	_, err = gen.Next()     // nil
//
// Without a bubble, give the lease a Virtual, as in the example StoreFails. Then a call that has neither a grant nor a
// deadline waits by that clock, for ever if nothing advances it: take strategies.Reject, which does not wait.
//
// # How it works
//
// An ID has the time, the number of the node that issued it, and a sequence number, as in
// Twitter's Snowflake. A [snowflake.Layout] says how many bits each has. The time is counted in
// ticks, usually of a millisecond. A tick with a sequence number is a slot, and a [Generator]
// hands out each slot once:
//
//	next = max(last slot + 1, first slot of the clock's tick)
//
// One atomic word holds the last slot. A clock that is stepped back, stands still or repeats
// itself changes only the second operand, so no slot is issued twice. But the next slot may
// then lie ahead of the clock. A strategy decides what the call does: wait, borrow the slot
// before its time, or fail. [Generator.NextAfter] adds a third operand: the first slot above
// the ID that was seen.
//
// # Guarantees
//
// Within one [Generator]: no ID is issued twice, and a call's ID is larger than every ID
// that was returned before the call began, whatever the clock does. A [Stream] keeps less.
//
// Between generators of one store ([Open], [WithLease]): no ID is issued twice, on any
// machines, one after the other or at the same time, whatever their clocks do. Package
// [github.com/tickflake/tickflake/lease] states what the store must keep.
//
// Between generators without a lease: IDs differ if the node numbers do. With [WithNode],
// the caller of [New] promises two things: no other generator uses the number at the same
// time, and a later one starts with a clock that is past the last ID of the one before. If the
// clock is stepped back before a restart, the second promise is broken.
//
// IDs are not secret: they show when and where they were issued, and the next
// one can be guessed.
package generator
