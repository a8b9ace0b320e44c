// Package kernel puts generators through clock faults on a real Linux kernel, in a virtual
// machine: clocks that are really stepped, slewed and suspended, processes that are really
// killed, disks that really lose writes.
//
// You need these names: [Main] must come first in the program, [Run] runs [Faults] and
// returns a [Report], [Find] finds the kernel, and [Subjects] lists the generators. The
// command tickflake-chaos kernel does all of this, also with a program of yours;
// docs/evidence.md of the repository says what each fault does to the clocks, and what the
// bench cannot show.
//
// The machine is QEMU with software emulation, so it needs no rights and no nested
// virtualization. It boots a kernel of Debian with an initramfs whose /init is the running
// program itself: [Main] notices that, and does the work of process 1. The generators run in
// another process of the same program. Package internal/guest makes the faults in the machine;
// package internal/machine pauses, suspends and copies the machine, and cuts its power.
package kernel

import (
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/machine"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
)

// Main must be the first call of main, or of TestMain. In the virtual machine, where this
// program is process 1 or a subject, it does their work and never returns. Elsewhere it
// does nothing.
func Main() { guest.Main() }

// Kernel is a kernel of Debian on the host's disk.
type Kernel = machine.Kernel

// Find returns a kernel of this host that the bench can boot. Its error says how
// to get one.
func Find() (Kernel, error) { return machine.Find() }

// Fault is something that happens to a clock, a process, a disk or the machine. Its Name, About
// and Kind are for users.
type Fault = guest.Fault

// Faults returns all faults, in the order of the report.
func Faults() []Fault { return guest.List() }

// Subject is a generator that meets the faults. Its Name, Group and How are for users.
type Subject = subject.Subject

// Subjects returns all generators, in the order of the report, the mutants last.
func Subjects() []Subject { return subject.All() }

// Group tells which subjects belong together.
type Group = subject.Group

// The groups of subjects.
const (
	Ours    = subject.Ours
	Peers   = subject.Peers
	Mutants = subject.Mutants
	Program = subject.Program // of the user: Options.Program
)

// Options are those of a [Run]. The zero value runs all faults on all subjects.
type Options struct {
	Faults   []string // names; empty: all
	Subjects []string // names; empty: all that are not mutants
	// Program is the path of a program for Linux that prints one ID per line: it is the
	// only subject, and is started, killed and started again as the fault says.
	Program  string
	Args     []string // of Program
	Ordered  bool     // the IDs of one process of Program must ascend
	Kills    int      // of the fault that kills, and copies of those with VMClock; 0: 100, and 6
	Seed     uint64
	Progress func(fault, text string) // called from one goroutine at a time; may be nil
	Kernel   Kernel                   // from Find; its zero value: that of Find
	// Fetch says to download a kernel with apt-get, into the user's cache directory, if there is none and
	// $TICKFLAKE_KERNEL names no other directory. It needs no rights.
	Fetch bool
}

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
