package report

import (
	"fmt"
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
	kernel, times := r.Section("kernel").Table("kernel"), r.Section("cost").Table("cost")
	for _, c := range candidates {
		time, found := times.row(c.cost), kernel.row(c.faults)
		if time.Name == "" && found.Name == "" {
			continue
		}
		row := Row{Name: c.name, Group: Peers, Note: time.Note, Cells: []Cell{{}, {}, times.Cell(c.cost, "ns"), {Text: c.takeIf}}}
		if strings.HasPrefix(c.name, "tickflake") {
			row.Group = Ours
		}
		if found.Name != "" {
			row.Cells[0], row.Cells[1] = kernel.Cell(c.faults, "twice"), kernel.Cell(c.faults, "step")
			t.Columns[0].Title = fmt.Sprintf("duplicates in %s runs on a real kernel, of about %s IDs", kernel.Cell(c.faults, "runs"), figure(kernel.Cell(c.faults, "ids").Median(), 2))
		} else if was := r.Published[c.name]; len(was) > 1 {
			row.Cells[0].Text, row.Cells[1].Text = was[0]+" (published run)", was[1]+" (published run)"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
