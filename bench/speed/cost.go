package speed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

func costSection() measure.Section {
	return measure.Section{ID: "cost", Title: "Cost of one ID", Full: 25 * time.Second, Quick: 4 * time.Second,
		About: "One goroutine issues IDs in a loop. In each round every case does a batch of about 5 ms, after an unmeasured lead-in and a garbage collection. " +
			"The floor is one clock read and one compare-and-swap; a counted number reads no clock, and its floor is one atomic addition. The layout of tickflake has a sequence here that is never used up; " +
			"a peer at the ceiling of its format shows the ceiling, and not its cost. × floor is computed round by round.",
		Measure: measureCost, Verdict: costVerdict}
}

// Names of cases in targets and verdicts.
const (
	nextName    = "Next"
	leasedName  = "Next, under a lease"
	bulkName    = "NextN(1024)"
	numberName  = "Sequence.Next"
	numbersName = "Sequence.NextN(1000)"
)

func measureCost(ctx context.Context, run *measure.Run) results.Section {
	all := open(ctx, slices.Concat([]cases.Case{cases.Floor(), cases.AddFloor()}, cases.Ours(), cases.Counted(), cases.Peers()))
	works := make([]measure.Work, len(all))
	for i, o := range all {
		works[i] = o.work(1)
	}
	samples := measure.Interleave(ctx, run, 5*time.Millisecond, 3, works)
	return results.Section{
		Tables:  []results.Table{costTable(all, samples)},
		Targets: costTargets(all, samples),
		Notes:   append(failures(works, samples), closeAll(all)...),
	}
}

func costTable(all []opened, samples []measure.Samples) results.Table {
	t := results.Table{
		ID: "cost", Title: "One ID, one goroutine", RowName: "case", Base: nextName,
		Columns: []results.Column{
			{ID: "bits", Title: "bits"},
			{ID: "ns", Title: "time", Unit: "ns/ID", Better: results.Less},
			{ID: "floor", Title: "× floor", Better: results.Less},
			{ID: "cpu", Title: "CPU", Unit: "ns/ID", Better: results.Less},
			{ID: "allocs", Title: "allocations", Unit: "per ID", Better: results.Less},
			{ID: "bytes", Title: "allocated", Unit: "bytes/ID", Better: results.Less},
			{ID: "ceiling", Title: "ceiling of its format", Unit: "ns/ID"},
		},
		Charts: []results.Chart{{ID: "cost", Title: "Time per ID", Columns: []string{"ns"}, YLabel: "ns per ID", LogY: true}},
	}
	for i, o := range all {
		s, row := samples[i], o.row()
		row.Cells = []results.Cell{
			{Samples: []float64{float64(o.Bits)}},
			cell(s.Wall, s.Err),
			cell(measure.Ratios(s.Wall, samples[0].Wall), s.Err), // the floor comes first
			cpuCell(s.CPU, s),
			cell(measure.Each(s.Allocs, wholeAllocs), s.Err),
			cell(measure.Each(s.Bytes, wholeAllocs), s.Err),
			{Text: ceilingText(o.Limit)},
		}
		if median := row.Cells[1].Median(); o.Limit.Binds() && median < 1.05*o.Limit.NanosecondsPerID() {
			row.Note = "at the ceiling of its format; the cost of the code does not show"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// wholeAllocs leaves out what is not per ID: the few allocations per batch of the loop and
// the runtime.
func wholeAllocs(perID float64) float64 {
	if perID < 0.01 {
		return 0
	}
	return perID
}

func ceilingText(l cases.Limit) string {
	switch {
	case l.IDs == 0:
		return "none"
	case l.Repeats:
		return results.Figure(l.NanosecondsPerID()) + "; faster, it repeats IDs"
	case l.Ahead:
		return results.Figure(l.NanosecondsPerID()) + "; faster, it runs ahead of the clock"
	}
	return results.Figure(l.NanosecondsPerID())
}

func costTargets(all []opened, samples []measure.Samples) []results.Target {
	byName := map[string]measure.Samples{}
	floor, peer, least := all[0].Name, "", 0.0
	for i, o := range all {
		byName[o.Name] = samples[i]
		median := results.Cell{Samples: samples[i].Wall}.Median()
		if o.Group == results.Peers && median > 0 && (peer == "" || median < least) {
			peer, least = o.Name, median
		}
	}
	target := func(t results.Target, subject, base string) results.Target {
		s, b := byName[subject], byName[base]
		t.Got.Samples = measure.Ratios(s.Wall, b.Wall)
		return t.Judge(measure.Ratios(s.CPU, b.CPU))
	}
	return []results.Target{
		target(results.Target{ID: "cost-next", Text: "Next: at most 1.25× the floor", Unit: "×", Want: 1.25, AtMost: true}, nextName, floor),
		target(results.Target{ID: "cost-peers", Text: "Next: at least 1.5× as fast as the fastest peer of any width", Unit: "×", Want: 1.5}, peer, nextName),
		target(results.Target{ID: "cost-bulk", Text: "NextN(1024): at least 20× as fast per ID as the fastest peer", Unit: "×", Want: 20}, peer, bulkName),
		target(results.Target{ID: "cost-lease", Text: "Next under a lease: at most 1.03× Next without one", Unit: "×", Want: 1.03, AtMost: true}, leasedName, nextName),
		target(results.Target{ID: "cost-number", Text: "Sequence.Next: at most 1.5× an atomic addition", Unit: "×", Want: 1.5, AtMost: true}, numberName, cases.AddFloor().Name),
		results.Target{ID: "cost-numbers", Text: "Sequence.NextN(1000): at most 0.1 ns per number", Unit: "ns", Want: 0.1, AtMost: true,
			Got: results.Cell{Samples: byName[numbersName].Wall}}.Judge(byName[numbersName].CPU),
	}
}

func costVerdict(s results.Section) string {
	t := s.Table("cost")
	ns := t.Cell(nextName, "ns").Median()
	if !(ns > 0) {
		return ""
	}
	return fmt.Sprintf("Next takes %s ns per ID, %s the floor; %s faster.",
		results.Figure(ns), results.Times(t.Cell(nextName, "floor").Median()), peersAre(t.Ahead(nextName, "floor")))
}

// peersAre begins a statement on peers that are significantly better.
func peersAre(names []string) string {
	switch len(names) {
	case 0:
		return "no peer is measurably"
	case 1:
		return names[0] + " is"
	}
	return results.List(names) + " are"
}
