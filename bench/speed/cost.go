package speed

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

func costSection() measure.Section {
	return measure.Section{ID: "cost", Title: "Cost of one ID", Full: 25 * time.Second, Quick: 4 * time.Second, Measure: measureCost}
}

const aboutCost = `One goroutine issues IDs in a loop, and keeps none. Every case does a batch of about 5 ms in each round, in random order, after an unmeasured lead-in of at least a sixteenth of that; a case that reaches its format's ceiling uses up the tick that it finds before it is measured, and then does whole ticks. The floor is one clock read and one compare-and-swap, the least that an ID can cost if goroutines share the generator and take one at a time; a stream is one goroutine's, and NextN takes many. Tickflake has a layout here whose sequence of 22 bits is never used up, and peers whose settings allow it are here with a wider sequence as well as with their own. What runs ahead of the clock does not stop at the ceiling of its format. × floor is by round: both are from the same tenth of a second or so. CPU is the processor time of the whole process. A garbage collection runs before each batch, unmeasured, so that no case collects another's garbage; a case that allocates may so collect less than its own.`

func measureCost(ctx context.Context, run *measure.Run) results.Section {
	all := open(ctx, append(append([]cases.Case{cases.Floor()}, cases.Ours()...), cases.Peers()...))
	works := make([]measure.Work, len(all))
	for i, o := range all {
		works[i] = o.work(1)
	}
	samples := measure.Interleave(ctx, run, 5*time.Millisecond, 3, works)

	c := newCosts(all, samples)
	return results.Section{
		ID: "cost", Title: "Cost of one ID", About: aboutCost, Command: "go run ./bench --only cost",
		Tables:  []results.Table{c.table},
		Targets: c.targets(),
		Verdict: c.verdict(),
		Notes:   append(failures(works, samples), closeAll(all)...),
		Charts: []results.Chart{{
			ID: "cost", Title: "Time per ID", Kind: results.Bars, Table: "cost",
			Columns: []string{"ns", "ceiling"}, YLabel: "ns per ID", LogY: true,
		}},
	}
}

// costs is what was measured of each case, by its name, and the table of it.
type costs struct {
	table   results.Table
	samples map[string]measure.Samples
	widened map[string]bool
	floor   string
}

func newCosts(all []opened, samples []measure.Samples) costs {
	c := costs{samples: map[string]measure.Samples{}, widened: map[string]bool{}, floor: cases.Floor().Name, table: results.Table{
		ID: "cost", Title: "One ID, one goroutine", RowName: "case", Base: nextName,
		Columns: []results.Column{
			{ID: "bits", Title: "bits"},
			{ID: "ns", Title: "time", Unit: "ns/ID", Better: results.Less},
			{ID: "floor", Title: "× floor", Unit: "×", Better: results.Less},
			{ID: "cpu", Title: "CPU", Unit: "ns/ID", Better: results.Less},
			{ID: "allocs", Title: "allocations", Unit: "per ID", Better: results.Less},
			{ID: "bytes", Title: "allocated", Unit: "bytes/ID", Better: results.Less},
			{ID: "ceiling", Title: "ceiling of its format", Unit: "ns/ID"},
		},
	}}
	for i, o := range all {
		c.samples[o.Name], c.widened[o.Name] = samples[i], o.Widened
	}
	for i, o := range all {
		s := samples[i]
		row := o.row()
		row.Cells = []results.Cell{
			{Samples: []float64{float64(o.Bits)}},
			cell(s.Wall, s.Err),
			cell(measure.Ratios(s.Wall, c.samples[c.floor].Wall), s.Err),
			cpuCell(s.CPU, s),
			cell(measure.Each(s.Allocs, wholeAllocs), s.Err),
			cell(measure.Each(s.Bytes, wholeAllocs), s.Err),
			ceilingCell(o.Case),
		}
		c.table.Rows = append(c.table.Rows, row)
	}
	for _, name := range c.capped() {
		row := c.table.Row(name)
		row.Note = "as fast as its format allows; what the code itself would take cannot be told from this"
	}
	return c
}

// wholeAllocs leaves out what is not per ID: the few allocations per batch of the loop,
// and of the runtime.
func wholeAllocs(perID float64) float64 {
	if perID < 0.01 {
		return 0
	}
	return perID
}

// ceilingCell says what the format allows. It has a sample, and so a bar in the chart,
// where that is what holds callers up.
func ceilingCell(c cases.Case) results.Cell {
	out := results.Cell{Text: "none"}
	if ns := c.Limit.NanosecondsPerID(); ns > 0 {
		out.Text = fmt.Sprintf("%s (%v)", results.Figure(ns), c.Limit)
		if c.Limit.Binds() {
			out.Samples = []float64{ns}
		}
		switch {
		case c.Limit.Repeats:
			out.Text += "; faster, it repeats IDs"
		case c.Limit.Ahead:
			out.Text += "; faster, it runs ahead of the clock"
		}
	}
	return out
}

// capped are the cases that took what their format's ceiling makes them take, within
// 5%.
func (c costs) capped() []string {
	var names []string
	for _, row := range c.table.Rows {
		ceiling := c.table.Cell(row.Name, "ceiling").Samples
		if ns := c.ns(row.Name); len(ceiling) == 1 && ns < 1.05*ceiling[0] {
			names = append(names, row.Name)
		}
	}
	return names
}

// ns is the median time per ID of a case, or NaN.
func (c costs) ns(name string) float64 { return c.table.Cell(name, "ns").Median() }

// ratios are how a case stands to another, by round, in time that passed and in
// processor time.
func (c costs) ratios(subject, base string) (wall, cpu []float64) {
	s, b := c.samples[subject], c.samples[base]
	return measure.Ratios(s.Wall, b.Wall), measure.Ratios(s.CPU, b.CPU)
}

// fastestPeer is the peer with the least time per ID, or empty if none was measured.
func (c costs) fastestPeer() string { return c.fastest(func(string) bool { return true }) }

// fastest is the fastest of the peers that are among those that count.
func (c costs) fastest(counts func(name string) bool) string {
	found := ""
	for _, row := range c.table.Rows {
		if row.Group == results.Peers && counts(row.Name) && c.ns(row.Name) > 0 && (found == "" || c.ns(row.Name) < c.ns(found)) {
			found = row.Name
		}
	}
	return found
}
