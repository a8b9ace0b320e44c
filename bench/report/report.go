// Package report is a run of the benchmark: its samples and statistics, and its forms: a page of
// HTML, a summary for a terminal, Markdown to be published, JSON, and benchfmt text for benchstat.
//
// You need these names: [Report] has [Section] values, a section has [Table] and [Target]
// values, and a [Cell] of a table has one sample per round. A [Chart] shows its table.
// So every figure of a rendered report can be computed again from the JSON, which [Read] reads.
package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

// Schema is the version of the JSON form.
const Schema = 3

// Report is one run.
type Report struct {
	Schema      int       `json:"schema"`
	Command     string    `json:"command"`          // repeats the run
	Commit      string    `json:"commit,omitempty"` // of the code that was measured
	Began       time.Time `json:"began"`
	Seconds     float64   `json:"seconds"` // that the run took
	Quick       bool      `json:"quick,omitempty"`
	Interrupted bool      `json:"interrupted,omitempty"` // so cells or sections are missing
	Seed        uint64    `json:"seed"`                  // of the random order of the cases
	Machine     Machine   `json:"machine"`
	Sections    []Section `json:"sections"`
}

// Machine is the machine of a run, and how much of it other programs used.
type Machine struct {
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"` // that Go used
	MemoryBytes uint64  `json:"memoryBytes,omitempty"`
	OS          string  `json:"os"` // with version and architecture
	Kernel      string  `json:"kernel,omitempty"`
	Virtual     string  `json:"virtual,omitempty"`     // the hypervisor
	ClockSource string  `json:"clockSource,omitempty"` // of the kernel
	Go          string  `json:"go"`
	LoadBefore  float64 `json:"loadBefore"`              // average over one minute
	Stolen      float64 `json:"stolenPercent,omitempty"` // of the processors' time, by the hypervisor during the run
}

// Section is one kind of measurement.
type Section struct {
	ID      string   `json:"id"` // lower case, without spaces: it names links
	Title   string   `json:"title"`
	About   string   `json:"about,omitempty"`         // what is measured, and how
	Skipped string   `json:"skipped,omitempty"`       // why there are no figures
	Failed  bool     `json:"failed,omitempty"`        // the section was skipped because it failed
	Verdict string   `json:"verdict,omitempty"`       // one sentence, computed from the cells
	Stolen  float64  `json:"stolenPercent,omitempty"` // of the processors' time, by the hypervisor during the section
	Notes   []string `json:"notes,omitempty"`
	Targets []Target `json:"targets,omitempty"`
	Tables  []Table  `json:"tables,omitempty"`
}

// Note adds a sentence.
func (s *Section) Note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// Target is a bound that the library is held to.
type Target struct {
	ID     string  `json:"id"`
	Text   string  `json:"text"`             // "Next: at most 1.08× the floor"
	Unit   string  `json:"unit"`             // "×", "%"
	Want   float64 `json:"want"`             //
	AtMost bool    `json:"atMost"`           // false: at least
	Got    Cell    `json:"got"`              // one sample per round
	Beside string  `json:"beside,omitempty"` // how many rounds count, if not all do
	Why    string  `json:"why,omitempty"`    // the cause of a miss, if the samples show it
	Open   string  `json:"open,omitempty"`   // why this run does not decide the target
}

// Table has a row per case and a column per quantity or setting.
type Table struct {
	ID      string   `json:"id"` // unique in the report
	Title   string   `json:"title"`
	RowName string   `json:"rowName"` // "case", "peer"
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
	Base    string   `json:"base,omitempty"`   // the row that the others are compared with
	Detail  bool     `json:"detail,omitempty"` // the page folds the table,
	Chart   *Chart   `json:"chart,omitempty"`
}

// Better is the direction in which a quantity improves; "" is neither.
type Better string

// The directions in which a quantity improves.
const (
	Less Better = "less"
	More Better = "more"
)

// Column is a quantity, or one setting under which a quantity was measured.
type Column struct {
	ID     string `json:"id"` // unique in the table
	Title  string `json:"title"`
	Unit   string `json:"unit,omitempty"`
	Better Better `json:"better,omitempty"`
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
	Name  string `json:"name"` // unique in the table, and the same in every run
	Group Group  `json:"group,omitempty"`
	Note  string `json:"note,omitempty"`
	Cells []Cell `json:"cells"` // one per column
}

// Mark says how to read a cell: good, bad, or "".
type Mark string

// The marks of a cell.
const (
	Good Mark = "good"
	Bad  Mark = "bad"
)

// Cell is one figure. Without samples and text, nothing was measured.
type Cell struct {
	Samples []float64 `json:"samples,omitempty"` // one per round, in order
	Text    string    `json:"text,omitempty"`    // shown in place of the samples
	Mark    Mark      `json:"mark,omitempty"`
}

// One is a cell with one sample, which is exact: it was counted or computed.
func One(x float64) Cell { return Cell{Samples: []float64{x}, Text: Figure(x)} }

// Texts are cells with texts.
func Texts(all ...string) (cells []Cell) {
	for _, text := range all {
		cells = append(cells, Cell{Text: text})
	}
	return cells
}

// Chart shows a column of its table as bars, one per row.
type Chart struct {
	ID     string `json:"id"` // unique in the report: it names a file
	Title  string `json:"title"`
	Column string `json:"column"`
	Label  string `json:"label"` // of the values
}

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

// cells calls f for every cell of the tables.
func (r *Report) cells(f func(*Table, *Row, *Column, *Cell)) {
	for i := range r.Sections {
		for j := range r.Sections[i].Tables {
			t := &r.Sections[i].Tables[j]
			for k := range t.Rows {
				for n := range t.Rows[k].Cells {
					f(t, &t.Rows[k], &t.Columns[n], &t.Rows[k].Cells[n])
				}
			}
		}
	}
}

// digits is how many significant digits of a sample are kept: no clock here tells more.
const digits = 6

// Clean drops samples that are not finite, such as a rate over no time, and rounds the
// others to six digits.
func (r *Report) Clean() {
	clean := func(c *Cell) {
		var kept []float64 // a copy: cells may share one slice
		for _, v := range c.Samples {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
				kept = append(kept, v)
			}
		}
		c.Samples = kept
	}
	for i := range r.Sections {
		for j := range r.Sections[i].Targets {
			clean(&r.Sections[i].Targets[j].Got)
		}
	}
	r.cells(func(_ *Table, _ *Row, _ *Column, c *Cell) { clean(c) })
}

// Read reads a report from a JSON file.
func Read(name string) (*Report, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err = json.Unmarshal(text, r); err == nil && r.Schema != Schema {
		err = fmt.Errorf("the report has schema %d, and this program reads schema %d: use the bench that wrote it, or measure again", r.Schema, Schema)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
