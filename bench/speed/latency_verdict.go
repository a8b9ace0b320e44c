package speed

import (
	"fmt"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// tail is the quantile of the target.
var tail = quantiles[3]

// tailTarget compares the tail of Next with that of the empty loop, slice by slice, at
// one rate. On a machine whose stalls make up the empty loop's tail, it says that Next
// adds none of its own, and nothing of what a call takes: the cost section does that.
func tailTarget(lines []*line) results.Target {
	t := results.Target{ID: "latency-tail", Text: "p99.9 at 1 million IDs per second: at most 2× that of the empty loop", Unit: "×", Want: 2, AtMost: true}
	var next, empty *line
	for _, l := range lines {
		switch l.Name {
		case ceilingName:
			next = l
		case emptyName:
			empty = l
		}
	}
	// A case that failed has fewer slices, which those of the others' first rounds meet.
	both := min(len(next.slices), len(empty.slices))
	floor := tail.of(empty.slices[:both])
	t.Got.Samples = measure.Ratios(tail.of(next.slices[:both]), floor)
	return judged(t, nil, stalled(next, floor))
}

// stalled says why a tail is longer than the empty loop's, if that was itself held up
// for so long that a queue grew which the layout's ceiling bounds in being worked off.
func stalled(next *line, floor []float64) string {
	const long = 1e3 // µs, a tick
	if held := (results.Cell{Samples: floor}).Median(); held > long {
		return fmt.Sprintf("the empty loop was itself held up for %s µs, and the calls that queue up meanwhile are worked off at no more than %v", short(held), next.Limit)
	}
	return ""
}

func latencyVerdict(tables []results.Table) []string {
	var out []string
	for i, t := range tables {
		per := results.Figure(float64(rates[i].perSecond))
		if next, empty := t.Cell(ceilingName, tail.column), t.Cell(emptyName, tail.column); len(next.Samples) > 0 && len(empty.Samples) > 0 {
			said := fmt.Sprintf("At %s IDs/s, one call in a thousand takes Next more than %s µs, and the empty loop more than %s µs",
				per, short(next.Median()), short(empty.Median()))
			if d, _ := next.Against(empty); !d.Testable() {
				said += ", by samples that are too few to tell them apart"
			}
			out = append(out, said+".")
			if better := ahead(t, next); len(better) > 0 {
				out = append(out, fmt.Sprintf("At that rate, the tail is shorter for %s.", list(better)))
			}
		}
		var slow []string
		for _, row := range t.Rows {
			if row.Cells[0].Text == cannotKeepUp {
				slow = append(slow, fmt.Sprintf("%s (%s IDs/s)", row.Name, short(t.Cell(row.Name, "reached").Median())))
			}
		}
		if len(slow) > 0 {
			out = append(out, fmt.Sprintf("Who cannot keep up with %s IDs/s: %s.", per, list(slow)))
		}
	}
	return out
}

// ahead are the peers whose tail is shorter, as far as that can be told.
func ahead(t results.Table, next results.Cell) []string {
	var names []string
	for _, row := range t.Rows {
		c := t.Cell(row.Name, tail.column)
		if d, ok := c.Against(next); row.Group == results.Peers && ok && d.Significant() && d.Ratio < 1 {
			names = append(names, fmt.Sprintf("%s (%s µs)", row.Name, short(c.Median())))
		}
	}
	return names
}
