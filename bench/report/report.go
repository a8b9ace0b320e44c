// Package report is a run of the benchmark: its samples and statistics, and its forms: Markdown for people, whole or
// what is published, a summary for a terminal, and benchfmt text for benchstat.
//
// You need these names: [Report] has [Section] values, a section has [Table] and [Target]
// values, and a [Cell] of a table has one sample per round.
package report

import (
	"fmt"
	"slices"
)

// Report is one run.
type Report struct {
	Command     string // repeats the run
	Commit      string // of the code that was measured, if Git tells
	Quick       bool
	Interrupted bool // so cells or sections are missing
	Cores       int
	CPU         string
	Facts       [][2]string // what else is to be known of the machine and the run
	Sections    []Section
	// Published are the cells of the first table in the published run, by generator: what stands in
	// a column that this run leaves empty.
	Published map[string][]string
}

// Section is one kind of measurement.
type Section struct {
	ID      string // lower case, without spaces: it names links
	Title   string
	About   string  // what is measured, and how
	Skipped string  // why there are no figures
	Failed  bool    // the section was skipped because it failed
	Stolen  float64 // percent of the processors' time, by the hypervisor during the section
	Notes   []string
	Targets []Target
	Tables  []Table
}

// Note adds a sentence.
func (s *Section) Note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// Target is a bound that the library is held to.
type Target struct {
	ID     string
	Text   string // "Next: at most 1.08× the floor"
	Unit   string // "×", "%"
	Want   float64
	AtMost bool   // false: at least
	Got    Cell   // one sample per round
	Why    string // the cause of a miss, if it is known
	Open   string // why this run does not decide the target
}

// Table has a row per case and a column per quantity or setting.
type Table struct {
	ID      string // unique in the report
	Title   string
	RowName string // "case", "peer"
	Columns []Column
	Rows    []Row
	Base    string // the row that the others are compared with
	Verdict string // what the table shows, in one sentence
	brief   bool   // its figures stand without intervals
}

// Say sets the verdict, unless a cell among args has nothing to say.
func (t *Table) Say(format string, args ...any) {
	if !slices.ContainsFunc(args, func(a any) bool { c, ok := a.(Cell); return ok && c.String() == nothing }) {
		t.Verdict = fmt.Sprintf(format, args...)
	}
}

// Better is the direction in which a quantity improves; "" is neither.
type Better string

// The directions in which a quantity improves. A heading shows them.
const (
	Less Better = "↓"
	More Better = "↑"
)

// Column is a quantity, or one setting under which a quantity was measured.
type Column struct {
	ID     string // unique in the table
	Title  string
	Unit   string
	Better Better
}

// Group tells which rows belong together. A group has a colour.
type Group string

// The groups of rows.
const (
	Ours  Group = "tickflake"
	Peers Group = "peer"
	Floor Group = "floor" // the least possible
)

// Row is one case.
type Row struct {
	Name  string // unique in the table, and the same in every run
	Group Group
	Note  string
	Cells []Cell // one per column
}

// Cell is one figure. Without samples and text, nothing was measured.
type Cell struct {
	Samples []float64 // one per round, in order
	Text    string    // shown in place of the samples
}

// One is a cell with one sample, which is exact: it was counted or computed.
func One(x float64) Cell { return Cell{Samples: []float64{x}, Text: Figure(x)} }

// Section returns the section with the ID. It is empty if there is none.
func (r *Report) Section(id string) *Section {
	if i := slices.IndexFunc(r.Sections, func(s Section) bool { return s.ID == id }); i >= 0 {
		return &r.Sections[i]
	}
	return &Section{}
}

// Table returns the table with the ID. It is empty if there is none.
func (s *Section) Table(id string) *Table {
	if i := slices.IndexFunc(s.Tables, func(t Table) bool { return t.ID == id }); i >= 0 {
		return &s.Tables[i]
	}
	return &Table{}
}

// Cell returns the cell at the named row and the column with the ID. It is empty if there
// is none.
func (t *Table) Cell(row, column string) Cell {
	if cells, c := t.row(row).Cells, t.column(column); c >= 0 && len(cells) > 0 {
		return cells[c]
	}
	return Cell{}
}

// row returns the row with the name. It is empty if there is none.
func (t *Table) row(name string) Row {
	if i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name }); i >= 0 {
		return t.Rows[i]
	}
	return Row{}
}

func (t *Table) column(id string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.ID == id })
}
