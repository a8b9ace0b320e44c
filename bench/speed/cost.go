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
	return measure.Section{ID: "cost", Title: "Cost of one ID", Full: 35 * time.Second, Quick: 3 * time.Second,
		About: "One goroutine issues IDs in a loop. In each round every case does a batch of about 5 ms, after an unmeasured lead-in and a garbage collection, next to a batch of its floor. " +
			"The floor is one clock read and one compare-and-swap; a counted number reads no clock, and its floor is one atomic addition. The layout of tickflake has a sequence here that is never used up; " +
			"a peer at the ceiling of its format shows the ceiling, and not its cost. × floor is the distance to the case's own floor.",
		Measure: measureCost, Verdict: costVerdict}
}

// Names of cases in targets and verdicts.
const (
	nextName    = "Next"
	leasedName  = "Next, under a lease"
	bulkName    = "NextN(1024)"
	streamName  = "Stream.Next"
	numberName  = "Sequence.Next"
	numbersName = "Sequence.NextN(1000)"
)

func measureCost(ctx context.Context, run *measure.Run) results.Section {
	floor, add := cases.Floor(), cases.AddFloor()
	all := open(ctx, slices.Concat([]cases.Case{floor, add}, cases.Ours(), cases.Counted(), cases.Peers(), cases.Yours()))
	works := make([]measure.Work, len(all))
	for i, o := range all {
		works[i] = o.work(1)
		base := &works[0]
		if o.Clockless {
			base = &works[1]
		}
		works[i].Base = base
	}
	// Two of our cases are compared with each other.
	next, leased := find(all, nextName), find(all, leasedName)
	beside := leased.work(1)
	without := next.work(1)
	beside.Base = &without
	samples := measure.Interleave(ctx, run, 5*time.Millisecond, 3, append(works, beside))
	return results.Section{
		Tables:  []results.Table{costTable(all, samples)},
		Targets: costTargets(all, samples, samples[len(all)].Pair()),
		Notes:   append(failures(works, samples), closeAll(all)...),
	}
}

// find returns the case of the name. It is empty if there is none.
func find(all []opened, name string) opened {
	for _, o := range all {
		if o.Name == name {
			return o
		}
	}
	return opened{err: fmt.Errorf("there is no case %s", name)}
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
			distance(s),
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

// distance shows how a case stands to its floor.
func distance(s measure.Samples) results.Cell {
	if len(s.Wall) == 0 {
		return cell(nil, s.Err)
	}
	return s.Pair().Cell()
}

// costTargets judges the pairs of the cases with their floors, and of Next under a lease with
// Next.
func costTargets(all []opened, samples []measure.Samples, leased measure.Pair) []results.Target {
	pairs := map[string]measure.Pair{}
	fastest, least := "", 0.0
	var bulk measure.Samples
	for i, o := range all {
		pairs[o.Name] = samples[i].Pair()
		if o.Name == numbersName {
			bulk = samples[i]
		}
		if median := (results.Cell{Samples: samples[i].Wall}).Median(); o.Group == results.Peers && median > 0 && (fastest == "" || median < least) {
			fastest, least = o.Name, median
		}
	}
	floors := func(names ...string) string {
		var said []string
		for _, name := range names {
			if c := pairs[name].Cell(); len(c.Samples) > 0 {
				said = append(said, name+" "+results.Times(c.Median()))
			}
		}
		if len(said) == 0 {
			return ""
		}
		return results.List(said) + " the floor"
	}
	beside := floors(nextName, fastest)
	return []results.Target{
		pairs[nextName].Judge(results.Target{ID: "cost-next", Text: "Next: at most 1.08× the floor", Unit: "×", Want: 1.08, AtMost: true}.With(beside)),
		pairs[fastest].Per(pairs[bulkName]).Judge(results.Target{ID: "cost-bulk", Text: "NextN(1024): at least 20× as fast per ID as the fastest peer", Unit: "×", Want: 20}.With(floors(bulkName, fastest))),
		leased.Judge(results.Target{ID: "cost-lease", Text: "Next under a lease: at most 1.03× Next without one", Unit: "×", Want: 1.03, AtMost: true}),
		pairs[numberName].Judge(results.Target{ID: "cost-number", Text: "Sequence.Next: at most 1.5× an atomic addition", Unit: "×", Want: 1.5, AtMost: true}),
		results.Target{ID: "cost-numbers", Text: "Sequence.NextN(1000): at most 0.1 ns per number", Unit: "ns", Want: 0.1, AtMost: true,
			Got: results.Cell{Samples: bulk.Wall}}.Judge(bulk.CPU),
	}
}

func costVerdict(s results.Section) string {
	t := s.Table("cost")
	ns := t.Cell(nextName, "ns").Median()
	if !(ns > 0) {
		return ""
	}
	if floor := t.Cell(nextName, "floor").Median(); floor > 0 {
		return fmt.Sprintf("Next takes %s ns per ID, %s the floor; %s faster.", results.Figure(ns), results.Times(floor), peersAre(t.Ahead(nextName, "floor")))
	}
	return fmt.Sprintf("Next takes %s ns per ID, and the machine was too disturbed to tell its distance to the floor.", results.Figure(ns))
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
