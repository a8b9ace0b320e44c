package kernel

import (
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// Main must be the first call of main, or of TestMain. In the virtual machine, where this
// program is process 1 or a subject, it does their work and never returns. Elsewhere it
// does nothing.
func Main() { guest.Main() }

// Fault is something that happens to a clock, a process, a disk or the machine.
type Fault struct {
	Name  string // "step-back-1s"
	About string // one line
	Kind  Kind
}

// Kind tells which faults belong together.
type Kind string

// The kinds of faults.
const (
	Clocks    Kind = "clock"
	Processes Kind = "process"
	Copies    Kind = "copy"
	Disks     Kind = "disk"
)

// Faults returns all faults, in the order of the report.
func Faults() []Fault {
	var all []Fault
	for _, f := range guest.List() {
		all = append(all, Fault{f.Name, f.About, Kind(f.Kind)})
	}
	return all
}

// SubjectInfo describes a generator that meets the faults.
type SubjectInfo struct {
	Name  string
	Group Group
	How   string // how it is made, or why it is not run
}

// Subjects returns all generators, in the order of the report, the mutants last.
func Subjects() []SubjectInfo {
	var all []SubjectInfo
	for _, s := range subject.All() {
		how := s.How
		if s.Skipped != "" {
			how = "not run: " + s.Skipped
		}
		all = append(all, SubjectInfo{s.Name, Group(s.Group), how})
	}
	return all
}

// Options are those of a [Run]. The zero value runs all faults on all subjects.
type Options struct {
	Faults   []string // names; empty: all
	Subjects []string // names; empty: all that are not mutants
	Groups   []Group  // empty: all but mutants
	// Program is the path of a program for Linux that prints one ID per line: it is the
	// only subject, and is started, killed and started again as the fault says.
	Program string
	Args    []string // of Program
	Ordered bool     // the IDs of one process of Program must ascend
	Cuts    int      // power cuts per file system; 0: 3
	Kills   int      // of the fault that kills; 0: 100
	Seed    uint64
	// Parallel is how many machines run at a time; 0: one per two processors, at least one.
	Parallel int
	Progress func(fault, text string) // called from one goroutine at a time; may be nil
	Log      string                   // directory for the logs of the machines; "": none are kept
	Kernel   Kernel                   // from Find
}
