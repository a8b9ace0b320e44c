// Package realkernel is the section of the report that puts tickflake and other generators
// through faults on a real kernel, in a virtual machine. Its program must begin with
// kernel.Main.
package realkernel

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "kernel", Title: "On a real kernel", Full: 8 * time.Minute,
		About: "A virtual machine boots a kernel of Debian under software emulation. Its clocks are really stepped, slewed and suspended, its processes are killed, its memory is copied, and its disks lose writes. " +
			"All generators run beside each other; each issues ten IDs at a time and then sleeps for 10 ms. " +
			"A cell is ✓ if every call was served, in order, at once; ✗ if an ID came twice (dup) or a promise of the generator's documentation was broken; " +
			"– if the generator cannot be driven through the fault; * if the exception is documented. Any other cell is the price: failed calls or starts (err), IDs out of order (disorder), " +
			"a call that took longer (stall) or an ID ahead of the clock (lead) by more than " + results.Span(noise) + ". " +
			"A stall is the longest call less the longest stall of an idle thread, for an emulated machine stalls by itself. docs/kernel.md says how it works, and what it cannot show.",
		Measure: func(ctx context.Context, run *measure.Run) results.Section {
			return bench{kernel.Find, kernel.Run, kernel.Faults, kernel.Subjects}.measure(ctx, run)
		},
		Verdict: verdict,
	}}
}

// noise is the longest stall, and the largest lead, that a cell does not show.
const noise = 100 * time.Millisecond

// bench is the part of package kernel that the section needs. Tests replace it.
type bench struct {
	find     func() (kernel.Kernel, error)
	run      func(context.Context, kernel.Options) (kernel.Report, error)
	faults   func() []kernel.Fault
	subjects func() []kernel.SubjectInfo
}

func (b bench) measure(ctx context.Context, run *measure.Run) results.Section {
	if run.Quick {
		return results.Section{Skipped: "A quick run has no time for it: the boot of a machine under emulation and one fault take longer than the rest of the run. `go run ./bench --only kernel` runs it."}
	}
	found, err := b.find()
	if err != nil {
		return results.Section{Skipped: fmt.Sprintf("There is no machine to boot: %s.", oneLine(err))}
	}
	o := kernel.Options{Kernel: found, Seed: run.Rand.Uint64()}
	faults := b.faults()
	begun := map[string]bool{}
	o.Progress = func(fault, text string) {
		begun[fault] = true
		if run.Progress != nil {
			run.Progress(len(begun)-1, max(len(faults), len(begun)), strings.TrimPrefix(fault+": "+text, ": "))
		}
	}
	report, err := b.run(ctx, o)
	if err != nil && len(report.Rows) == 0 {
		return results.Section{Skipped: fmt.Sprintf("The faults could not be run: %s.", oneLine(err)), Failed: ctx.Err() == nil}
	}
	s := section(report, faults, b.subjects())
	if err != nil && ctx.Err() == nil {
		s.Notes = append(s.Notes, fmt.Sprintf("The run ended early: %s.", oneLine(err)))
	}
	return s
}

func oneLine(err error) string {
	return strings.TrimSuffix(strings.Join(strings.Fields(err.Error()), " "), ".")
}
