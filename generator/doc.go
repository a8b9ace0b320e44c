// Package generator issues 64-bit IDs that are unique, ordered by time, and safe
// from a clock that goes back.
//
// An [ID] packs the time, the number of the node that issued it, and a sequence
// number, as Twitter's Snowflake did; a [Layout] says how many bits each gets.
// A [Generator] counts slots, tick by tick, and hands out each once:
//
//	next = max(last slot + 1, first slot of the clock's tick)
//
// One atomic word holds the next slot. A clock that is stepped back, stands
// still or repeats itself changes only the second operand, so no slot is issued
// twice. What it can do is leave the next slot ahead of the clock, and then a
// strategy decides: wait, borrow from the future, or reject.
//
//	gen, err := generator.New(generator.WithNode(7))
//	if err != nil { … }
//	id, err := gen.Next()
//
// # What is guaranteed, and what is not
//
// Within one [Generator]: no ID is issued twice, and an ID that was returned
// before another call began is smaller, whatever the clock does.
//
// Between generators: IDs are distinct as long as node numbers are. A node
// number given by [WithNode] is the caller's promise that no other generator
// uses it at the same time, and that a new one with the same number starts with
// a clock later than the last ID of the old one. A step back followed by a
// restart breaks that promise.
//
// IDs are not secret: they tell when and where they were issued, and the next
// one can be guessed.
package generator
