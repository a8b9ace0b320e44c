// Package generator issues 64-bit IDs that are unique, ordered by time, and safe
// from a clock that goes back.
//
// An [snowflake.ID] packs the time, the number of the node that issued it, and a sequence
// number, as Twitter's Snowflake did; a [snowflake.Layout] says how many bits each gets.
// A [Generator] counts slots, tick by tick, and hands out each once:
//
//	next = max(last slot + 1, first slot of the clock's tick)
//
// One atomic word holds the next slot. A clock that is stepped back, stands
// still or repeats itself changes only the second operand, so no slot is issued
// twice. What it can do is leave the next slot ahead of the clock, and then a
// strategy decides: wait, borrow from the future, or reject.
//
// A program that runs once, and on its own, needs no more than this:
//
//	gen, err := generator.New()
//	if err != nil { … }
//	id, err := gen.Next()
//
// A program that is started more than once, in a row or side by side, wants its node
// number and its time granted. Then IDs are unique across restarts and processes,
// whatever clocks do:
//
//	store, err := directory.Open(path) // or a server that several hosts reach
//	keeper, err := lease.Claim(ctx, store)
//	gen, err := generator.New(generator.WithLease(keeper))
//	defer gen.Close() // gives the node number back
//
// See package [github.com/tickflake/tickflake/lease].
//
// # What is guaranteed, and what is not
//
// Within one [Generator]: no ID is issued twice, and an ID that was returned
// before another call began is smaller, whatever the clock does.
//
// Between generators under leases of one store ([WithLease]): no ID is issued
// twice, be they in one process or on many machines, one after the other or at the
// same time, whatever their clocks do. What that rests on is said in package
// [github.com/tickflake/tickflake/lease].
//
// Between generators without a lease: IDs are distinct as long as node numbers
// are. A node number given by [WithNode], or the 0 of a generator that is given
// none, is the caller's promise that no other generator uses it at the same time,
// and that a new one with the same number starts with a clock later than the last
// ID of the old one. A step back followed by a restart breaks that promise.
//
// IDs are not secret: they tell when and where they were issued, and the next
// one can be guessed.
package generator
