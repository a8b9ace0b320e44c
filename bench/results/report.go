// Package results holds what a run of the benchmark has measured, reads and writes it
// as JSON, and compares it with another run. Package page shows it, as HTML and as
// Markdown, with the charts of package chart.
//
// A report is sections, a section is tables, and a cell of a table is the samples
// that were taken for it, one per repeat. Charts have no data of their own: each is
// drawn from a table. So whatever is shown can be computed again from the JSON.
package results

import "time"

// Schema is the version of the JSON form.
const Schema = 1

// Report is one run.
type Report struct {
	Schema      int       `json:"schema"`
	Command     string    `json:"command"` // that makes it again
	Began       time.Time `json:"began"`
	Seconds     float64   `json:"seconds"` // that it took
	Quick       bool      `json:"quick"`
	Interrupted bool      `json:"interrupted,omitempty"` // so that cells, or whole sections, are missing
	Seed        uint64    `json:"seed"`                  // of the random order
	Machine     Machine   `json:"machine"`
	Sections    []Section `json:"sections"`
}

// Machine is where it ran, and how quiet it was.
type Machine struct {
	CPU         string     `json:"cpu"`
	Cores       int        `json:"cores"` // that Go used
	MemoryBytes uint64     `json:"memoryBytes,omitempty"`
	OS          string     `json:"os"` // with version and architecture
	Kernel      string     `json:"kernel,omitempty"`
	Virtual     string     `json:"virtual,omitempty"`     // the hypervisor, if any
	ClockSource string     `json:"clockSource,omitempty"` // of the kernel
	Go          string     `json:"go"`
	LoadBefore  [3]float64 `json:"loadBefore"`             // averages over 1, 5 and 15 minutes
	Steal       float64    `json:"stealPercent,omitempty"` // of the processors' time, by the hypervisor, during the run
}

// Section is one kind of measurement.
type Section struct {
	ID      string   `json:"id"` // lower case, without spaces: it names links and files
	Title   string   `json:"title"`
	About   string   `json:"about"`             // what is measured and how, in plain words
	Command string   `json:"command"`           // that runs this section alone
	Skipped string   `json:"skipped,omitempty"` // why there is nothing
	Verdict []string `json:"verdict,omitempty"` // what it comes to, computed from the cells, also where a peer wins
	Notes   []string `json:"notes,omitempty"`
	Targets []Target `json:"targets,omitempty"`
	Tables  []Table  `json:"tables,omitempty"`
	Charts  []Chart  `json:"charts,omitempty"`
}

// Target is a ratio or share that the library is held to.
type Target struct {
	ID     string  `json:"id"`
	Text   string  `json:"text"` // "Next at most 1.25 × the floor"
	Unit   string  `json:"unit"` // "×", "%"
	Want   float64 `json:"want"`
	AtMost bool    `json:"atMost"`         // or else at least
	Got    Cell    `json:"got"`            // one sample per repeat
	Why    string  `json:"why,omitempty"`  // why it was missed, if that can be told
	Open   string  `json:"open,omitempty"` // why it cannot be judged in this run
}

// Table has a row per case and a column per quantity, or per setting.
type Table struct {
	ID      string   `json:"id"` // unique in the report
	Title   string   `json:"title"`
	RowName string   `json:"rowName"` // what a row is: "case", "peer"
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
	Base    string   `json:"base,omitempty"` // the row with which the others are compared
}

// Better is which way a quantity should go.
type Better string

// The ways in which a quantity can be better.
const (
	Less    Better = "less"
	More    Better = "more"
	Neither Better = ""
)

// Column is a quantity, or one setting under which a quantity was measured.
type Column struct {
	ID     string  `json:"id"` // unique in the table
	Title  string  `json:"title"`
	Unit   string  `json:"unit,omitempty"` // "ns/ID"; a cell is shown without it
	Better Better  `json:"better,omitempty"`
	X      float64 `json:"x,omitempty"` // where it stands in a chart of lines
}

// Group is what a row is about; it has a colour.
type Group string

// The groups of rows.
const (
	Ours  Group = "tickflake"
	Peers Group = "peer"
	Floor Group = "floor" // the least that is possible
)

// Row is one case.
type Row struct {
	Name  string `json:"name"` // unique in the table, and the same from run to run
	Group Group  `json:"group,omitempty"`
	Note  string `json:"note,omitempty"`
	Cells []Cell `json:"cells"` // one per column
}

// Mark is how a cell is to be read.
type Mark string

// The marks of a cell.
const (
	Good   Mark = "good"
	Bad    Mark = "bad"
	NoMark Mark = ""
)

// Cell is what was measured. Without samples and text, nothing was.
type Cell struct {
	Samples []float64 `json:"samples,omitempty"` // one per repeat, in order
	Text    string    `json:"text,omitempty"`    // shown in place of the samples, or where there are none
	Mark    Mark      `json:"mark,omitempty"`
}

// Kind is how a chart shows its table.
type Kind string

// The kinds of charts.
const (
	Bars  Kind = "bars"  // a group per row, a bar per column
	Lines Kind = "lines" // a line per row, its points at the X of the columns
)

// Chart draws a table, or some of its columns.
type Chart struct {
	ID      string   `json:"id"` // unique in the report
	Title   string   `json:"title"`
	Kind    Kind     `json:"kind"`
	Table   string   `json:"table"`
	Columns []string `json:"columns,omitempty"` // all that have samples, if it is empty
	XLabel  string   `json:"xLabel,omitempty"`
	YLabel  string   `json:"yLabel,omitempty"`
	LogX    bool     `json:"logX,omitempty"`
	LogY    bool     `json:"logY,omitempty"`
}
