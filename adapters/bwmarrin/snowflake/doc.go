// Package snowflake has the names of github.com/bwmarrin/snowflake, and issues its
// IDs by tickflake. To migrate, a program changes its import path:
//
//	import "github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
//
// IDs keep their type, their bits and all of their text forms, so existing IDs stay
// valid. docs/migrate/bwmarrin.md has the
// steps: how to get past the old IDs, how to run both packages side by side, and how
// to go back.
//
// # What is better
//
//   - A call in a full millisecond sleeps, and does not keep a processor busy.
//   - [NewNode], called again with the same number, continues after the IDs of that number
//     in this process, even if the clock was stepped back in between.
//   - [NewLeasedNode] issues IDs that are unique across restarts and processes, whatever
//     the clocks say. It needs a lease, since a number given to [NewNode] has no state
//     across a restart.
//   - [Node.GenerateContext] returns an error instead of waiting or panicking, and
//     [Node.Generator] returns the generator with all its methods.
//
// # What is different
//
//   - NewNode fails if the layout that [Epoch], [NodeBits] and [StepBits] describe
//     cannot work: if they leave no bits for the time, if the epoch is before 1970 or
//     in the future, or if its time is over. The original wraps around and continues.
//   - Nodes with the same number, layout and epoch share their state in a process.
//     In a bubble of testing/synctest that has two consequences. Its time begins in
//     the year 2000, before the default Epoch: set an earlier Epoch. And a node belongs
//     to the bubble that it was made in: give each test its own number.
//   - [ParseBase32] and [ParseBase58] refuse a text that is empty, has a character outside
//     the alphabet, or stands for more than 64 bits. The original reads many of
//     those as a wrong number.
//   - [ID.Base32] and [ID.Base58] write a negative number as the unsigned one with the
//     same 64 bits, where the original panics.
//   - [ID.Time], [ID.Node] and [ID.Step] use the present values of Epoch, NodeBits and
//     StepBits, and not those of the last call of NewNode.
//   - [Node.Generate] panics when a wait does not help: see there.
package snowflake
