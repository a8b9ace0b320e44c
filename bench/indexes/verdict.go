package indexes

import (
	"fmt"
	"math"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
)

// verdict says what the tables of an engine come to.
func (t *trial) verdict() []string {
	table := t.summary()
	ours := table.Cell(oursName, "rate")
	out := []string{fmt.Sprintf("%s inserts %s rows per second with tickflake IDs; %s.",
		t.kind, results.Figure(math.Round(ours.Median())), peers(&table, func(name string) string { return speed(ours, table.Cell(name, "rate")) }))}
	column, what := "index", "The index"
	if t.sizeColumns()[0] != column {
		column, what = "whole", "The table, which is the index,"
	}
	if of := table.Cell(oursName, column).Median(); of > 0 {
		out = append(out, fmt.Sprintf("%s takes %s bytes per row with tickflake IDs; %s.", what, results.Figure(of),
			peers(&table, func(name string) string { return ratio(table.Cell(name, column).Median() / of) })))
	}
	if of := table.Cell(oursName, "splits").Median(); of > 0 {
		out = append(out, fmt.Sprintf("%s splits %s pages per 1,000 rows with tickflake IDs; %s.", t.kind, results.Figure(of),
			peers(&table, func(name string) string { return ratio(table.Cell(name, "splits").Median() / of) })))
	}
	d, ok := table.Cell(autoName, "rate").Against(ours)
	small := table.Cell(autoName, column).Median() <= 1.005*table.Cell(oursName, column).Median()
	if ok && small && d.Testable() && !(d.Significant() && d.Ratio < 1) {
		out = append(out, fmt.Sprintf("For one table in one %s, an auto-increment does as well or better, as far as these rounds tell: it is not slower, it is as small, and nothing has to make its numbers. "+
			"A tickflake ID is known before the row is inserted, and no other database has it.", t.kind))
	}
	return out
}

// peers puts together what f says of each peer.
func peers(table *results.Table, f func(name string) string) string {
	var all []string
	for _, row := range table.Rows {
		if row.Group == results.Peers {
			all = append(all, row.Name+": "+f(row.Name))
		}
	}
	return strings.Join(all, ", ")
}

// speed says how fast a peer is beside ours.
func speed(ours, theirs results.Cell) string {
	d, ok := theirs.Against(ours)
	switch {
	case !ok:
		return "not measured"
	case !d.Testable():
		return "too few rounds to tell"
	case !d.Significant():
		return "no clear difference"
	case d.Ratio > 1:
		return fmt.Sprintf("%s faster", results.Percent(d.Ratio-1))
	}
	return fmt.Sprintf("%s slower", results.Percent(1-d.Ratio))
}

// ratio is how many times as much it is.
func ratio(v float64) string {
	if math.IsNaN(v) {
		return "not measured"
	}
	if math.Abs(v-1) < 0.005 {
		return "the same"
	}
	return fmt.Sprintf("%.2f×", v)
}
