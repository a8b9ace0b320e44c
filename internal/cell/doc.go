// Package cell is the text of the cells that processes share in a store: what each says, how it
// is written and read, and the random names of writes. It decides nothing, and calls no store.
//
//   - [Node] says which ticks of a node number are granted, [Fleet] which layout and numbers a store has,
//     [Sequence] which indexes of a sequence are granted.
//   - A cell is one JSON object with a format. A text that no version of this library writes is
//     refused with an error that wraps [stores.ErrDamaged], so that a cell that was cut or edited
//     by hand costs its number, and not uniqueness.
//   - Each write has a name of its own, a [Token]. A cell keeps the names of the writes before it,
//     so that a process that reads it knows whether its own write is in the past of that cell.
//
// All values may be copied by assignment: a slice in them is never changed in place.
package cell
