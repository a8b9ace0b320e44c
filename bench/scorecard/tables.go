package scorecard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
)

// quantity is what a table shows of each outcome.
type quantity struct {
	id, title, unit string
	of              func(*row, peers.Outcome) results.Cell
}

var quantities = []quantity{
	{"stall", "Longest stall of a call", "s", func(_ *row, o peers.Outcome) results.Cell { return lasts(o.LongestStall) }},
	{"errors", "Calls that failed", "calls", func(_ *row, o peers.Outcome) results.Cell { return counted(o.Errors) }},
	{"lead", "Largest lead of an ID over the clock", "s", func(_ *row, o peers.Outcome) results.Cell { return lasts(o.LargestLead) }},
	{"lost", "IDs lost to waiting", "IDs", (*row).lost},
	{"duplicates", "IDs issued twice", "IDs", func(_ *row, o peers.Outcome) results.Cell {
		c := counted(o.Duplicates)
		if o.Duplicates > 0 {
			c.Mark = results.Bad
		}
		return c
	}},
	{"order", "IDs out of order", "IDs", func(_ *row, o peers.Outcome) results.Cell { return counted(o.Disorder) }},
}

func lasts(d time.Duration) results.Cell {
	if d <= 0 {
		return results.Cell{Samples: []float64{0}, Text: "0"}
	}
	return results.Cell{Samples: []float64{d.Seconds()}, Text: span(d)}
}

func counted(n int) results.Cell {
	return results.Cell{Samples: []float64{float64(n)}, Text: count(n)}
}

// tables are all of the section, and its charts.
func tables(rows []*row, all []fault) ([]results.Table, []results.Chart) {
	card := grid(rows, all, "faults-card", "Score card", "", results.Neither, (*row).cell)
	list := results.Table{ID: "faults-list", Title: "The faults", RowName: "fault", Columns: []results.Column{{ID: "name", Title: "name"}, {ID: "what", Title: "what happens"}}}
	for _, f := range all {
		list.Rows = append(list.Rows, results.Row{Name: f.id, Cells: texts(f.name, f.what)})
	}
	legend := results.Table{ID: "faults-marks", Title: "How to read a cell", RowName: "cell", Columns: []results.Column{{ID: "means", Title: "means"}}}
	for _, m := range marks {
		legend.Rows = append(legend.Rows, results.Row{Name: m[0], Cells: texts(m[1])})
	}
	tables := []results.Table{card, legend, list, summary(rows, all), failures(rows, all)}
	for _, q := range quantities {
		tables = append(tables, grid(rows, all, "faults-"+q.id, q.title, q.unit, results.Less, func(r *row, f fault) results.Cell {
			o, ok := r.ran(f)
			if !ok {
				return results.Cell{Text: notRun}
			}
			return q.of(r, o)
		}))
	}
	charts := []results.Chart{
		{ID: "faults-summary-chart", Title: "Faults by what came of them", Kind: results.Bars, Table: "faults-summary", YLabel: "faults"},
		{ID: "faults-failures-chart", Title: "Calls that fail on a raw clock", Kind: results.Bars, Table: "faults-failures", YLabel: "% of the calls"},
	}
	return append(tables, wentWrong(rows, all), how(rows, all)), charts
}

// grid is a table with a column per fault.
func grid(rows []*row, all []fault, id, title, unit string, better results.Better, cell func(*row, fault) results.Cell) results.Table {
	t := results.Table{ID: id, Title: title, RowName: "generator"}
	for _, f := range all {
		t.Columns = append(t.Columns, results.Column{ID: f.id, Title: f.id, Unit: unit, Better: better})
	}
	for _, r := range rows {
		line := results.Row{Name: r.Name, Group: r.group()}
		for _, f := range all {
			line.Cells = append(line.Cells, cell(r, f))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// summary counts the cells of the default strategy and of the peers.
func summary(rows []*row, all []fault) results.Table {
	t := results.Table{ID: "faults-summary", Title: "Faults by what came of them", RowName: "generator"}
	for _, c := range [][2]string{{"fine", "✓ nobody noticed"}, {"price", "at a price"}, {"wrong", "✗ went wrong"}, {"none", "– could not be run"}} {
		t.Columns = append(t.Columns, results.Column{ID: c[0], Title: c[1], Unit: "faults"})
	}
	for _, r := range rows {
		if r.strategy != nil && r.short != defaultName {
			continue
		}
		var n [4]float64
		for _, f := range all {
			switch c := r.cell(f); {
			case c.Mark == results.Good:
				n[0]++
			case c.Mark == results.Bad:
				n[2]++
			case c.Text == notRun:
				n[3]++
			default:
				n[1]++
			}
		}
		line := results.Row{Name: r.Name, Group: r.group()}
		for _, x := range n {
			line.Cells = append(line.Cells, results.Cell{Samples: []float64{x}})
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// failures is the share of calls that fail where it is up to the strategy alone: when
// the wall clock goes wrong, and nothing stands between.
func failures(rows []*row, all []fault) results.Table {
	t := results.Table{ID: "faults-failures", Title: "Calls that fail on a raw clock, by strategy", RowName: "strategy"}
	shown := slices.DeleteFunc(slices.Clone(all), func(f fault) bool { return !slices.Contains([]string{"F1", "F2", "F4", "F5", "F7", "F10"}, f.id) })
	for _, f := range shown {
		t.Columns = append(t.Columns, results.Column{ID: f.id, Title: f.id + " " + f.name, Unit: "%", Better: results.Less})
	}
	for _, r := range rows {
		if r.setting != peers.Raw {
			continue
		}
		line := results.Row{Name: r.short, Group: results.Ours}
		for _, f := range shown {
			c := results.Cell{Text: notRun}
			if o, ok := r.ran(f); ok {
				c = results.Cell{Samples: []float64{100 * float64(o.Errors) / float64(max(1, o.Issued+o.Errors))}}
			}
			line.Cells = append(line.Cells, c)
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// wentWrong describes the bad cells. Of several strategies with which the same went
// wrong under the same fault, the first stands for all.
func wentWrong(rows []*row, all []fault) results.Table {
	t := results.Table{ID: "faults-wrong", Title: "What went wrong", RowName: "generator and fault",
		Columns: []results.Column{{ID: "counts", Title: "how often"}, {ID: "first", Title: "the first"}, {ID: "others", Title: "so did"}}}
	at := map[string]int{} // rows of the table, by setting and fault
	others := map[string]int{}
	for _, r := range rows {
		for _, f := range all {
			o, ok := r.ran(f)
			if !ok || !o.Failed() {
				continue
			}
			key := fmt.Sprint(cmp.Or(string(r.setting), r.Name), f.id)
			if i, known := at[key]; known {
				others[key]++
				t.Rows[i].Cells[2].Text = fmt.Sprintf("%d more with other strategies", others[key])
				continue
			}
			at[key] = len(t.Rows)
			first := ""
			if len(o.Violations) > 0 {
				first = o.Violations[0].Detail
			}
			t.Rows = append(t.Rows, results.Row{Name: r.Name + ": " + f.id, Group: r.group(), Cells: texts(o.Summary(), first, "")})
		}
	}
	return t
}

// how says how each row was driven, what it was held to, and what was not run and why.
func how(rows []*row, all []fault) results.Table {
	t := results.Table{ID: "faults-how", Title: "How each was run", RowName: "generator", Columns: []results.Column{
		{ID: "version", Title: "version"}, {ID: "driven", Title: "driven by"}, {ID: "time", Title: "where its time comes in"},
		{ID: "promised", Title: "what it was held to"}, {ID: "remarks", Title: "remarks"}, {ID: "none", Title: "not run"}}}
	for _, r := range rows {
		name, claim := r.Name, cmp.Or(r.Claim, "–")
		if r.strategy != nil { // one stands for all
			if r.short != defaultName {
				continue
			}
			name, claim = "tickflake, "+string(r.setting), "the bounds of its strategy (strategies.Limits)"
		}
		var remarks, none []string
		if r.Remark != "" {
			remarks = append(remarks, r.Remark)
		}
		if r.Driven == peers.ByBubble {
			remarks = append(remarks, "run with one caller, in time that does not go wrong")
		}
		remarks = append(remarks, grouped(all, func(f fault) string { return r.Instead[f.id].Note })...)
		remarks = append(remarks, grouped(all, func(f fault) string { o, _ := r.ran(f); return o.Note })...)
		none = grouped(all, func(f fault) string {
			if _, ok := r.ran(f); ok {
				return ""
			}
			return r.reason(f)
		})
		if r.Ordered {
			claim += "; order, whatever the clock does"
		}
		t.Rows = append(t.Rows, results.Row{Name: name, Group: r.group(), Cells: texts(cmp.Or(r.Version, "–"), string(r.Driven), r.How,
			claim, strings.Join(remarks, "; "), strings.Join(none, "; "))})
	}
	return t
}

func texts(all ...string) (cells []results.Cell) {
	for _, text := range all {
		cells = append(cells, results.Cell{Text: text})
	}
	return cells
}

// grouped returns what of says of the faults, each with those it says it of.
func grouped(all []fault, of func(fault) string) []string {
	ids := map[string][]string{}
	var lines []string
	for _, f := range all {
		text := of(f)
		if text == "" {
			continue
		}
		if ids[text] == nil {
			lines = append(lines, text)
		}
		ids[text] = append(ids[text], f.id)
	}
	for i, text := range lines {
		lines[i] = strings.Join(ids[text], ", ") + ": " + text
	}
	return lines
}
