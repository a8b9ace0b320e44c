//go:build invariants

package word

// Checked is whether the checks are compiled in.
const Checked = true
