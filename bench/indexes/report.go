package indexes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/rig/servers"
)

// points is how many there are in a chart of lines.
const points = 10

// report makes the section of the trials.
func report(p plan, trials []*trial) results.Section {
	var s results.Section
	runs := false
	for _, t := range trials {
		if t.server.Err != nil {
			s.Notes = append(s.Notes, fmt.Sprintf("%s does not run here: %s.", t.kind, servers.Reason(t.server.Err)))
			continue
		}
		runs = true
		s.Notes = append(s.Notes, fmt.Sprintf("%s %s. %s", t.kind, t.server.Version, t.about))
		if t.err != nil {
			s.Notes = append(s.Notes, fmt.Sprintf("%s did not get to the end: %s.", t.kind, servers.Reason(t.err)))
		}
		if t.rounds() > 0 {
			s.Tables = append(s.Tables, t.summary(), t.growth(p))
		}
	}
	if !runs {
		s.Skipped = "Neither PostgreSQL nor MariaDB runs here."
	}
	return s
}

// rounds is how many chunks each table has.
func (t *trial) rounds() int {
	if len(t.tables) == 0 {
		return 0
	}
	n := len(t.tables[0].rates)
	for _, s := range t.tables {
		n = min(n, len(s.rates))
	}
	return n
}

// summary is a table with a row per kind of key.
func (t *trial) summary() results.Table {
	table := results.Table{ID: "index-" + t.id, RowName: "primary key", Base: oursName,
		Title: fmt.Sprintf("%s, %s rows of each", t.kind, results.Figure(float64(t.tables[0].rows))),
		Columns: []results.Column{
			{ID: "rate", Title: "inserted", Unit: "rows/s", Better: results.More},
			{ID: "last", Title: "inserted, of the last fifth", Unit: "rows/s", Better: results.More},
			{ID: "index", Title: "index", Unit: "bytes/row", Better: results.Less},
			{ID: "whole", Title: "table and index", Unit: "bytes/row", Better: results.Less},
			{ID: "splits", Title: "page splits per 1,000 rows", Better: results.Less},
			{ID: "log", Title: "written to the log", Unit: "bytes/row", Better: results.Less},
		},
		Charts: []results.Chart{{ID: "index-" + t.id, Title: fmt.Sprintf("%s: bytes per row", t.kind), Columns: []string{"index", "whole"}, YLabel: "bytes per row"}},
	}
	n := t.rounds()
	for _, s := range t.tables {
		one := func(v, per float64) results.Cell {
			if v < 0 || s.size.whole <= 0 || s.rows == 0 {
				return results.Cell{}
			}
			return results.Cell{Samples: []float64{v / float64(s.rows) * per}}
		}
		row := results.Row{Name: s.name, Group: s.group, Cells: []results.Cell{
			{Samples: s.rates[:n]}, {Samples: s.rates[n-max(1, n/5) : n]},
			one(s.size.index, 1), one(s.size.whole, 1), one(s.size.splits, 1000), {Samples: s.logged[:n]},
		}}
		if s.size.whole > 0 && s.size.index < 0 {
			row.Cells[2].Text = "is the table"
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// growth is a table with a column per tenth of the plan, as far as the run got.
func (t *trial) growth(p plan) results.Table {
	title := fmt.Sprintf("%s: rows per second as the table grows", t.kind)
	table := results.Table{ID: "index-growth-" + t.id, RowName: "primary key", Base: oursName, Title: title, Detail: true,
		Charts: []results.Chart{{ID: "index-growth-" + t.id, Title: title, Lines: true, XLabel: "rows in the table", YLabel: "rows per second"}}}
	for _, s := range t.tables {
		table.Rows = append(table.Rows, results.Row{Name: s.name, Group: s.group})
	}
	chunk := p.batches * batchRows
	group := max(1, p.rows/chunk/points)
	for from := 0; from < t.rounds(); from += group {
		to := min(from+group, t.rounds())
		rows := float64(to * chunk)
		table.Columns = append(table.Columns, results.Column{ID: fmt.Sprint(rows), Title: results.Figure(rows), Unit: "rows/s", Better: results.More, X: rows})
		for i, s := range t.tables {
			table.Rows[i].Cells = append(table.Rows[i].Cells, results.Cell{Samples: s.rates[from:to]})
		}
	}
	return table
}

// verdict compares the rates of the other keys with that of tickflake, by engine.
func verdict(s results.Section) string {
	var said []string
	for _, e := range engines() {
		t := s.Table("index-" + e.id)
		ours := t.Cell(oursName, "rate")
		var others []string
		for _, row := range t.Rows {
			if d, ok := t.Cell(row.Name, "rate").Against(ours); ok && row.Group == results.Peers {
				with := "not measurably different"
				if d.Significant() {
					with = results.Times(d.Ratio)
				}
				others = append(others, row.Name+" "+with)
			}
		}
		if len(others) > 0 {
			slices.Sort(others)
			said = append(said, fmt.Sprintf("%s inserts %s rows per second with tickflake IDs (%s)", e.kind, results.Figure(ours.Median()), strings.Join(others, ", ")))
		}
	}
	if len(said) == 0 {
		return ""
	}
	return strings.Join(said, "; ") + "."
}
