package indexes

import (
	"fmt"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/servers"
)

const about = "Rows of a primary key and %d bytes are inserted with multi-row INSERTs of %s rows over one connection, each committed by itself, " +
	"into a table for each kind of key. The tables take turns of %s rows, in random order, until each has %s rows or the time is up; so all have as many, and share the server's cache. " +
	"What is timed is the inserts: the rows are made before. The servers have the settings that their makers ship, synced commits and caches of 128 MB among them, and run on this machine. " +
	"One program inserts; with several, keys that sort by time come nearly in order, and not quite."

// points is how many there are in a chart of lines.
const points = 10

// report makes the section of what was measured.
func report(p plan, trials []*trial) results.Section {
	figure := func(n int) string { return results.Figure(float64(n)) }
	section := results.Section{ID: "index", Title: "Index friendliness", Command: "go run ./bench --only index",
		About: fmt.Sprintf(about, payloadBytes, figure(batchRows), figure(p.batches*batchRows), figure(p.rows))}
	runs := false
	for _, t := range trials {
		if t.server.Err != nil {
			section.Notes = append(section.Notes, fmt.Sprintf("%s does not run here: %s.", t.kind, servers.Reason(t.server.Err)))
			continue
		}
		runs = true
		section.Notes = append(section.Notes, fmt.Sprintf("%s %s. %s", t.kind, t.server.Version, t.about))
		if t.err != nil {
			section.Notes = append(section.Notes, fmt.Sprintf("%s did not get to the end: %s.", t.kind, servers.Reason(t.err)))
		}
		if t.rounds() == 0 {
			continue
		}
		if rows := t.tables[0].rows; rows < p.rows {
			section.Notes = append(section.Notes, fmt.Sprintf("In the time that there was, %s got %s rows into each table, and not %s.", t.kind, figure(rows), figure(p.rows)))
		}
		section.Tables = append(section.Tables, t.summary(), t.growth(p))
		section.Charts = append(section.Charts,
			results.Chart{ID: "index-growth-" + t.id, Title: fmt.Sprintf("%s: rows per second as the table grows", t.kind), Kind: results.Lines,
				Table: "index-growth-" + t.id, XLabel: "rows in the table", YLabel: "rows per second"},
			results.Chart{ID: "index-" + t.id, Title: fmt.Sprintf("%s: bytes per row", t.kind), Kind: results.Bars,
				Table: "index-" + t.id, Columns: t.sizeColumns(), YLabel: "bytes per row"})
		section.Verdict = append(section.Verdict, t.verdict()...)
	}
	if !runs {
		section.Skipped = "Neither PostgreSQL nor MariaDB runs here."
	}
	return section
}

// rounds is how many chunks each table has.
func (t *trial) rounds() int {
	n := 0
	for i, s := range t.tables {
		if i == 0 || len(s.rates) < n {
			n = len(s.rates)
		}
	}
	return n
}

func (t *trial) sizeColumns() []string {
	if len(t.tables) > 0 && t.tables[0].size.index < 0 {
		return []string{"whole"}
	}
	return []string{"index", "whole"}
}

// summary is a table with a row per kind of key.
func (t *trial) summary() results.Table {
	rows := t.tables[0].rows
	table := results.Table{ID: "index-" + t.id, RowName: "primary key", Base: oursName,
		Title: fmt.Sprintf("%s, %s rows of each", t.kind, results.Figure(float64(rows))),
		Columns: []results.Column{
			{ID: "rate", Title: "Inserted", Unit: "rows/s", Better: results.More},
			{ID: "last", Title: "Inserted, of the last fifth", Unit: "rows/s", Better: results.More},
			{ID: "index", Title: "Index", Unit: "bytes/row", Better: results.Less},
			{ID: "whole", Title: "Table and index", Unit: "bytes/row", Better: results.Less},
			{ID: "splits", Title: "Page splits per 1,000 rows", Better: results.Less},
			{ID: "log", Title: "Written to the log", Unit: "bytes/row", Better: results.Less},
		}}
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

// growth is a table with a column per tenth of the plan, as far as it was reached.
func (t *trial) growth(p plan) results.Table {
	table := results.Table{ID: "index-growth-" + t.id, RowName: "primary key", Base: oursName,
		Title: fmt.Sprintf("%s, rows per second up to so many rows", t.kind)}
	for _, s := range t.tables {
		table.Rows = append(table.Rows, results.Row{Name: s.name, Group: s.group})
	}
	chunk := p.batches * batchRows
	group := max(1, p.rows/chunk/points)
	for from := 0; from < t.rounds(); from += group {
		to := min(from+group, t.rounds())
		rows := to * chunk
		table.Columns = append(table.Columns, results.Column{ID: fmt.Sprint(rows), Title: results.Figure(float64(rows)), Unit: "rows/s", Better: results.More, X: float64(rows)})
		for i, s := range t.tables {
			table.Rows[i].Cells = append(table.Rows[i].Cells, results.Cell{Samples: s.rates[from:to]})
		}
	}
	return table
}
