package scorecard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator/generatortest"
)

const notRun = results.NotRun

// kinds are the violations, the worst first, in words that fit a cell.
var kinds = []struct {
	kind generatortest.Kind
	word string
}{
	{generatortest.Duplicate, "dup"},
	{generatortest.EndOfTime, "out of time"},
	{generatortest.Disorder, "disorder"},
	{generatortest.NoRecovery, "not recovered"},
	{generatortest.NoStart, "no start"},
	{generatortest.Stall, "stall"},
	{generatortest.Stale, "stale"},
	{generatortest.Lead, "lead"},
	{generatortest.Rejected, "rejected"},
	{generatortest.WrongError, "wrong err"},
}

// cell is the effect of a fault on a row: good if no caller noticed anything, bad if a promise
// was broken, and else the price.
func (r *row) cell(fault string) results.Cell {
	got, ok := r.ran(fault)
	if !ok {
		return results.Cell{Text: notRun}
	}
	c := r.judge(fault, got)
	if _, instead := r.Instead[fault]; instead {
		c.Text += "*"
	}
	return c
}

func (r *row) judge(fault string, got generatortest.Result) results.Cell {
	for _, k := range kinds {
		switch n := got.Violated[k.kind]; {
		case n == 0:
		case k.kind == generatortest.Stall:
			return results.Cell{Text: "✗ stall " + results.Span(got.LongestStall), Mark: results.Bad}
		case k.kind == generatortest.Lead:
			return results.Cell{Text: "✗ lead " + results.Span(got.LargestLead), Mark: results.Bad}
		default:
			return results.Cell{Text: "✗ " + count(n) + " " + k.word, Mark: results.Bad}
		}
	}
	switch {
	case got.Failed(): // a kind that has no word above
		return results.Cell{Text: "✗ " + got.Summary(), Mark: results.Bad}
	case got.Errors > 0 && !rightly(fault):
		return results.Cell{Text: count(got.Errors) + " err"}
	case got.Disorder > 0:
		return results.Cell{Text: count(got.Disorder) + " disorder"}
	case got.LongestStall > r.Tick:
		return results.Cell{Text: "stall " + results.Span(got.LongestStall)}
	case got.LargestLead > r.Tick:
		return results.Cell{Text: "lead " + results.Span(got.LargestLead)}
	}
	return results.Cell{Text: "✓", Mark: results.Good}
}

func count(n int) string { return results.Figure(float64(n)) }

// quantities are shown for every row and fault, whatever was promised.
var quantities = []struct {
	id, title, unit string
	of              func(generatortest.Result) results.Cell
}{
	{"stall", "Longest stall of a call", "s", func(r generatortest.Result) results.Cell { return lasts(r.LongestStall) }},
	{"errors", "Calls that failed", "calls", func(r generatortest.Result) results.Cell { return counted(r.Errors) }},
	{"lead", "Largest lead of an ID over the clock", "s", func(r generatortest.Result) results.Cell { return lasts(r.LargestLead) }},
	{"duplicates", "IDs issued twice", "IDs", func(r generatortest.Result) results.Cell { return counted(r.Duplicates) }},
	{"order", "IDs out of order", "IDs", func(r generatortest.Result) results.Cell { return counted(r.Disorder) }},
}

func lasts(d time.Duration) results.Cell {
	if d <= 0 {
		return results.Cell{Samples: []float64{0}, Text: "0"}
	}
	return results.Cell{Samples: []float64{d.Seconds()}, Text: results.Span(d)}
}

func counted(n int) results.Cell {
	return results.Cell{Samples: []float64{float64(n)}, Text: count(n)}
}

func tables(rows []*row, all []generatortest.Scenario) []results.Table {
	short := slices.DeleteFunc(slices.Clone(rows), func(r *row) bool { return r.strategy != nil && r.short != defaultName })
	list := results.Table{ID: "faults-list", Title: "The faults", RowName: "fault", Detail: true, Columns: []results.Column{{ID: "name", Title: "name"}, {ID: "what", Title: "what happens"}}}
	for _, f := range all {
		list.Rows = append(list.Rows, results.Row{Name: f.Fault, Cells: texts(f.Name, f.What)})
	}
	full := grid(rows, all, results.Table{ID: "faults-card", Title: "Score card of all strategies", Detail: true}, results.Column{}, (*row).cell)
	out := []results.Table{
		grid(short, all, results.Table{ID: "faults-default", Title: "Score card of the default strategy, and of peers"}, results.Column{}, (*row).cell),
		list, summary(short, all), full,
	}
	for _, q := range quantities {
		out = append(out, grid(rows, all, results.Table{ID: "faults-" + q.id, Title: q.title, Detail: true}, results.Column{Unit: q.unit, Better: results.Less},
			func(r *row, fault string) results.Cell {
				if got, ok := r.ran(fault); ok {
					return q.of(got)
				}
				return results.Cell{Text: notRun}
			}))
	}
	return append(out, how(rows, all))
}

// grid fills a table with a row per generator and a column per fault.
func grid(rows []*row, all []generatortest.Scenario, t results.Table, column results.Column, cell func(*row, string) results.Cell) results.Table {
	t.RowName = "generator"
	for _, f := range all {
		column.ID, column.Title = f.Fault, f.Fault
		t.Columns = append(t.Columns, column)
	}
	for _, r := range rows {
		line := results.Row{Name: r.Name, Group: r.group()}
		for _, f := range all {
			line.Cells = append(line.Cells, cell(r, f.Fault))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// summary counts the cells of each row.
func summary(rows []*row, all []generatortest.Scenario) results.Table {
	card := grid(rows, all, results.Table{}, results.Column{}, (*row).cell)
	t := card.Outcomes()
	t.ID, t.Title, t.Detail = "faults-summary", "Number of faults by outcome", true
	t.Charts = []results.Chart{{ID: "faults-summary", Title: "Faults by outcome", YLabel: "faults"}}
	return t
}

// how says how each row was driven, what it was held to, and what was not run.
func how(rows []*row, all []generatortest.Scenario) results.Table {
	t := results.Table{ID: "faults-how", Title: "How each was run", RowName: "generator", Detail: true, Columns: []results.Column{
		{ID: "version", Title: "version"}, {ID: "driven", Title: "driven by"}, {ID: "time", Title: "where its time comes in"},
		{ID: "promised", Title: "held to"}, {ID: "remarks", Title: "remarks"}, {ID: "none", Title: "not run"}}}
	for _, r := range rows {
		name, claim := r.Name, r.Claim
		if r.strategy != nil { // one stands for all
			if r.short != defaultName {
				continue
			}
			name, claim = "tickflake, "+string(r.setting), "the bounds of its strategy (strategies.Limits)"
		}
		if r.Ordered {
			claim += "; order, whatever the clock does"
		}
		remarks := grouped(all, func(fault string) string { return r.Instead[fault].Note })
		if r.Remark != "" {
			remarks = append(remarks, r.Remark)
		}
		none := grouped(all, func(fault string) string {
			if _, ok := r.ran(fault); ok {
				return ""
			}
			return r.results[fault].Skipped
		})
		t.Rows = append(t.Rows, results.Row{Name: name, Group: r.group(),
			Cells: texts(cmp.Or(r.Version(), "–"), string(r.Driven), r.How, claim, strings.Join(remarks, "; "), strings.Join(none, "; "))})
	}
	return t
}

func texts(all ...string) (cells []results.Cell) {
	for _, text := range all {
		cells = append(cells, results.Cell{Text: text})
	}
	return cells
}

// grouped returns the texts of the faults, each with the faults that it is about.
func grouped(all []generatortest.Scenario, of func(string) string) []string {
	ids := map[string][]string{}
	var lines []string
	for _, f := range all {
		text := of(f.Fault)
		if text == "" {
			continue
		}
		if ids[text] == nil {
			lines = append(lines, text)
		}
		ids[text] = append(ids[text], f.Fault)
	}
	for i, text := range lines {
		lines[i] = strings.Join(ids[text], ", ") + ": " + text
	}
	return lines
}

// verdict says in which faults a strategy under a lease issues an ID twice, and which peers
// do.
func verdict(s results.Section) string {
	t := s.Table("faults-duplicates")
	var faults, peers []string
	measured := false
	for _, r := range t.Rows {
		twice := false
		for i, c := range r.Cells {
			measured = measured || len(c.Samples) > 0
			if len(c.Samples) == 0 || c.Samples[0] == 0 {
				continue
			}
			twice = true
			if id := t.Columns[i].ID; strings.HasSuffix(r.Name, ", lease") && !slices.Contains(faults, id) {
				faults = append(faults, id)
			}
		}
		if twice && r.Group == results.Peers {
			peers = append(peers, r.Name)
		}
	}
	if !measured {
		return ""
	}
	said := "In these faults, no strategy issues an ID twice under a lease"
	if len(faults) > 0 {
		said += ", except in " + results.List(faults)
	}
	if len(peers) > 0 {
		said += "; " + results.List(peers) + " do in some faults"
	}
	return said + "."
}
