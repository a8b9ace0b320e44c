// Package results is the model of a benchmark report: the samples of a run, their
// statistics, the JSON form, and the comparison of two runs. Package page renders
// a report.
//
// You need these names: [Report] has [Section] values, a section has [Table] and [Target]
// values, and a [Cell] of a table has one sample per round. A [Chart] has no data of its
// own: it shows columns of the table that it belongs to. So every figure of a rendered
// report can be computed again from the JSON.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Schema is the version of the JSON form.
const Schema = 2

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

// Target is a bound that the library is held to.
type Target struct {
	ID     string  `json:"id"`
	Text   string  `json:"text"`             // "Next: at most 1.08× the floor"
	Unit   string  `json:"unit"`             // "×", "%"
	Want   float64 `json:"want"`             //
	AtMost bool    `json:"atMost"`           // false: at least
	Got    Cell    `json:"got"`              // one sample per round
	Beside string  `json:"beside,omitempty"` // figures to read beside it, such as the distances to the floor
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
	Detail  bool     `json:"detail,omitempty"` // the page folds the table, and the Markdown form has only its charts
	Charts  []Chart  `json:"charts,omitempty"`
}

// Better is the direction in which a quantity improves.
type Better string

// The directions in which a quantity improves.
const (
	Less    Better = "less"
	More    Better = "more"
	Neither Better = ""
)

// Column is a quantity, or one setting under which a quantity was measured.
type Column struct {
	ID     string  `json:"id"` // unique in the table
	Title  string  `json:"title"`
	Unit   string  `json:"unit,omitempty"`
	Better Better  `json:"better,omitempty"`
	X      float64 `json:"x,omitempty"` // position in a chart of lines
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

// Mark says how to read a cell.
type Mark string

// The marks of a cell.
const (
	Good   Mark = "good"
	Bad    Mark = "bad"
	NoMark Mark = ""
)

// Cell is one figure. Without samples and text, nothing was measured.
type Cell struct {
	Samples []float64 `json:"samples,omitempty"` // one per round, in order
	Text    string    `json:"text,omitempty"`    // shown in place of the samples
	Mark    Mark      `json:"mark,omitempty"`
	// Quartiles says that the samples are ratios of a pair, which are shown with their
	// quartiles in place of the interval of the median.
	Quartiles bool `json:"quartiles,omitempty"`
}

// Chart shows columns of its table: as bars, a group per row, or as lines, a line per row
// with its points at the X of the columns.
type Chart struct {
	ID      string   `json:"id"` // unique in the report: it names a file
	Title   string   `json:"title"`
	Lines   bool     `json:"lines,omitempty"`
	Columns []string `json:"columns,omitempty"` // empty: all that have samples
	XLabel  string   `json:"xLabel,omitempty"`
	YLabel  string   `json:"yLabel,omitempty"`
	LogX    bool     `json:"logX,omitempty"`
	LogY    bool     `json:"logY,omitempty"`
}

// Table returns the table with the ID. It is empty if there is none.
func (s *Section) Table(id string) *Table {
	for i := range s.Tables {
		if s.Tables[i].ID == id {
			return &s.Tables[i]
		}
	}
	return &Table{}
}

// Cell returns the cell at the named row and the column with the ID. It is empty if there
// is none.
func (t *Table) Cell(row, column string) Cell {
	r, c := t.row(row), t.column(column)
	if r < 0 || c < 0 {
		return Cell{}
	}
	return t.Rows[r].Cells[c]
}

func (t *Table) row(name string) int {
	return slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name })
}

func (t *Table) column(id string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.ID == id })
}

// NotRun is the text of a cell of a fault that was not run.
const NotRun = "–"

// Outcomes counts the cells of each row of a table whose columns are faults: those that
// are good, that have a price, that are bad, and that were not run.
func (t *Table) Outcomes() Table {
	out := Table{RowName: t.RowName, Columns: []Column{
		{ID: "fine", Title: "✓ unnoticed"}, {ID: "price", Title: "at a price"}, {ID: "wrong", Title: "✗ wrong"}, {ID: "none", Title: "– not run"}}}
	for _, r := range t.Rows {
		var n [4]float64
		for _, c := range r.Cells {
			switch {
			case c.Mark == Good:
				n[0]++
			case c.Mark == Bad:
				n[2]++
			case c.Text == NotRun:
				n[3]++
			default:
				n[1]++
			}
		}
		line := Row{Name: r.Name, Group: r.Group}
		for _, x := range n {
			line.Cells = append(line.Cells, Cell{Samples: []float64{x}})
		}
		out.Rows = append(out.Rows, line)
	}
	return out
}

// Drawn returns the indices of the columns that a chart of the table shows.
func (t *Table) Drawn(c Chart) []int {
	var shown []int
	for i, column := range t.Columns {
		named := len(c.Columns) == 0 || slices.Contains(c.Columns, column.ID)
		if named && slices.ContainsFunc(t.Rows, func(r Row) bool { return len(r.Cells[i].Samples) > 0 }) {
			shown = append(shown, i)
		}
	}
	return shown
}

// digits is how many significant digits of a sample are kept: no clock here tells more.
const digits = 6

// Clean drops samples that are not finite, such as a rate over no time, and rounds the
// others to six digits. It returns how many samples it dropped.
func (s *Section) Clean() (dropped int) {
	clean := func(c *Cell) {
		var kept []float64 // a copy: cells may share one slice
		for _, v := range c.Samples {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				dropped++
				continue
			}
			v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
			kept = append(kept, v)
		}
		c.Samples = kept
	}
	for i := range s.Targets {
		clean(&s.Targets[i].Got)
	}
	for _, t := range s.Tables {
		for _, row := range t.Rows {
			for k := range row.Cells {
				clean(&row.Cells[k])
			}
		}
	}
	return dropped
}

// Check returns an error if the report cannot be rendered or compared: an ID is used
// twice or cannot name a file, or a row does not fit its table.
func (r *Report) Check() error {
	if r.Schema != Schema {
		return fmt.Errorf("the report has schema %d, and this program reads schema %d: use the bench that wrote it, or measure again", r.Schema, Schema)
	}
	seen := map[string]bool{}
	for i := range r.Sections {
		s := &r.Sections[i]
		if err := s.check(seen); err != nil {
			return fmt.Errorf("section %q: %w", s.ID, err)
		}
	}
	return nil
}

func (s *Section) check(seen map[string]bool) error {
	if err := unique(seen, "section", s.ID); err != nil {
		return err
	}
	for _, t := range s.Targets {
		if err := unique(seen, "target", t.ID); err != nil {
			return err
		}
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		if err := unique(seen, "table", t.ID); err != nil {
			return err
		}
		for _, c := range t.Charts {
			if err := unique(seen, "chart", c.ID); err != nil {
				return err
			}
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("table %s: %w", t.ID, err)
		}
	}
	return nil
}

// plain matches an ID that can name a file, a link and an element.
var plain = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

func unique(seen map[string]bool, kind, id string) error {
	if !plain.MatchString(id) {
		return fmt.Errorf("%s ID %q: want lower-case letters, digits and dashes", kind, id)
	}
	if seen[kind+id] {
		return fmt.Errorf("%s ID %q is used twice", kind, id)
	}
	seen[kind+id] = true
	return nil
}

func (t *Table) check() error {
	rows, columns := map[string]bool{}, map[string]bool{}
	for _, c := range t.Columns {
		if columns[c.ID] {
			return fmt.Errorf("column %q is there twice", c.ID)
		}
		columns[c.ID] = true
	}
	for _, r := range t.Rows {
		if rows[r.Name] {
			return fmt.Errorf("row %q is there twice", r.Name)
		}
		rows[r.Name] = true
		if len(r.Cells) != len(t.Columns) {
			return fmt.Errorf("row %q has %d cells for %d columns", r.Name, len(r.Cells), len(t.Columns))
		}
	}
	if t.Base != "" && !rows[t.Base] {
		return fmt.Errorf("the row %q to compare with is missing", t.Base)
	}
	for _, c := range t.Charts {
		for _, id := range c.Columns {
			if !columns[id] {
				return fmt.Errorf("chart %s: there is no column %q", c.ID, id)
			}
		}
	}
	return nil
}

// ReadFile reads a report from a JSON file and checks it.
func ReadFile(name string) (*Report, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	// The schema comes first: the fields of another one need not fit the types here.
	var head struct {
		Schema int `json:"schema"`
	}
	r := new(Report)
	if err = json.Unmarshal(text, &head); err == nil {
		if r.Schema = head.Schema; r.Schema == Schema {
			err = json.Unmarshal(text, r)
		}
	}
	if err == nil {
		err = r.Check()
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		err = fmt.Errorf("damaged at byte %d of %d: %w", syntax.Offset, len(text), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
