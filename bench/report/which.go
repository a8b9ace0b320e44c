package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// candidates are the generators between which a reader chooses: their names in the tables of the cost
// and of the real kernel, and who should take them.
var candidates = []struct{ name, cost, faults, takeIf string }{
	{"tickflake, `generator.Open`", "Next, under a lease", "tickflake, default, monoclock, lease", "clocks step, or processes restart"},
	{"tickflake, without a store", "Next", "tickflake, default, monoclock", "one process, and a restart may repeat IDs"},
	{"bwmarrin/snowflake", "bwmarrin/snowflake, 22-bit sequence", "bwmarrin/snowflake", "clocks never step back, and machines are not copied"},
	{"sony/sonyflake", "sony/sonyflake", "sony/sonyflake", "the same, and 25,600 IDs per second are enough"},
	{"rs/xid", "rs/xid", "rs/xid", "machines are not copied"},
	{"MongoDB ObjectID", "MongoDB ObjectID", "MongoDB ObjectID", "the database makes it anyway"},
	{"google/uuid v7", "google/uuid v7", "google/uuid v7", "128 bits cost nothing"},
	{"oklog/ulid", "oklog/ulid", "oklog/ulid", "as UUID v7, as text of 26 characters"},
	{"segmentio/ksuid", "segmentio/ksuid", "segmentio/ksuid", "machines are not copied, and order within a second does not matter"},
}

// Which is the table that opens the report: which generator to take, and why. It has no rows if
// nothing of it was measured.
func (v view) Which() Table {
	t := Table{ID: "which", Title: "Which one, and why", RowName: "generator", Columns: []Column{
		{ID: "duplicates", Title: "duplicates in the faults of a real kernel"}, {ID: "step", Title: "a clock stepped back 1 h costs"},
		{ID: "ns", Title: "time", Unit: "ns/ID", Better: Less}, {ID: "bits", Title: "width", Unit: "bits"}, {ID: "if", Title: "take it if"}}}
	times, repeated, clocks := v.Section("cost").Table("cost"), v.Section("kernel").Table("kernel-duplicates"), v.Section("kernel").Table("kernel-card-clock")
	for _, c := range candidates {
		i := slices.IndexFunc(times.Rows, func(r Row) bool { return r.Name == c.cost })
		j := slices.IndexFunc(repeated.Rows, func(r Row) bool { return r.Name == c.faults })
		if i < 0 && j < 0 {
			continue
		}
		row := Row{Name: c.name, Group: Peers, Cells: []Cell{{}, {}, {}, {}, {Text: c.takeIf}}}
		if strings.HasPrefix(c.name, "tickflake") {
			row.Group = Ours
		}
		if j >= 0 {
			row.Cells[0], row.Cells[1] = twice(repeated, repeated.Rows[j]), Cell{Text: price(clocks.Cell(c.faults, "step-back-1h"))}
		}
		if i >= 0 {
			row.Note = times.Rows[i].Note
			row.Cells[2], row.Cells[3] = times.Cell(c.cost, "ns"), times.Cell(c.cost, "bits")
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// twice says how many IDs of a row came twice, and where.
func twice(t *Table, row Row) Cell {
	sum := 0.0
	copies, where := "copies of the machine that nobody tells of", map[string]bool{}
	for i, c := range row.Cells {
		n, fault := c.Median(), t.Columns[i].ID
		switch {
		case !(n > 0): // none, or not run
			continue
		case strings.HasSuffix(fault, "-told"):
			copies = "copies of the machine"
			fallthrough
		case strings.HasPrefix(fault, "copy-"):
			fault = "~" // the last, whose name is not known yet
		case strings.HasPrefix(fault, "restart-"):
			fault = "restarts after a step back"
		}
		sum += n
		where[fault] = true
	}
	if sum == 0 {
		return Cell{Text: "none", Mark: Good}
	}
	return Cell{Text: strings.Replace(fmt.Sprintf("%s: %s", Figure(sum), List(slices.Sorted(maps.Keys(where)))), "~", copies, 1), Mark: Bad}
}

// price is what a cell of a card says that a fault cost, in words for a reader who has not seen the card.
func price(c Cell) string {
	text := c.Value()
	if c.Mark == Good {
		return "nothing"
	}
	return strings.NewReplacer("stall", "calls blocked, at least", "lead", "IDs ahead by", " err", " calls fail", " disorder", " out of order").Replace(text)
}
