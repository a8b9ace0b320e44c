package kernel

import (
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
)

// Report is the outcome of one [Run].
type Report struct {
	Kernel  string  `json:"kernel"`  // as uname -sr prints it, with the distribution's version
	QEMU    string  `json:"qemu"`    // its version
	Rows    []Row   `json:"rows"`    // in the order of faults, then of subjects
	Clocks  []Clock `json:"clocks"`  // one per fault that moves a clock
	Skipped []Skip  `json:"skipped"` // faults that were not run
}

// Row is one subject under one fault.
type Row struct {
	Fault   string  `json:"fault"`
	Subject string  `json:"subject"`
	Group   Group   `json:"group"`
	Skipped string  `json:"skipped,omitempty"` // why the subject cannot be driven
	Verdict Verdict `json:"verdict"`
	// Broken lists the promises of the subject that did not hold, one sentence each. It
	// is empty if all held. A peer's promises are those of its documentation.
	Broken []string `json:"broken,omitempty"`
	// Known is the documented exception that explains the duplicates, if there is one.
	Known string `json:"known,omitempty"`
	Note  string `json:"note,omitempty"` // what else was counted
}

// Verdict is what was counted.
type Verdict = check.Verdict

// Clock is how far each clock of the kernel moved during a fault, beside the time that
// passed on the host.
type Clock = guest.Clock

// Skip is a fault that was not run, and why.
type Skip struct {
	Fault string `json:"fault"`
	Why   string `json:"why"`
}

// Group tells which subjects belong together.
type Group string

// The groups of subjects.
const (
	Ours    Group = "tickflake"
	Peers   Group = "peer"
	Mutants Group = "mutant"
	Program Group = "program" // of the user: Options.Program
)
