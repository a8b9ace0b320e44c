package report

import (
	"fmt"
	"slices"
	"strings"
)

// candidates are the generators between which a reader chooses: their names in the tables of the cost
// and of the real kernel, and who should take them.
var candidates = []struct{ name, cost, faults, takeIf string }{
	{"tickflake, `generator.Open`", "Next, under a lease", "tickflake, default, monoclock, lease", "clocks step, or processes restart"},
	{"tickflake, without a store", "Next", "tickflake, default, monoclock", "one process, and a restart may repeat IDs"},
	{"bwmarrin/snowflake", "bwmarrin/snowflake, 22-bit sequence", "bwmarrin/snowflake", "clocks never step back, and machines are not copied"},
	{"sony/sonyflake", "sony/sonyflake", "sony/sonyflake", "as bwmarrin/snowflake, and 25,600 IDs per second are enough"},
	{"rs/xid", "rs/xid", "rs/xid", "96 bits do no harm, and machines are not copied"},
	{"MongoDB ObjectID", "MongoDB ObjectID", "MongoDB ObjectID", "the database makes its 96 bits anyway"},
	{"google/uuid v7", "google/uuid v7", "google/uuid v7", "128 bits cost nothing"},
	{"oklog/ulid", "oklog/ulid", "oklog/ulid", "128 bits cost nothing, and the text is short"},
	{"segmentio/ksuid", "segmentio/ksuid", "segmentio/ksuid", "160 bits and no order within a second do no harm, and machines are not copied"},
}

// Which is the table that opens the report: which generator to take, and why. It has no rows if
// nothing of it was measured. A run without a real kernel shows what the published run found there.
func (r *Report) Which() Table {
	t := Table{ID: "which", Title: "Which one, and why", RowName: "generator", Columns: []Column{
		{ID: "duplicates", Title: "duplicates in the faults of a real kernel"}, {ID: "step", Title: "a clock stepped back 1 h costs"},
		{ID: "ns", Title: "time", Unit: "ns/ID", Better: Less}, {ID: "if", Title: "take it if"}}}
	kernel, times := r.Section("kernel"), r.Section("cost").Table("cost")
	repeated, clocks, counted := kernel.Table("kernel-duplicates"), kernel.Table("kernel-card-clock"), kernel.Table("kernel-ids")
	var ids Cell // of each
	runs := 0
	for _, c := range candidates {
		time, found := times.row(c.cost), repeated.row(c.faults)
		if time.Name == "" && found.Name == "" {
			continue
		}
		row := Row{Name: c.name, Group: Peers, Note: time.Note, Cells: []Cell{{}, {}, times.Cell(c.cost, "ns"), {Text: c.takeIf}}}
		if strings.HasPrefix(c.name, "tickflake") {
			row.Group = Ours
		}
		if found.Name != "" {
			row.Cells[0], row.Cells[1] = twice(repeated, found), price(clocks.Cell(c.faults, "step-back-1h"))
			sum, of := total(counted.row(c.faults))
			ids.Samples, runs = append(ids.Samples, sum), max(runs, of)
		} else if was := r.Published[c.name]; len(was) > 1 {
			row.Cells[0].Text, row.Cells[1].Text = was[0]+" (published run)", was[1]+" (published run)"
		}
		t.Rows = append(t.Rows, row)
	}
	if runs > 0 {
		t.Columns[0].Title = fmt.Sprintf("duplicates in %d runs on a real kernel, of about %s IDs", runs, figure(ids.Median(), 2))
	}
	return t
}

// copies is what the faults that copy a machine are called.
const copies = "copies of the machine"

// Causes says in words what faults of a real kernel are, each kind once.
func Causes(faults []string) string {
	var kinds []string
	for _, kind := range faults {
		switch {
		case strings.HasPrefix(kind, "copy-"):
			kind = copies
		case strings.HasPrefix(kind, "restart-"):
			kind = "restarts after a step back"
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return List(kinds)
}

// total is the sum of the counts of a row, and of how many cells.
func total(row Row) (sum float64, of int) {
	for _, c := range row.Cells {
		if len(c.Samples) > 0 {
			sum, of = sum+c.Samples[0], of+1
		}
	}
	return sum, of
}

// twice says how many IDs of a row came twice, and where.
func twice(t *Table, row Row) Cell {
	var faults []string
	told := row.Group != Ours // no peer can be told
	for i, c := range row.Cells {
		if fault := t.Columns[i].ID; c.Median() > 0 {
			faults, told = append(faults, fault), told || strings.HasSuffix(fault, "-told") || strings.HasSuffix(fault, "-vmclock")
		}
	}
	if len(faults) == 0 {
		return Cell{Text: "none", Mark: Good}
	}
	sum, _ := total(row)
	text := Figure(sum) + ": " + Causes(faults)
	if !told {
		text = strings.Replace(text, copies, copies+" without VMClock or `Restored`", 1)
	}
	return Cell{Text: text, Mark: Bad}
}

// price is what a cell of a card says that a fault cost, in words for a reader who has not seen the card.
func price(c Cell) Cell {
	if c.Mark == Good {
		return Cell{Text: "nothing"}
	}
	if stall, ok := strings.CutPrefix(c.String(), "stall "); ok { // no run waits for so long
		return Cell{Text: "calls blocked until the clock is back (watched for " + stall + ")"}
	}
	return Cell{Text: strings.NewReplacer("lead", "IDs ahead by", " err", " calls fail", " disorder", " out of order").Replace(c.String())}
}
