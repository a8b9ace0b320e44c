package page

import (
	"slices"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
)

// Asked is what the report wants to know.
func (view) Asked() string {
	return "What does a unique 64-bit ID cost, and how near is that to the least that it can cost, the floor? How fast is it with many callers, over a network, and at the limit of its format? " +
		"Which IDs come twice when clocks step, processes restart and machines are copied? Other generators answer the same questions beside tickflake."
}

// answering are the sections whose verdicts answer that, in the order of the report.
var answering = []string{"cost", "ceiling", "latency", "kernel", "service"}

// Answers are the sections whose verdicts open the report. A run that is unusable has none.
func (v view) Answers() []results.Section {
	if v.Unusable() != "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.Sections), func(s results.Section) bool {
		return s.Verdict == "" || s.Unusable() != "" || !slices.Contains(answering, s.ID)
	})
}

// openingID names the chart that opens the report.
const openingID = "answer"

// Opening is the table of the chart that opens the report: how far Next, its variants and the
// peers are from the floor. Peers at the ceiling of their format, which shows in place of
// their cost, are left out. It has no rows if nothing of it was measured.
func (v view) Opening() results.Table {
	t := results.Table{ID: openingID, Title: "Cost of one ID"}
	for i := range v.Sections {
		if v.Sections[i].ID != "cost" {
			continue
		}
		cost := v.Sections[i].Table("cost")
		column, label := "floor", "× the floor"
		if len(cost.Cell("Next", column).Samples) == 0 {
			column, label = "ns", "ns per ID" // no round of the pairs counts
		}
		t.Columns = []results.Column{{ID: column, Title: label}}
		t.Charts = []results.Chart{{ID: openingID, Title: "Time per ID, one goroutine: × a clock read and a compare-and-swap", YLabel: label}}
		for _, r := range cost.Rows {
			shown := r.Group == results.Peers && !strings.HasPrefix(r.Note, "at the ceiling") ||
				slices.Contains([]string{"Next", "Next, under a lease", "Stream.Next"}, r.Name)
			if c := cost.Cell(r.Name, column); shown && len(c.Samples) > 0 {
				t.Rows = append(t.Rows, results.Row{Name: r.Name, Group: r.Group, Cells: []results.Cell{c}})
			}
		}
	}
	return t
}

// Yours says how a reader adds a generator.
func (view) Yours() string {
	return "A file like this one in `bench/yours` adds your generator to the report: to the cost, the ceiling, the scaling, the latency, the faults, the real kernel, the waste and the indexes. " +
		"The section on other ways asks servers, and the one on the service a protocol, so it does not apply there. " +
		"Run `go run ./bench --quick`. `go run -tags example ./bench --quick` shows this one without a change."
}

// Example is that file.
func (view) Example() string { return yours.Example() }
