package results

import (
	"fmt"
	"math"
)

// Comparison is how one report stands to an earlier one.
type Comparison struct {
	Before, After *Report
	Warnings      []string // why the two may not be comparable
	Tables        []ComparedTable
	OnlyBefore    []string // rows, columns and tables that the other one does not have
	OnlyAfter     []string
}

// ComparedTable is a table that both reports have.
type ComparedTable struct {
	Title string
	Cells []ComparedCell
	Means []Mean
	Same  int // cells with one and the same text or figure in both, which are not among Cells
}

// ComparedCell is a cell that both reports have.
type ComparedCell struct {
	Row           string
	Column        Column
	Before, After Cell
	// Difference is how After stands to Before, where Measured says that both were
	// measured. Otherwise, their texts differ.
	Difference Difference
	Measured   bool
}

// Mean is the geometric mean of the ratios in a column.
type Mean struct {
	Column Column
	Ratio  float64
	N      int
}

// Tested says that there are enough samples to ask whether chance alone makes the
// difference.
func (c ComparedCell) Tested() bool {
	return c.Measured && c.Difference.Testable()
}

// Verdict says what a significant change is for the better or the worse: "better",
// "worse", or nothing.
func (c ComparedCell) Verdict() string {
	if !c.Measured || !c.Difference.Significant() {
		return ""
	}
	before, after := c.Before.Median(), c.After.Median()
	switch {
	case c.Column.Better == Neither || before == after:
		return ""
	case (after < before) == (c.Column.Better == Less):
		return "better"
	}
	return "worse"
}

// Compare puts two reports side by side, as far as they measured the same.
func Compare(before, after *Report) Comparison {
	c := Comparison{Before: before, After: after, Warnings: mismatches(before, after)}
	c.compareTargets()
	old, fresh := before.tables(), after.tables()
	for _, t := range fresh {
		if find(old, t.ID) == nil {
			c.OnlyAfter = append(c.OnlyAfter, fmt.Sprintf("table %q", t.Title))
		}
	}
	for _, t := range old {
		other := find(fresh, t.ID)
		if other == nil {
			c.OnlyBefore = append(c.OnlyBefore, fmt.Sprintf("table %q", t.Title))
			continue
		}
		c.Tables = append(c.Tables, compareTables(t, other))
		c.OnlyBefore = append(c.OnlyBefore, missing(t, other)...)
		c.OnlyAfter = append(c.OnlyAfter, missing(other, t)...)
	}
	return c
}

// tables returns all tables of the report.
func (r *Report) tables() []*Table {
	var all []*Table
	for i := range r.Sections {
		for k := range r.Sections[i].Tables {
			all = append(all, &r.Sections[i].Tables[k])
		}
	}
	return all
}

// compareTargets compares what was measured for the targets.
func (c *Comparison) compareTargets() {
	table := ComparedTable{Title: "Targets"}
	fresh := map[string]Target{}
	for _, t := range c.After.Targets() {
		fresh[t.ID] = t
	}
	for _, t := range c.Before.Targets() {
		other, ok := fresh[t.ID]
		delete(fresh, t.ID)
		if !ok {
			c.OnlyBefore = append(c.OnlyBefore, fmt.Sprintf("target %q", t.Text))
			continue
		}
		column := Column{Unit: t.Unit, Better: More}
		if t.AtMost {
			column.Better = Less
		}
		table.add(other.Text, column, t.Got, other.Got)
	}
	for _, t := range c.After.Targets() {
		if _, ok := fresh[t.ID]; ok {
			c.OnlyAfter = append(c.OnlyAfter, fmt.Sprintf("target %q", t.Text))
		}
	}
	c.Tables = append(c.Tables, table)
}

func find(tables []*Table, id string) *Table {
	for _, t := range tables {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// missing are the rows and columns of t that other does not have.
func missing(t, other *Table) []string {
	var all []string
	for _, r := range t.Rows {
		if other.Row(r.Name) == nil {
			all = append(all, fmt.Sprintf("%q in table %q", r.Name, t.Title))
		}
	}
	for _, c := range t.Columns {
		if other.column(c.ID) < 0 {
			all = append(all, fmt.Sprintf("column %q of table %q", c.Title, t.Title))
		}
	}
	return all
}

func compareTables(before, after *Table) ComparedTable {
	t := ComparedTable{Title: after.Title}
	for _, column := range after.Columns {
		if before.column(column.ID) < 0 {
			continue
		}
		var cells []ComparedCell
		for _, row := range after.Rows {
			if before.Row(row.Name) != nil {
				cells = append(cells, t.add(row.Name, column, before.Cell(row.Name, column.ID), after.Cell(row.Name, column.ID)))
			}
		}
		if mean, ok := meanOf(cells); ok {
			t.Means = append(t.Means, mean)
		}
	}
	return t
}

// add adds a cell, unless there is nothing to say of it, and returns it.
func (t *ComparedTable) add(row string, column Column, before, after Cell) ComparedCell {
	c := ComparedCell{Row: row, Column: column, Before: before, After: after}
	c.Difference, c.Measured = after.Against(before)
	switch {
	case c.Measured && before.constant() && after.constant() && before.Samples[0] == after.Samples[0],
		!c.Measured && before.Label() == after.Label() && before.Text != "":
		t.Same++
	case c.Measured || before.Label() != after.Label():
		t.Cells = append(t.Cells, c)
	}
	return c
}

// meanOf is the mean of a column's ratios, if there are several and if they go one way:
// of bits, or of a share that may be 0, it would say nothing.
func meanOf(cells []ComparedCell) (Mean, bool) {
	sum, n := 0.0, 0
	for _, c := range cells {
		if !c.Measured {
			continue
		}
		if !(c.Difference.Ratio > 0) || c.Column.Better == Neither || min(c.Difference.N1, c.Difference.N2) < 2 {
			return Mean{}, false
		}
		sum += math.Log(c.Difference.Ratio)
		n++
	}
	if n < 2 {
		return Mean{}, false
	}
	return Mean{cells[0].Column, math.Exp(sum / float64(n)), n}, true
}

// mismatches says in what the two runs differ besides what they measured.
func mismatches(before, after *Report) []string {
	var all []string
	a, b := before.Machine, after.Machine
	for _, m := range []struct{ what, before, after string }{
		{"the processor", a.CPU, b.CPU},
		{"the number of cores", fmt.Sprint(a.Cores), fmt.Sprint(b.Cores)},
		{"the system", a.OS, b.OS},
		{"the kernel", a.Kernel, b.Kernel},
		{"the hypervisor", a.Virtual, b.Virtual},
		{"the clock source", a.ClockSource, b.ClockSource},
		{"the version of Go", a.Go, b.Go},
	} {
		if m.before != m.after {
			all = append(all, fmt.Sprintf("%s differs: %q before, %q after", m.what, m.before, m.after))
		}
	}
	for _, r := range []struct {
		*Report
		which string
	}{{before, "before"}, {after, "after"}} {
		if r.Quick {
			all = append(all, fmt.Sprintf("the run %s was a quick one", r.which))
		}
		if r.Interrupted {
			all = append(all, fmt.Sprintf("the run %s was interrupted", r.which))
		}
	}
	return all
}
