// Package count is the protocol of counted numbers: what a process of package sequence knows of
// the cell of a sequence, and what it does next. [Machine] is a plain value that knows no store,
// clock, goroutine, context or lock. So one text is what runs in production, and what the
// explorer in this package's tests drives through every order of steps.
//
// # Files
//
//   - machine.go: the state, and the order of the operations,
//   - refill.go: what a refill or a close may do next,
//   - read.go: what a read says, what became of the writes before it, and a store that went back.
//
// # Safety
//
// A cell keeps the next index of one sequence: the first that is granted to no process. The
// following lines make every grant disjoint from every other. Each is marked in the code
// with its number.
//
//  1. A grant begins at the next index, and raises it by compare-and-swap, before an index
//     of it is used. So two grants never have one index.
//  2. A grant ends at the maximum: an index above it is not granted.
//  3. The next index is lowered only by the process that owns the indexes below it, after
//     its window was sealed, to the first index that it has not used, and never below the
//     range that it owns without a gap up to there. So these indexes were used by no process.
//     After a give-back of unknown outcome it owns them no more, unless the names of the writes
//     since show that the give-back has not landed.
//  4. Each write has a new random name. A write of unknown outcome counts only after its
//     name was read in the cell, as the last write or one before it. The outcome is never
//     guessed.
//  5. A write of unknown outcome that lands late is conditional on its version, so at most
//     one of several lands. One whose name the cell keeps no more cannot be recognized: its
//     indexes are never used.
//  6. In ordered mode, a grant goes to calls that had arrived before its write was sent, and that
//     still run: so each of its numbers was granted within the call that returns it.
//  7. A deletion makes the sequence final: no index of it is granted or given back any more. The
//     deletion and the next index are one write, so every grant ends at or below the index at which
//     the sequence is continued, anew or in another store.
//
// No line depends on a clock, a timeout or the length of a pause.
//
// # A store that breaks its word
//
// A store that loses an acknowledged write breaks line 1. Every write raises the count of
// writes, none lowers the most, and a cell keeps the names of its last writes. So a process
// knows that a write was lost when the cell that it reads is older than the one that it knows, or
// has a past without it, or has another sequence that was created after fewer numbers were
// granted. But one read may also be stale: of an older state than the store has. So:
//
//  8. A read that looks as if the store went back takes the reserved numbers back, and is a
//     suspicion until the next read. It ends when a read shows by its name that the write
//     which the process knows is in the past of the cell: then the numbers are its own
//     as before. A conflict proves nothing, nor does a count or most at or above ours: another
//     process may have written on what is left.
//  9. If a second read says so again, the cell is marked by compare-and-swap on the version of that
//     read: a stale version conflicts. Until the mark lands, or the suspicion ends, the process
//     is granted nothing. No process is granted an index of a marked cell. A process that
//     reads the cell after next was raised, and had not read the mark, gives its ranges up.
//  10. A cell that was written more often since than it keeps names may or may not have the known
//     write in its past. If all reads that looked so may have been stale, the process gives its
//     ranges up, and goes on as one that has just begun. If one showed a past that never had the
//     known write, only the mark ends the suspicion.
package count
