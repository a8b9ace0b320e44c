package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/integration/servers"
)

const kernelTitle = "On a real kernel"

func kernelSection() measure.Section {
	return measure.Section{ID: "kernel", Title: kernelTitle, Full: 8 * time.Minute,
		About: "A virtual machine boots a kernel of Debian under software emulation. Its clocks are really stepped, slewed and suspended, its processes are killed, its memory is copied, and its disks lose writes. " +
			"All generators run beside each other; each issues ten IDs at a time and then sleeps for 10 ms. " +
			"A call that took longer, or an ID ahead of the clock, by at most " + report.Span(noise) + " is not mentioned. " +
			"A stall is the longest call less the longest stall of an idle thread, for an emulated machine stalls by itself. docs/evidence.md says how it works, and what it cannot show; `tickflake-chaos kernel` prints what each fault did to each generator, and how far the clocks moved.",
		Measure: measureKernel}
}

// noise is the longest stall, and the largest lead, that is not mentioned.
const noise = 100 * time.Millisecond

func measureKernel(ctx context.Context, run *measure.Run) report.Section {
	if run.Quick {
		return report.Section{Skipped: "A quick run has no time for it: the boot of a machine under emulation and one fault take longer than the rest of the run. `go run ./bench --only kernel` runs it."}
	}
	found, err := kernel.Find()
	if err != nil {
		return report.Section{Skipped: fmt.Sprintf("There is no machine to boot: %s.", servers.Reason(err))}
	}
	got, err := kernel.Run(ctx, kernel.Options{Kernel: found, Seed: run.Rand.Uint64()})
	if err != nil && len(got.Rows) == 0 {
		return report.Section{Skipped: fmt.Sprintf("The faults could not be run: %s.", servers.Reason(err)), Failed: ctx.Err() == nil}
	}
	s := ofKernel(got, len(kernel.Faults()))
	if err != nil && ctx.Err() == nil {
		s.Note("The run ended early: %s.", servers.Reason(err))
	}
	return s
}

// name is that of a subject in the tables.
func name(r kernel.Row) string {
	if r.Group == kernel.Ours {
		return "tickflake, " + r.Subject
	}
	return r.Subject
}

// ofKernel makes the tables and targets of a report, of a run of some of so many faults.
func ofKernel(got kernel.Report, all int) report.Section {
	ran := map[string]bool{}
	for _, r := range got.Rows {
		ran[r.Fault] = true
	}
	out := report.Section{Targets: targets(got, len(ran), all), Tables: []report.Table{answer(got.Rows)}}
	out.Tables = append(out.Tables, subjects(got.Rows, out.Targets[0].State() == report.Missed))
	out.Note("%s, %d faults.", got.Kernel, len(ran))
	for _, skip := range got.Skipped {
		out.Note("The fault %s was not run: %s.", skip.Fault, strings.TrimSuffix(skip.Why, "."))
	}
	return out
}

// subjects is a table of what all faults together did to each generator. It says in which of them tickflake issues IDs twice,
// with a store and without one, and how many peers do.
func subjects(rows []kernel.Row, missed bool) report.Table {
	t := report.Table{ID: "kernel", Title: "All faults", RowName: "generator", Columns: []report.Column{{ID: "twice", Title: "IDs issued twice"},
		{ID: "step", Title: "a clock stepped back 1 h costs"}, {ID: "runs", Title: "faults"}, {ID: "ids", Title: "IDs"}}}
	of := map[string][]kernel.Row{}
	for _, r := range rows { // in the order of subjects; some meet one fault only
		if of[name(r)] == nil {
			t.Rows = append(t.Rows, report.Row{Name: name(r), Group: report.Group(r.Group)})
		}
		of[name(r)] = append(of[name(r)], r)
	}
	var stored, fixed []string // the faults in which tickflake issues IDs twice, with a store and without one
	peers, repeat := 0, 0
	for i, row := range t.Rows {
		ids, step := 0, report.Cell{}
		for _, r := range of[row.Name] {
			if ids += r.Verdict.IDs; r.Fault == stepBack {
				step = cost(r.Verdict)
			}
		}
		faults, again := twice(of[row.Name])
		switch {
		case row.Group == report.Peers:
			if peers++; len(faults) > 0 {
				repeat++
			}
		case strings.HasSuffix(row.Name, ", monoclock"), strings.HasSuffix(row.Name, ", raw"):
			fixed = append(fixed, faults...)
		default:
			stored = append(stored, faults...)
		}
		t.Rows[i].Cells = []report.Cell{again, step, report.One(float64(len(of[row.Name]))), report.One(float64(ids))}
	}
	said, without := "issues no ID twice", ""
	switch {
	case missed && len(stored) > 0:
		said = "issues IDs twice in " + causes(stored)
	case len(stored) > 0:
		said += ", except in copies of the machine: until the grant is next extended if they share the store, and without an end if the store is copied too"
	}
	if len(fixed) > 0 {
		without = " Without a store, it does in " + causes(fixed) + "."
	}
	t.Say("With a store, tickflake %s.%s Of the peers, %d of %d do in some faults.", said, without, repeat, peers)
	return t
}

// copies is what the faults that copy a machine are called.
const copies = "copies of the machine"

// causes says in words what faults are, each kind once.
func causes(faults []string) string {
	var kinds []string
	for _, kind := range faults {
		switch {
		case strings.HasPrefix(kind, "copy-"):
			kind = copies
		case strings.HasPrefix(kind, "restart-"):
			kind = "restarts after a step back"
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return report.List(kinds)
}

// twice says how many IDs of a subject came twice, and in which faults.
func twice(rows []kernel.Row) (faults []string, said report.Cell) {
	sum, told := 0, rows[0].Group != kernel.Ours // no peer can be told of a copy
	for _, r := range rows {
		if r.Verdict.Duplicates > 0 {
			sum, faults = sum+r.Verdict.Duplicates, append(faults, r.Fault)
			told = told || strings.HasSuffix(r.Fault, "-told") || strings.HasSuffix(r.Fault, "-vmclock")
		}
	}
	if sum == 0 {
		return nil, report.Cell{Text: "none"}
	}
	text := report.Figure(float64(sum)) + ": " + causes(faults)
	if !told {
		text = strings.Replace(text, copies, copies+" without VMClock or `Restored`", 1)
	}
	return faults, report.Cell{Text: text}
}

// cost is what a step back cost the callers.
func cost(v kernel.Verdict) report.Cell {
	stall, lead := time.Duration(v.Stall), time.Duration(v.Lead)
	text := "nothing"
	switch {
	case v.Duplicates > 0:
		text = report.Count(v.Duplicates, "duplicate ID")
	case v.Failed > 0:
		text = report.Count(v.Failed, "call") + " failed"
	case v.Disorder > 0:
		text = report.Figure(float64(v.Disorder)) + " out of order"
	case stall > noise:
		text = blocked(stall)
	case lead > noise:
		text = "IDs ahead by " + report.Span(lead)
	}
	return report.Cell{Text: text}
}

// blocked says so of a step back of an hour: no run waits for so long.
func blocked(stall time.Duration) string {
	return "calls blocked until the clock is back (watched for " + report.Span(stall) + ")"
}

// targets hold tickflake to its promises. A run without all faults does not decide them.
func targets(got kernel.Report, ran, all int) (list []report.Target) {
	counts, why := map[string]int{}, ""
	for _, r := range got.Rows {
		if r.Group != kernel.Ours {
			continue
		}
		if r.Known == "" {
			counts["duplicates"] += r.Verdict.Duplicates
		}
		counts["disorder"] += r.Verdict.Disorder
		counts["promises"] += len(r.Broken)
		if why == "" && len(r.Broken) > 0 {
			why = r.Fault + ", " + r.Subject + ": " + r.Broken[0]
		}
	}
	for _, t := range [][2]string{{"duplicates", "no ID of tickflake comes twice, but for documented exceptions"}, {"disorder", "no ID of tickflake is out of order in its process"},
		{"promises", "no other promise of tickflake is broken, such as the longest wait"}} {
		target := report.Target{ID: "kernel-" + t[0], Text: "On a real kernel: " + t[1], AtMost: true, Got: report.One(float64(counts[t[0]])), Why: why}
		if counts[t[0]] == 0 && ran < all { // a miss is a miss, however few the faults
			target.Open = fmt.Sprintf("%d of %d faults were run", ran, all)
		}
		list = append(list, target)
	}
	return list
}

// What is in the answer: a fault, and the subjects that are tickflake by their names in the other table.
const (
	stepBack     = "step-back-1h" // the fault
	notRun       = "–"
	withStore    = "tickflake, default, monoclock, lease"
	withoutStore = "tickflake, default, monoclock"
)

// answer is the table that opens the README too: what the three faults that users meet do to
// generators as they are set up at first. A copy of the machine does other things to a generator
// that is told of it.
func answer(rows []kernel.Row) report.Table {
	t := report.Table{ID: "kernel-answer", Title: "The faults that users meet", RowName: "generator", Columns: []report.Column{{ID: "restart-back-1s", Title: "clock −1 s, and a restart"},
		{ID: stepBack, Title: "clock −1 h, no restart"}, {ID: "copy-shared", Title: "a VM snapshot, beside its original"}}}
	const open = "tickflake, `generator.Open`, "
	for _, r := range []struct{ name, of, told string }{{generators.Bwmarrin, generators.Bwmarrin, ""}, {generators.Sonyflake, generators.Sonyflake, ""},
		{open + "the copy calls `Restored`", withStore, "-told"}, {open + "on a machine with VMClock", withStore, "-vmclock"},
		{open + "and nothing tells the copy", withStore, ""}, {"tickflake, without a store", withoutStore, ""}} {
		row := report.Row{Name: r.name, Group: report.Ours}
		if r.name == r.of {
			row.Group = report.Peers
		}
		for _, fault := range []string{t.Columns[0].ID, t.Columns[1].ID, t.Columns[2].ID + r.told} {
			cell := report.Cell{Text: notRun}
			if i := slices.IndexFunc(rows, func(one kernel.Row) bool { return name(one) == r.of && one.Fault == fault }); i >= 0 {
				cell = worst(rows[i])
			}
			row.Cells = append(row.Cells, cell)
		}
		if r.told != "" && row.Cells[2].Text == notRun {
			continue // the machine of the run had no VMClock: the row would say nothing of its own
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// worst is the worst that a fault did.
func worst(r kernel.Row) report.Cell {
	switch v := r.Verdict; {
	case v.Duplicates > 0:
		return report.Cell{Text: report.Count(v.Duplicates, "duplicate ID")}
	case time.Duration(v.Stall) >= time.Second && r.Fault == stepBack:
		return report.Cell{Text: blocked(time.Duration(v.Stall))}
	case time.Duration(v.Stall) >= time.Second:
		return report.Cell{Text: "calls blocked for " + report.Span(time.Duration(v.Stall)) + " or more"}
	case v.Failed > 0:
		return report.Cell{Text: "no duplicate; " + report.Count(v.Failed, "call") + " failed"}
	}
	return report.Cell{Text: "no duplicate"}
}
