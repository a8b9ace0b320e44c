package check

import "time"

// Ledger has the last sight of each ID. It is what finds IDs that came twice on the kernel: in a process, after its
// restart, in a copy of the machine, and after a power cut.
type Ledger map[string]Sight

// Sight is where and when an ID was issued.
type Sight struct {
	By int           `json:"by"`    // the number of the process, of the machine, or of the power cut before which it was
	At time.Duration `json:"at_ns"` // as in [Checker.Add], or 0
}

// Add notes an ID, and returns its sight before, if it was issued before.
func (l Ledger) Add(id string, s Sight) (before Sight, twice bool) {
	before, twice = l[id]
	l[id] = s
	return before, twice
}
