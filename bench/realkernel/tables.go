package realkernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// card is a report, by subjects and faults.
type card struct {
	report   kernel.Report
	faults   []kernel.Fault // that were run
	subjects []kernel.SubjectInfo
	rows     map[[2]string]kernel.Row // by subject and fault
}

// section makes the tables and targets of a report.
func section(report kernel.Report, faults []kernel.Fault, subjects []kernel.SubjectInfo) results.Section {
	c := card{report: report, rows: map[[2]string]kernel.Row{}}
	ran, took := map[string]bool{}, map[string]bool{}
	for _, r := range report.Rows {
		c.rows[[2]string{r.Subject, r.Fault}] = r
		ran[r.Fault], took[r.Subject] = true, true
	}
	for _, f := range faults {
		if ran[f.Name] {
			c.faults = append(c.faults, f)
		}
	}
	for _, s := range subjects {
		if took[s.Name] {
			c.subjects = append(c.subjects, s)
			delete(took, s.Name)
		}
	}
	for _, r := range report.Rows { // those that meet one fault only
		if took[r.Subject] {
			c.subjects = append(c.subjects, kernel.SubjectInfo{Name: r.Subject, Group: r.Group})
			delete(took, r.Subject)
		}
	}
	out := results.Section{Targets: c.targets(len(faults)), Tables: []results.Table{c.facts()}}
	add := func(t results.Table) {
		if len(t.Rows) > 0 {
			out.Tables = append(out.Tables, t)
		}
	}
	for _, g := range groups {
		some := slices.DeleteFunc(slices.Clone(c.faults), func(f kernel.Fault) bool { return !g.has(f) })
		if len(some) > 0 {
			add(c.grid(results.Table{ID: "kernel-card-" + g.id, Title: g.title, Detail: true}, some, judge))
		}
	}
	add(c.sentences("kernel-known", "Documented exceptions", true, func(r kernel.Row) string {
		if r.Group != kernel.Ours {
			return "" // the documentation of others is not ours to quote
		}
		return r.Known
	}))
	add(c.sentences("kernel-counts", "Power cuts, and NFS", false, func(r kernel.Row) string { return r.Note }))
	add(c.sentences("kernel-broken", "Promises that did not hold", true, func(r kernel.Row) string { return strings.Join(r.Broken, "; ") }))
	add(c.sentences("kernel-error", "First call or start that failed", true, func(r kernel.Row) string { return r.Verdict.Error }))
	add(c.clocks())
	add(c.list())
	all := c.grid(results.Table{}, c.faults, judge)
	summary := all.Outcomes()
	summary.ID, summary.Title, summary.Detail = "kernel-summary", "Number of faults on a real kernel by outcome", true
	summary.Charts = []results.Chart{{ID: "kernel-summary", Title: "Faults on a real kernel by outcome", YLabel: "faults"}}
	add(summary)
	for _, q := range quantities {
		add(c.grid(results.Table{ID: "kernel-" + q.id, Title: q.title, Detail: true}, c.faults, func(r kernel.Row) results.Cell { return q.of(r.Verdict) }, results.Column{Unit: q.unit, Better: q.better}))
	}
	add(c.how())
	for _, skip := range report.Skipped {
		out.Notes = append(out.Notes, fmt.Sprintf("The fault %s was not run: %s.", skip.Fault, strings.TrimSuffix(skip.Why, ".")))
	}
	return out
}

// groups are the faults of one table each: all of them would be too wide for a page.
var groups = []struct {
	id, title string
	has       func(kernel.Fault) bool
}{
	{"clock", "Clocks", func(f kernel.Fault) bool { return f.Kind == kernel.Clocks && !restarts(f) }},
	{"restart", "Clocks, and a restart", restarts},
	{"process", "Processes", func(f kernel.Fault) bool { return f.Kind == kernel.Processes }},
	{"copy", "Machines that stop or are copied", func(f kernel.Fault) bool { return f.Kind == kernel.Copies }},
	{"disk", "Disks", func(f kernel.Fault) bool { return f.Kind == kernel.Disks }},
}

// restarts says whether a process is started again after its clock went wrong.
func restarts(f kernel.Fault) bool {
	return f.Kind == kernel.Clocks && strings.HasPrefix(f.Name, "restart-")
}

// name is that of a subject in the tables.
func name(s kernel.SubjectInfo) string {
	if s.Group == kernel.Ours {
		return "tickflake, " + s.Name
	}
	return s.Name
}

func group(s kernel.SubjectInfo) results.Group {
	if s.Group == kernel.Ours {
		return results.Ours
	}
	return results.Peers
}

// grid fills a table with a row per subject and a column per fault. A subject without any
// of the faults has no row.
func (c card) grid(t results.Table, faults []kernel.Fault, cell func(kernel.Row) results.Cell, column ...results.Column) results.Table {
	t.RowName = "generator"
	for _, f := range faults {
		in := results.Column{}
		if len(column) > 0 {
			in = column[0]
		}
		in.ID, in.Title = f.Name, f.Name
		t.Columns = append(t.Columns, in)
	}
	for _, s := range c.subjects {
		line, any := results.Row{Name: name(s), Group: group(s)}, false
		for _, f := range faults {
			r, ok := c.rows[[2]string{s.Name, f.Name}]
			any = any || ok
			if ok && r.Skipped == "" {
				line.Cells = append(line.Cells, cell(r))
			} else {
				line.Cells = append(line.Cells, results.Cell{Text: results.NotRun})
			}
		}
		if any {
			t.Rows = append(t.Rows, line)
		}
	}
	return t
}

func (c card) clocks() results.Table {
	t := results.Table{ID: "kernel-clocks", Title: "How much further each clock moved than the host's", RowName: "fault", Detail: true, Columns: []results.Column{
		{ID: "host", Title: "time on the host"}, {ID: "realtime", Title: "CLOCK_REALTIME"}, {ID: "monotonic", Title: "CLOCK_MONOTONIC"}, {ID: "boottime", Title: "CLOCK_BOOTTIME"},
		{ID: "rate", Title: "CLOCK_MONOTONIC against RAW", Unit: "ppm"}, {ID: "steps", Title: "steps of CLOCK_REALTIME"}, {ID: "back", Title: "largest step back"},
		{ID: "ahead", Title: "largest step ahead"}, {ID: "note", Title: "note"}}}
	for _, k := range c.report.Clocks {
		note := k.Note
		if k.Steps == 1 {
			note = strings.Join(slices.DeleteFunc([]string{"stepped at " + k.When.UTC().Format("15:04:05.000"), note}, func(s string) bool { return s == "" }), "; ")
		}
		t.Rows = append(t.Rows, results.Row{Name: k.Fault, Cells: []results.Cell{
			lasts(k.Host), moved(k.Realtime, k.Host), moved(k.Monotonic, k.Host), moved(k.Boottime, k.Host), rate(k.Monotonic, k.Raw),
			counted(k.Steps), lasts(k.Back), lasts(k.Ahead), {Text: note}}})
	}
	return t
}

// facts are about the machine and the run.
func (c card) facts() results.Table {
	ids, calls := 0, 0
	for _, r := range c.report.Rows {
		ids, calls = ids+r.Verdict.IDs, calls+1
	}
	t := results.Table{ID: "kernel-run", Title: "The machine", RowName: "of the run", Columns: []results.Column{{ID: "is", Title: "was"}}}
	for _, line := range [][2]string{
		{"kernel", c.report.Kernel}, {"emulator", "QEMU " + strings.TrimPrefix(c.report.QEMU, "QEMU ")},
		{"faults", count(len(c.faults))}, {"generators", count(len(c.subjects))}, {"IDs counted", count(ids)},
	} {
		t.Rows = append(t.Rows, results.Row{Name: line[0], Cells: texts(line[1])})
	}
	return t
}

func (c card) list() results.Table {
	t := results.Table{ID: "kernel-list", Title: "The faults on a real kernel", RowName: "fault", Detail: true, Columns: []results.Column{{ID: "what", Title: "what happens"}}}
	for _, f := range c.faults {
		t.Rows = append(t.Rows, results.Row{Name: f.Name, Cells: texts(f.About)})
	}
	return t
}

// sentences lists a text of rows, in the order of faults. Equal texts of one fault stand in
// one row.
func (c card) sentences(id, title string, detail bool, of func(kernel.Row) string) results.Table {
	t := results.Table{ID: id, Title: title, RowName: "fault", Detail: detail, Columns: []results.Column{{ID: "who", Title: "generators"}, {ID: "what", Title: ""}}}
	for _, f := range c.faults {
		who := map[string][]string{}
		var said []string
		for _, s := range c.subjects {
			text := of(c.rows[[2]string{s.Name, f.Name}])
			if text == "" {
				continue
			}
			if who[text] == nil {
				said = append(said, text)
			}
			who[text] = append(who[text], name(s))
		}
		for i, text := range said {
			row := f.Name
			if i > 0 {
				row = fmt.Sprintf("%s (%d)", f.Name, i+1)
			}
			t.Rows = append(t.Rows, results.Row{Name: row, Cells: texts(strings.Join(who[text], "; "), text)})
		}
	}
	return t
}

// how says how each subject was made, and through which faults it cannot be driven.
func (c card) how() results.Table {
	t := results.Table{ID: "kernel-how", Title: "How each was made", RowName: "generator", Detail: true,
		Columns: []results.Column{{ID: "made", Title: "made by"}, {ID: "none", Title: "cannot be driven"}}}
	for _, s := range c.subjects {
		faults := map[string][]string{}
		var why []string
		for _, f := range c.faults {
			text := c.rows[[2]string{s.Name, f.Name}].Skipped
			if text == "" {
				continue
			}
			if faults[text] == nil {
				why = append(why, text)
			}
			faults[text] = append(faults[text], f.Name)
		}
		for i, text := range why {
			why[i] = strings.Join(faults[text], ", ") + ": " + text
		}
		t.Rows = append(t.Rows, results.Row{Name: name(s), Group: group(s), Cells: texts(s.How, strings.Join(why, "; "))})
	}
	return t
}

// targets hold tickflake to its promises. A run without all faults does not decide them.
func (c card) targets(all int) []results.Target {
	var duplicates, disorder, broken, rows int
	why := ""
	for _, r := range c.report.Rows {
		if r.Group != kernel.Ours || r.Skipped != "" {
			continue
		}
		rows++
		if r.Known == "" {
			duplicates += r.Verdict.Duplicates
		}
		disorder += r.Verdict.Disorder
		broken += len(r.Broken)
		if why == "" && len(r.Broken) > 0 {
			why = r.Fault + ", " + r.Subject + ": " + r.Broken[0]
		}
	}
	open := ""
	if n := len(c.faults); n < all {
		open = fmt.Sprintf("%d of %d faults were run", n, all)
	}
	target := func(id, text, unit string, n int) results.Target {
		t := results.Target{ID: "kernel-" + id, Text: "On a real kernel: " + text, Unit: unit, AtMost: true, Why: why}
		if rows > 0 {
			t.Got = results.Cell{Samples: []float64{float64(n)}}
		}
		if n == 0 { // a miss is a miss, however few the faults
			t.Open = open
		}
		return t
	}
	return []results.Target{
		target("duplicates", "IDs of tickflake that came twice, but for documented exceptions", "", duplicates),
		target("disorder", "IDs of tickflake out of order in their process", "", disorder),
		target("promises", "other promises of tickflake that did not hold, such as the longest wait", "", broken),
	}
}

// verdict says where tickflake issues an ID twice, and which peers do.
func verdict(s results.Section) string {
	if len(s.Table("kernel-run").Rows) == 0 {
		return ""
	}
	var peers, ours, known []string
	note := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, t := range s.Tables {
		if !strings.HasPrefix(t.ID, "kernel-card-") {
			continue
		}
		for _, r := range t.Rows {
			for i, c := range r.Cells {
				switch fault := t.Columns[i].ID; {
				case !strings.HasPrefix(c.Text, "✗") || !strings.Contains(c.Text, " dup"):
				case r.Group == results.Peers:
					note(&peers, r.Name)
				case strings.HasSuffix(c.Text, "*"):
					note(&known, fault)
				default:
					note(&ours, fault)
				}
			}
		}
	}
	said := "On " + s.Table("kernel-run").Cell("kernel", "is").Text + ", "
	if len(ours) == 0 {
		said += "tickflake issues no ID twice"
	} else {
		said += "tickflake issues IDs twice in " + results.List(ours)
	}
	if len(known) > 0 {
		said += ", but for the documented exception " + results.List(known)
	}
	switch len(peers) {
	case 0:
	case 1:
		said += "; " + peers[0] + " does in some faults"
	default:
		said += "; " + results.List(peers) + " do in some faults"
	}
	return said + "."
}
