// Package generator issues 64-bit IDs that are unique, ordered by time, and safe
// from a clock that goes back.
//
// You need these names:
//
//   - [Open]: opens a store, claims a node number and returns a generator.
//   - [Generator.Next] and [Generator.NextContext]: one ID.
//   - [Generator.NextAfter]: an ID above one that was seen, from whatever machine.
//   - [Generator.NextN]: many at once. [Generator.NextRun] describes them instead.
//   - [Generator.Close]: releases the node number.
//   - [Generator.Ready]: whether a call would be served now, for a readiness probe.
//   - [Generator.Stats]: counts for a dashboard.
//   - [Generator.Layout]: its Decode returns when, and by which node, an ID was issued.
//   - [Generator.Store]: the store that Open opened, for package sequence.
//   - [WithFloor]: IDs above those of another system.
//
// For example, in a program that imports stores/directory:
//
//	gen, err := generator.Open(ctx, "ids") // a directory, or the URL of a server
//	if err != nil {
//		return err
//	}
//	defer gen.Close()
//	id, err := gen.NextContext(ctx)
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
// itself changes only the second operand, so no slot is issued twice. The next slot may then
// lie ahead of the clock. A strategy decides what to do: wait, borrow from the future, or
// reject. [Generator.NextAfter] adds a third operand: the first slot above the seen ID.
//
// # Guarantees
//
// Within one [Generator]: no ID is issued twice, and an ID that was returned
// before another call began is smaller, whatever the clock does.
//
// Between generators of one store ([Open], [WithLease]): no ID is issued
// twice. The generators may run in one process or on many machines, one after the other
// or at the same time, and their clocks may do anything. Package
// [github.com/tickflake/tickflake/lease] states the requirements.
//
// Between generators without a lease: IDs are distinct if the node numbers are. By [WithNode]
// the caller of [New] promises two things: no other generator uses the number at the same
// time, and the clock of a later one is past the last ID of the one before. A step back
// before a restart breaks the second promise.
//
// IDs are not secret: they show when and where they were issued, and the next
// one can be guessed.
package generator
