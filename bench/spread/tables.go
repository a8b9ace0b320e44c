package spread

import (
	"fmt"

	"github.com/tickflake/tickflake/bench/results"
)

const about = `At the boundary of a tick: each generator is asked for IDs without a pause, in real time, in turn with the others and in random order, and tick and sequence are read from its IDs. ` +
	`A slot is a place for an ID: 4,096 in a millisecond here, 256 in 10 ms for sony/sonyflake. Slots of whole ticks that got no ID are unused. ` +
	`Within the ticks that got IDs they are those before the first, because the sequence began later; those between; and those after the last, because the tick passed first. ` +
	`Ticks without any ID are counted apart: on a machine that does other things as well they are mostly its doing.

At a low rate: one ID every 10 ms, in virtual time, from each generator that can be driven so. What counts is the remainder of the ID, divided by 2 and by 16: the shard that a program chooses by id % n. Of an ID of more than 64 bits it is its last byte that is divided. ` +
	`Pearson's chi-square is that against the same number in each shard; p is the probability that as much, or more, comes of chance. Each sample is 1,024 IDs in a row, and the median p of five samples is judged: below 0.01 it is no chance.`

// tables are those of the section, and its charts.
func tables(idle []line, busy []worn) ([]results.Table, []results.Chart) {
	return []results.Table{unused(busy), chances(idle), residues(idle, true), residues(idle, false)},
		[]results.Chart{
			{ID: "waste-busy-chart", Title: "Slots that a busy generator leaves unused", Kind: results.Bars, Table: "waste-busy",
				Columns: []string{"start", "between", "end"}, YLabel: "% of the slots, in ticks with IDs"},
			{ID: "waste-residues-chart", Title: "Where IDs at a low rate go, of 16 shards", Kind: results.Bars, Table: "waste-residues", YLabel: "% of the IDs"},
		}
}

func unused(busy []worn) results.Table {
	column := func(id, title string) results.Column {
		return results.Column{ID: id, Title: title, Unit: "%", Better: results.Less}
	}
	t := results.Table{ID: "waste-busy", Title: "Slots that a busy generator leaves unused", RowName: "generator", Columns: []results.Column{
		column("all", "unused in all"), column("start", "before a tick's first ID"), column("between", "between"),
		column("end", "after its last ID"), column("skipped", "ticks without an ID"), {ID: "ticks", Title: "whole ticks per sample", Unit: "ticks"}}}
	for _, b := range busy {
		r := results.Row{Name: b.name, Group: b.group, Note: b.note()}
		for _, of := range []func(waste) float64{waste.all, func(w waste) float64 { return w.start }, func(w waste) float64 { return w.between },
			func(w waste) float64 { return w.end }, func(w waste) float64 { return w.skipped }} {
			var c results.Cell
			for _, w := range b.rounds {
				c.Samples = append(c.Samples, 100*of(w))
			}
			r.Cells = append(r.Cells, c)
		}
		var ticks results.Cell
		for _, w := range b.rounds {
			ticks.Samples = append(ticks.Samples, float64(w.ticks))
		}
		t.Rows = append(t.Rows, results.Row{Name: r.Name, Group: r.Group, Note: r.Note, Cells: append(r.Cells, ticks)})
	}
	return t
}

// note says what a random start must cost.
func (b busy) note() string {
	if b.starts == 0 {
		return ""
	}
	return fmt.Sprintf("a start below %d leaves %s%% unused on average", b.starts, results.Figure(100*expected(b.starts)))
}

// expected is the share of the slots that a random start leaves unused on average.
func expected(below int64) float64 { return float64(max(below, 1)-1) / 2 / perTick }

func chances(idle []line) results.Table {
	t := results.Table{ID: "waste-chances", Title: "How IDs at a low rate spread", RowName: "generator", Columns: []results.Column{
		{ID: "chi2-2", Title: "χ² modulo 2"}, {ID: "p-2", Title: "p modulo 2"}, {ID: "chi2-16", Title: "χ² modulo 16"}, {ID: "p-16", Title: "p modulo 16"},
		{ID: "most", Title: "in the fullest of 16", Unit: "%", Better: results.Less}}}
	for _, l := range idle {
		r := results.Row{Name: l.name, Group: l.group, Cells: make([]results.Cell, len(t.Columns))}
		if len(l.by) > 0 {
			chi2, p := func(s spread) float64 { return s.chi2 }, func(s spread) float64 { return s.p }
			r.Cells = []results.Cell{single(over(l.by2, chi2)), judged(over(l.by2, p)), single(over(l.by, chi2)), judged(over(l.by, p)), single(100 * over(l.by, spread.most))}
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// single is a cell with one sample. The samples of a generator are not repeats of one
// measurement, whose differences would be noise.
func single(x float64) results.Cell { return results.Cell{Samples: []float64{x}} }

// judged is a cell with a probability.
func judged(p float64) results.Cell {
	c := single(p)
	if c.Mark = results.Good; p < uniform {
		c.Mark = results.Bad
	}
	return c
}

// residues shows the shares of the shards, for IDs that are integers or for others.
func residues(idle []line, integers bool) results.Table {
	t := results.Table{ID: "waste-residues", Title: "Shares of 16 shards, of IDs that are integers", RowName: "generator"}
	if !integers {
		t.ID, t.Title = "waste-residues-last-byte", "Shares of 16 shards, of the last byte of other IDs"
	}
	for i := range shards {
		t.Columns = append(t.Columns, results.Column{ID: fmt.Sprint("r", i), Title: fmt.Sprint(i), Unit: "%"})
	}
	for _, l := range idle {
		if l.integers != integers {
			continue
		}
		r := results.Row{Name: l.name, Group: l.group, Cells: make([]results.Cell, shards)}
		for i := range r.Cells {
			if len(l.all.shares) > 0 {
				r.Cells[i] = single(100 * l.all.shares[i])
			}
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}
