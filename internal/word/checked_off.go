//go:build !invariants

package word

// Checked switches the checks on of what comments of the core claim: of the word, the soft limit, additions, ranges
// and cells. A program that is built with the tag invariants panics when one does not hold, as the race job and the
// simulation are. Else the checks cost nothing: a constant false ends each.
const Checked = false
