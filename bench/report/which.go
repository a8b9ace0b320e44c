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
	{"sony/sonyflake", "sony/sonyflake", "sony/sonyflake", "the same, and 25,600 IDs per second are enough"},
	{"rs/xid", "rs/xid", "rs/xid", "machines are not copied"},
	{"MongoDB ObjectID", "MongoDB ObjectID", "MongoDB ObjectID", "the database makes it anyway"},
	{"google/uuid v7", "google/uuid v7", "google/uuid v7", "128 bits cost nothing"},
	{"oklog/ulid", "oklog/ulid", "oklog/ulid", "as UUID v7, as text of 26 characters"},
	{"segmentio/ksuid", "segmentio/ksuid", "segmentio/ksuid", "machines are not copied, and order within a second does not matter"},
}

// Which is the table that opens the report: which generator to take, and why. What this run has not
// measured is that of the published run, and marked so. It has no rows if neither has anything.
func (v view) Which() Table {
	t := Table{ID: "which", Title: "Which one, and why", RowName: "generator", Columns: []Column{
		{ID: "duplicates", Title: "duplicates in the faults of a real kernel"}, {ID: "step", Title: "a clock stepped back 1 h costs"},
		{ID: "ns", Title: "time", Unit: "ns/ID", Better: Less}, {ID: "bits", Title: "width", Unit: "bits"}, {ID: "if", Title: "take it if"}}}
	cost, costIsOld := v.orPublished("cost")
	kernel, kernelIsOld := v.orPublished("kernel")
	times, repeated, clocks := cost.Table("cost"), kernel.Table("kernel-duplicates"), kernel.Table("kernel-card-clock")
	marked := func(c Cell, old bool) Cell {
		if text := c.Value(); old && text != "–" {
			c = Cell{Text: text + " †", Mark: c.Mark}
		}
		return c
	}
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
			row.Cells[0] = marked(twice(repeated, repeated.Rows[j]), kernelIsOld)
			row.Cells[1] = marked(Cell{Text: price(clocks.Cell(c.faults, "step-back-1h"))}, kernelIsOld)
		}
		if i >= 0 {
			row.Note = times.Rows[i].Note
			row.Cells[2], row.Cells[3] = marked(times.Cell(c.cost, "ns"), costIsOld), times.Cell(c.cost, "bits")
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// orPublished returns a section of this run, or of the published one if this run has no tables of it.
func (v view) orPublished(id string) (s *Section, old bool) {
	s = v.Section(id)
	if len(s.Tables) == 0 && v.Published != nil {
		return v.Published.Section(id), true
	}
	return s, false
}

// twice says how many IDs of a row came twice, and where.
func twice(t *Table, row Row) Cell {
	sum, told := 0.0, false
	var where []string
	add := func(what string) {
		if !slices.Contains(where, what) {
			where = append(where, what)
		}
	}
	for i, c := range row.Cells {
		n := c.Median()
		if !(n > 0) { // none, or not run
			continue
		}
		sum += n
		switch fault := t.Columns[i].ID; {
		case strings.HasPrefix(fault, "copy-"):
			told = told || strings.HasSuffix(fault, "-told")
			add("copies of the machine")
		case strings.HasPrefix(fault, "restart-"):
			add("restarts after a step back")
		default:
			add(fault)
		}
	}
	if sum == 0 {
		return Cell{Text: "none", Mark: Good}
	}
	text := strings.Replace(List(where), "copies of the machine", map[bool]string{true: "copies of the machine", false: "copies of the machine that nobody tells of"}[told], 1)
	return Cell{Text: fmt.Sprintf("%s: %s", Figure(sum), text), Mark: Bad}
}

// price is what a cell of a card says that a fault cost, in words for a reader who has not seen the card.
func price(c Cell) string {
	text := c.Value()
	if c.Mark == Good {
		return "nothing"
	}
	return strings.NewReplacer("stall", "calls blocked, at least", "lead", "IDs ahead by", " err", " calls fail", " disorder", " out of order").Replace(text)
}
