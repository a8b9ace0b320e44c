//go:build invariants

package invariants

// Enabled is whether the checks are compiled in.
const Enabled = true
