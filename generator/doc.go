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
//   - [Generator.Ready]: whether a call would be served now, for a readiness probe.
//   - [Generator.Stats]: counts for a dashboard.
//   - [Generator.Layout]: its Decode returns when, and by which node, an ID was issued.
//   - [Generator.Store]: the store that Open opened, for package sequence.
//   - [WithFloor]: IDs above those of another system.
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
// Within one [Generator]: no ID is issued twice, and an ID that was returned
// before another call began is smaller, whatever the clock does.
//
// Between generators of one store ([Open], [WithLease]): no ID is issued twice, on any
// machines, one after the other or at the same time, whatever their clocks do. Package
// [github.com/tickflake/tickflake/lease] states what the store must keep.
//
// Between generators without a lease: IDs differ if the node numbers do. With [WithNode],
// the caller of [New] promises two things: no other generator uses the number at the same
// time, and the clock of a later one is past the last ID of the one before. A step back
// before a restart breaks the second promise.
//
// IDs are not secret: they show when and where they were issued, and the next
// one can be guessed.
package generator
