// Package protocol decides what a keeper of package lease writes to a store. It has no
// state, reads no clock and calls no store, so that the whole protocol is read, tested
// and simulated in one place: [Decide] turns the cells that a round has read into at most
// one write.
//
// # Safety
//
// A cell keeps the limit of one node number: the first tick that is granted to no
// process yet. The following lines make every grant disjoint from every other. Each is
// marked in the code with its number.
//
//  1. A claim begins at or above the limit that stood before it, and raises that limit by
//     compare-and-swap. So two claims never grant one tick.
//  2. An extension never lowers the limit, and is conditional on the version that the
//     holder wrote or adopted last. If it fails, the cell was taken at or above the
//     holder's limit, so the rest of the grant still belongs to the holder.
//  3. A limit is lowered only by the holder, after its window was sealed, to the first
//     tick that was not used, and never below the floor of its own claim: below it an
//     earlier holder may still issue.
//  4. Each write has a new random name. A write of unknown outcome counts only
//     after its name was read in the cell. The outcome is never guessed, and a copy of the
//     process's memory cannot take another's write for its own.
//  5. A write of unknown outcome that lands late is conditional on its version, so at most
//     one of several lands. A forgotten write that lands costs only the number.
//
// No line depends on a clock, a timeout or the length of a pause. Clocks decide which cell
// counts as free; a wrong guess costs a holder its cell, and makes no duplicate.
//
// A store that loses an acknowledged write breaks line 1. A process that reads a limit
// below one that it owns knows that this happened: see [WentBack].
package protocol
