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
	subjects []report.Row // their cells say how each was run
	faults   []kernel.Fault
	outcomes map[[2]string]outcome // by subject and fault, of those that were run
}

// outcome is what a fault did to a subject.
type outcome struct {
	effect                  report.Cell
	duplicates, ids, failed int
	stall                   generatortest.Seconds
	known, broken, note     string
}

// The cells of an outcome that tables show.
func effects(o outcome) report.Cell { return o.effect }
func twice(o outcome) report.Cell   { return counted(o.duplicates) }
func issued(o outcome) report.Cell  { return counted(o.ids) }

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

// notRun is the text of a cell of a fault that was not run.
const notRun = "–"

// grid is a table with a row per subject and a column per fault. Its ID ends with suffix. A subject without any of
// the faults has no row.
func (c card) grid(suffix, title string, faults []kernel.Fault, column report.Column, show func(outcome) report.Cell) report.Table {
	t := report.Table{ID: c.prefix + suffix, Title: title, RowName: "generator", Detail: true}
	for _, f := range faults {
		column.ID, column.Title = f.Name, f.Name
		t.Columns = append(t.Columns, column)
	}
	for _, s := range c.subjects {
		row, ran := report.Row{Name: s.Name, Group: s.Group}, false
		for _, f := range faults {
			cell := report.Cell{Text: notRun}
			if o, ok := c.outcomes[[2]string{s.Name, f.Name}]; ok {
				cell, ran = show(o), true
			}
			row.Cells = append(row.Cells, cell)
		}
		if ran {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// list says what the faults are.
func (c card) list(title string) report.Table {
	t := report.Table{ID: c.prefix + "list", Title: title, RowName: "fault", Detail: true, Columns: []report.Column{{ID: "what", Title: "what happens"}}}
	for _, f := range c.faults {
		t.Rows = append(t.Rows, report.Row{Name: f.Name, Cells: report.Texts(f.About)})
	}
	return t
}

// how says how each was run.
func (c card) how(columns ...report.Column) report.Table {
	return report.Table{ID: c.prefix + "how", Title: "How each was run", RowName: "generator", Detail: true, Columns: columns, Rows: c.subjects}
}

// repeating returns the subjects of a table of duplicates, of those that some is true of, and the faults, that have
// any, and of how many subjects.
func repeating(t report.Table, some func(report.Row) bool) (subjects, faults []string, of int) {
	rows := slices.DeleteFunc(slices.Clone(t.Rows), func(r report.Row) bool { return !some(r) })
	for i, column := range t.Columns {
		for _, r := range rows {
			if len(r.Cells[i].Samples) > 0 && r.Cells[i].Samples[0] > 0 {
				subjects, faults = append(subjects, r.Name), append(faults, column.ID)
			}
		}
	}
	return unique(subjects), slices.Compact(faults), len(rows)
}

// unique returns words in their order, each once.
func unique(words []string) (once []string) {
	for _, w := range words {
		if !slices.Contains(once, w) {
			once = append(once, w)
		}
	}
	return once
}

func ofPeer(r report.Row) bool { return r.Group == report.Peers }
