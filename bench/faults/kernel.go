package faults

import (
	"cmp"
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
			"A cell is ✓ if every call was served, in order, at once; ✗ if an ID came twice (dup) or a promise of the generator's documentation was broken; " +
			"* if the exception is documented. Any other cell is the price: failed calls or starts (err), IDs out of order (disorder), " +
			"a call that took longer (stall) or an ID ahead of the clock (lead) by more than " + report.Span(noise) + ". " +
			"A stall is the longest call less the longest stall of an idle thread, for an emulated machine stalls by itself. docs/evidence.md says how it works, what each fault does to the clocks, and what it cannot show; `tickflake-chaos kernel` prints how far they moved.",
		Measure: measureKernel}
}

// noise is the longest stall, and the largest lead, that a cell does not show.
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
	s := ofKernel(got, kernel.Faults(), kernel.Subjects())
	if err != nil && ctx.Err() == nil {
		s.Note("The run ended early: %s.", servers.Reason(err))
	}
	return s
}

// groups are the faults of one table each: all of them would be too wide for a page.
var groups = []struct {
	id, title string
	kind      kernel.Kind
	restarts  bool // a process is started again after its clock went wrong
}{
	{"clock", "Clocks", kernel.Clocks, false}, {"restart", "Clocks, and a restart", kernel.Clocks, true}, {"process", "Processes", kernel.Processes, false},
	{"copy", "Machines that stop or are copied", kernel.Copies, false}, {"disk", "Disks", kernel.Disks, false},
}

// name is that of a subject in the tables.
func name(subject string, group kernel.Group) string {
	if group == kernel.Ours {
		return "tickflake, " + subject
	}
	return subject
}

// ofKernel makes the tables and targets of a report.
func ofKernel(got kernel.Report, faults []kernel.Fault, subjects []kernel.Subject) report.Section {
	c := card{prefix: "kernel-", outcomes: map[[2]string]outcome{}}
	made := map[string]string{}
	for _, s := range subjects {
		made[name(s.Name, s.Group)] = s.How
	}
	ran, seen := map[string]bool{}, map[string]bool{}
	for _, r := range got.Rows { // in the order of subjects; some meet one fault only
		who := name(r.Subject, r.Group)
		c.outcomes[[2]string{who, r.Fault}], ran[r.Fault] = judgeRow(r), true
		if !seen[who] {
			c.subjects = append(c.subjects, report.Row{Name: who, Group: report.Group(r.Group), Cells: report.Texts(cmp.Or(made[who], "–"))})
		}
		seen[who] = true
	}
	c.faults = slices.DeleteFunc(slices.Clone(faults), func(f kernel.Fault) bool { return !ran[f.Name] })
	out := report.Section{Targets: targets(got, len(c.faults), len(faults)), Tables: []report.Table{c.answer(), facts(got, c)}}
	duplicates := c.duplicates(out.Targets[0].State() == report.Missed)
	for _, g := range groups {
		some := slices.DeleteFunc(slices.Clone(c.faults), func(f kernel.Fault) bool {
			return f.Kind != g.kind || strings.HasPrefix(f.Name, "restart-") != g.restarts
		})
		out.Tables = append(out.Tables, c.grid("card-"+g.id, g.title, some, report.Column{}, effects))
	}
	out.Tables = append(out.Tables, c.sentences("known", "Documented exceptions", func(o outcome) string { return o.known }),
		c.sentences("broken", "Promises that did not hold", func(o outcome) string { return o.broken }),
		c.sentences("note", "What else was counted, and first calls that failed", func(o outcome) string { return o.note }),
		c.list("The faults on a real kernel"), c.how(report.Column{ID: "made", Title: "made by"}), duplicates,
		c.grid("ids", "IDs counted on a real kernel", c.faults, report.Column{Unit: "IDs"}, issued))
	out.Tables = slices.DeleteFunc(out.Tables, func(t report.Table) bool { return len(t.Rows) == 0 })
	for _, skip := range got.Skipped {
		out.Note("The fault %s was not run: %s.", skip.Fault, strings.TrimSuffix(skip.Why, "."))
	}
	return out
}

func judgeRow(r kernel.Row) outcome {
	v := r.Verdict
	o := outcome{effect: effect("", v.Failed, v.Disorder, v.Stall, v.Lead, noise), duplicates: v.Duplicates, ids: v.IDs,
		failed: v.Failed, stall: v.Stall, broken: strings.Join(r.Broken, "; "), note: cmp.Or(r.Note, v.Error)}
	broken := ""
	switch {
	case v.Duplicates > 0:
		broken = number(v.Duplicates) + " dup"
	case len(r.Broken) > 0 && v.Disorder > 0:
		broken = number(v.Disorder) + " disorder"
	case len(r.Broken) > 0:
		broken = strings.TrimPrefix(o.effect.Text, "✓")
	}
	if r.Group == kernel.Ours { // the documentation of others is not ours to quote
		o.known = r.Known
	}
	switch {
	case o.known != "":
		o.effect = report.Cell{Text: "✗ " + broken + "*", Mark: report.Bad}
	case broken != "" || len(r.Broken) > 0:
		o.effect = report.Cell{Text: strings.TrimSpace("✗ " + broken), Mark: report.Bad}
	}
	return o
}

// sentences lists texts of outcomes, in the order of faults. Equal texts of one fault stand in
// one row.
func (c card) sentences(id, title string, of func(outcome) string) report.Table {
	t := report.Table{ID: c.prefix + id, Title: title, RowName: "fault", Detail: true, Columns: []report.Column{{ID: "who", Title: "generators"}, {ID: "what", Title: "what"}}}
	for _, f := range c.faults {
		var said []string
		who := map[string][]string{}
		for _, s := range c.subjects {
			if text := of(c.outcomes[[2]string{s.Name, f.Name}]); text != "" {
				said, who[text] = append(said, text), append(who[text], s.Name)
			}
		}
		for i, text := range unique(said) {
			row := f.Name
			if i > 0 {
				row = fmt.Sprintf("%s (%d)", f.Name, i+1)
			}
			t.Rows = append(t.Rows, report.Row{Name: row, Cells: report.Texts(strings.Join(who[text], "; "), text)})
		}
	}
	return t
}

// facts are about the machine and the run.
func facts(got kernel.Report, c card) report.Table {
	ids := 0
	for _, r := range got.Rows {
		ids += r.Verdict.IDs
	}
	t := report.Table{ID: "kernel-run", Title: "The machine", RowName: "of the run", Columns: []report.Column{{ID: "is", Title: "was"}}}
	for _, f := range [][2]string{{"kernel", got.Kernel}, {"emulator", "QEMU " + got.QEMU}, {"faults", number(len(c.faults))}, {"generators", number(len(c.subjects))}, {"IDs counted", number(ids)}} {
		t.Rows = append(t.Rows, report.Row{Name: f[0], Cells: report.Texts(f[1])})
	}
	return t
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
		target := report.Target{ID: "kernel-" + t[0], Text: "On a real kernel: " + t[1], AtMost: true, Got: counted(counts[t[0]]), Why: why}
		if counts[t[0]] == 0 && ran < all { // a miss is a miss, however few the faults
			target.Open = fmt.Sprintf("%d of %d faults were run", ran, all)
		}
		list = append(list, target)
	}
	return list
}

// The subjects of the answer that are tickflake, by their names in the other tables.
const (
	withStore    = "tickflake, default, monoclock, lease"
	withoutStore = "tickflake, default, monoclock"
)

// answer is the table that opens the README too: what the three faults that users meet do to
// generators as they are set up at first. A copy of the machine does other things to a generator
// that is told of it.
func (c card) answer() report.Table {
	t := report.Table{ID: "kernel-answer", Title: "The faults that users meet", RowName: "generator", Columns: []report.Column{{ID: "restart-back-1s", Title: "clock −1 s, and a restart"},
		{ID: "step-back-1h", Title: "clock −1 h, no restart"}, {ID: "copy-shared", Title: "a VM snapshot, beside its original"}}}
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
			if o, ok := c.outcomes[[2]string{r.of, fault}]; ok {
				cell = o.worst(fault)
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
func (o outcome) worst(fault string) report.Cell {
	switch stall := time.Duration(o.stall); {
	case o.duplicates > 0:
		return report.Cell{Text: report.Count(o.duplicates, "duplicate ID"), Mark: report.Bad}
	case stall >= time.Second:
		text := "blocked for " + report.Span(stall) + " or more"
		if fault == "step-back-1h" { // no run waits for so long
			text = "blocked until the clock is back (watched for " + report.Span(stall) + ")"
		}
		return report.Cell{Text: text, Mark: report.Bad}
	case o.failed > 0:
		return report.Cell{Text: "no duplicate; " + report.Count(o.failed, "call") + " failed"}
	}
	return report.Cell{Text: "no duplicate", Mark: report.Good}
}

// duplicates is the table of IDs that came twice: in which faults tickflake's do, with a store and without one, and how many
// peers' do.
func (c card) duplicates(missed bool) report.Table {
	t := c.grid("duplicates", "IDs issued twice on a real kernel", c.faults, report.Column{Unit: "IDs", Better: report.Less}, twice)
	faults := func(stored bool) []string {
		_, faults, _ := repeating(t, func(r report.Row) bool {
			fixed := strings.HasSuffix(r.Name, ", monoclock") || strings.HasSuffix(r.Name, ", raw")
			return r.Group == report.Ours && fixed != stored
		})
		return faults
	}
	with, without, said := faults(true), "", "issues no ID twice"
	switch {
	case missed && len(with) > 0:
		said = "issues IDs twice in " + report.List(with)
	case len(with) > 0:
		said += ", except in copies of the machine: until the grant is next extended if they share the store, and without an end if the store is copied too"
	}
	if all := faults(false); len(all) > 0 {
		without = " Without a store, it does in " + report.Causes(all) + "."
	}
	peers, _, of := repeating(t, ofPeer)
	t.Say("With a store, tickflake %s.%s Of the peers, %d of %d do in some faults.", said, without, len(peers), of)
	return t
}
