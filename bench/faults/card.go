// Package faults has the sections of the report that put tickflake and other generators through
// faults: those of the catalogue, in virtual time, and those on a real kernel, in a virtual
// machine. Both make a card, and the same tables of it.
package faults

import (
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/generator/generatortest"
)

// Sections returns the two sections.
func Sections() []measure.Section { return []measure.Section{catalogueSection(), kernelSection()} }

// card has what every fault did to every subject.
type card struct {
	prefix   string       // of the IDs of its tables
	subjects []report.Row // without cells
	faults   []kernel.Fault
	outcomes map[[2]string]outcome // by subject and fault
}

// outcome is what a fault did to a subject.
type outcome struct {
	cell report.Cell // of the card: see effect
	// counts are those of the quantities that the card shows, by their IDs; durations are in
	// seconds.
	counts  map[string]report.Cell
	skipped bool // it was not run
}

// effect is a fault's effect: bad if a promise was broken, good if no caller noticed anything, and
// else the price. A stall or a lead up to noise is not noticed.
func effect(broken string, failed, disorder int, stall, lead generatortest.Seconds, noise time.Duration) report.Cell {
	price := ""
	switch {
	case failed > 0:
		price = number(failed) + " err"
	case disorder > 0:
		price = number(disorder) + " disorder"
	case time.Duration(stall) > noise:
		price = "stall " + report.Span(time.Duration(stall))
	case time.Duration(lead) > noise:
		price = "lead " + report.Span(time.Duration(lead))
	}
	switch {
	case broken != "":
		return report.Cell{Text: "✗ " + broken, Mark: report.Bad}
	case price != "":
		return report.Cell{Text: price}
	}
	return report.Cell{Text: "✓", Mark: report.Good}
}

func number(n int) string { return report.Figure(float64(n)) }

func counted(n int) report.Cell { return report.One(float64(n)) }

// counts are those that every card shows, by the IDs of their quantities.
func counts(duplicates, disorder, failed int, stall, lead generatortest.Seconds) map[string]report.Cell {
	return map[string]report.Cell{"duplicates": counted(duplicates), "disorder": counted(disorder), "errors": counted(failed), "stall": lasts(stall), "lead": lasts(lead)}
}

func lasts(s generatortest.Seconds) report.Cell {
	d := time.Duration(s)
	if d <= 0 {
		return counted(0)
	}
	return report.Cell{Samples: []float64{d.Seconds()}, Text: report.Span(d)}
}

// notRun is the text of a cell of a fault that was not run.
const notRun = "–"

// grid fills a table with a row per subject and a column per fault. A subject without any of the
// faults has no row.
func (c card) grid(t report.Table, faults []kernel.Fault, column report.Column, cell func(outcome) report.Cell) report.Table {
	t.ID, t.RowName = c.prefix+t.ID, "generator"
	for _, f := range faults {
		column.ID, column.Title = f.Name, f.Name
		t.Columns = append(t.Columns, column)
	}
	for _, s := range c.subjects {
		row, any := s, false
		for _, f := range faults {
			o, ok := c.outcomes[[2]string{s.Name, f.Name}]
			any = any || ok
			if ok && !o.skipped {
				row.Cells = append(row.Cells, cell(o))
			} else {
				row.Cells = append(row.Cells, report.Cell{Text: notRun})
			}
		}
		if any {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func shown(o outcome) report.Cell { return o.cell }

// quantity is a count of every outcome, whatever was promised.
type quantity struct {
	id, title, unit string
	better          report.Better
}

// quantities has a table for each. where ends the titles of those of every card.
func (c card) quantities(where string, more ...quantity) (all []report.Table) {
	for _, q := range append([]quantity{{"duplicates", "IDs issued twice" + where, "IDs", report.Less}, {"disorder", "IDs out of order" + where, "IDs", report.Less},
		{"errors", "Calls and starts that failed" + where, "", report.Less}, {"stall", "Longest stall of a call" + where, "s", report.Less},
		{"lead", "Largest lead of an ID over its clock" + where, "s", report.Less}}, more...) {
		all = append(all, c.grid(report.Table{ID: q.id, Title: q.title, Detail: true}, c.faults, report.Column{Unit: q.unit, Better: q.better},
			func(o outcome) report.Cell { return o.counts[q.id] }))
	}
	return all
}

// list says what the faults are.
func (c card) list(title string) report.Table {
	t := report.Table{ID: c.prefix + "list", Title: title, RowName: "fault", Detail: true, Columns: []report.Column{{ID: "what", Title: "what happens"}}}
	for _, f := range c.faults {
		t.Rows = append(t.Rows, report.Row{Name: f.Name, Cells: report.Texts(f.About)})
	}
	return t
}

// repeating returns some of the subjects of a table of duplicates, and the faults, that have any.
func repeating(t *report.Table, some func(report.Row) bool) (subjects, faults []string) {
	for i, column := range t.Columns {
		for _, r := range t.Rows {
			if !some(r) || len(r.Cells[i].Samples) == 0 || r.Cells[i].Samples[0] == 0 {
				continue
			}
			if !slices.Contains(subjects, r.Name) {
				subjects = append(subjects, r.Name)
			}
			if !slices.Contains(faults, column.ID) {
				faults = append(faults, column.ID)
			}
		}
	}
	return subjects, faults
}

// repeatingPeers returns the peers of which an ID came twice in some faults, and of how many.
func repeatingPeers(t *report.Table) (peers []string, of int) {
	theirs := func(r report.Row) bool { return r.Group == report.Peers }
	peers, _ = repeating(t, theirs)
	return peers, len(slices.DeleteFunc(slices.Clone(t.Rows), func(r report.Row) bool { return !theirs(r) }))
}
