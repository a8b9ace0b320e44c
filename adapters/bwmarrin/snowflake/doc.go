// Package snowflake has the names of github.com/bwmarrin/snowflake, and issues its
// IDs by tickflake. To migrate, a program changes its import path:
//
//	import "github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
//
// IDs keep their type, their bits and all of their text forms, so existing IDs stay valid.
// docs/migrate/bwmarrin.md has the steps.
//
// # What is better
//
//   - [NewLeasedNode] issues IDs that are unique across restarts and processes, whatever the clocks
//     say. [NewNode] keeps no state across a restart; within a process, nodes of one number issue no ID twice.
//   - A call in a full millisecond sleeps, and does not keep a processor busy.
//   - [Node.GenerateContext] returns an error instead of waiting or panicking.
//
// # What is different
//
//   - NewNode fails if the layout that [Epoch], [NodeBits] and [StepBits] describe cannot work now.
//     The original wraps around and continues.
//   - Under testing/synctest, set an Epoch before the year 2000.
//   - [ParseBase32] and [ParseBase58] refuse what is no ID. The original reads many such texts
//     as a wrong number.
//   - [ID.Base32] and [ID.Base58] write a negative number as the unsigned one with the
//     same 64 bits, where the original panics.
//   - [ID.Time], [ID.Node] and [ID.Step] use the present values of Epoch, NodeBits and StepBits.
//   - [Node.Generate] panics when a wait does not help: see there.
package snowflake
