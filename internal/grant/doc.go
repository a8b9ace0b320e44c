// Package grant is the protocol of node numbers: what a keeper of package lease knows of a
// store's cells, and what it does next. [Machine] is a plain value that knows no store, clock,
// goroutine, context or lock. So the same code runs in production and in the simulated fleets,
// and the explorer in this package's tests drives it through every order of steps.
//
// # Files
//
//   - machine.go: the state, and the order of a step's operations,
//   - claim.go: what a claim may do next,
//   - hold.go: what an extension, a release and a store that went back may do next,
//   - fleet.go: which numbers a store has, and how they go to another one,
//   - past.go: which numbers issue IDs for old rows,
//   - choose.go, search.go: which number a claim takes,
//   - pace.go: when something is tried. Uniqueness depends on nothing in these three.
//
// # Safety
//
// A cell keeps the limit of one node number: the first tick that is granted to no
// process yet. The following lines make every grant disjoint from every other. Each is
// marked in the code with its number.
//
//  1. A claim begins at or above the limit that stood before it, and raises that limit by
//     compare-and-swap. So two claims never grant one tick.
//  2. An extension raises the limit, except at the end of time, and is conditional on the
//     version that the holder wrote or adopted last. So an older write of the holder has a lower
//     limit. If the extension fails, another process took the cell at or above the holder's
//     limit, and the rest of the grant still belongs to the holder.
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
// # A store that breaks its word
//
// A store that loses an acknowledged write breaks line 1, and a process that reads a limit below
// one that it owns knows that this happened. But a read may also be stale, and show an older
// state of the cell than the store has. So:
//
//  6. A read that looks as if the store went back revokes what was granted, and is a suspicion
//     until a second read. It ends when that read shows the last write of this process by its
//     name, or lists it among the names that the cell keeps. A conflict proves nothing, nor
//     does a limit at or above ours: another process may have written on what is left.
//  7. If the second read says so again, the cell's limit is raised to ours by compare-and-swap on the
//     version of that read: a stale version conflicts. No later claim of this process begins
//     below any limit that it ever saw.
package grant
