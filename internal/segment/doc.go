// Package segment decides what a process of package sequence writes to a store. It has no
// state, reads no clock and calls no store, so that the whole protocol is read, tested and
// simulated in one place: [Decide] turns the cell that a round has read into at most one
// write.
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
//     After a give-back of unknown outcome it owns them no more, unless the count of writes
//     shows that the give-back has not landed.
//  4. Each write has a new random name. A write of unknown outcome counts only after its
//     name was read in the cell. The outcome is never guessed.
//  5. A write of unknown outcome that lands late is conditional on its version, so at most
//     one of several lands. One that landed and was followed by the write of another process
//     cannot be recognized: its indexes are never used.
//  6. In ordered mode, a grant goes to calls that began before its write was sent, and that
//     still run: so each of its numbers was granted within the call that returns it.
//  7. Every write raises the count of writes, and none lowers the most. After a process has
//     read or owned more than it reads now, or reads that a later grant began below the end
//     of its own, the store has lost a write: so also if it reads another sequence, which was
//     created without a deletion of its own. The process stops, and writes a mark until one
//     lands, and no process is granted an index of a marked cell. A process that reads the
//     cell after next was raised, and had not read the mark, gives its ranges up.
//  8. An export makes the cell final: no index of it is granted or given back any more. The
//     export and the next index are one write, so every grant of this store ends at or below
//     the index at which the new store begins. A mark keeps the export.
//
// No line depends on a clock, a timeout or the length of a pause.
//
// A store that loses an acknowledged write breaks line 1, until a process with the proof of
// line 7 reads the cell.
package segment
