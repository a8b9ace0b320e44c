// Package speed has the sections of the report that measure time: the cost of an ID, the
// cost at the ceiling of its format, how the rate scales with goroutines, and how late an
// ID is at a fixed rate.
package speed

import (
	"context"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
)

// Sections returns the sections, in the order of the report.
func Sections() []measure.Section {
	return []measure.Section{costSection(), ceilingSection(), scalingSection(), latencySection()}
}

func costSection() measure.Section {
	return measure.Section{ID: "cost", Title: "Cost of one ID", Full: 35 * time.Second, Quick: 3 * time.Second,
		About: "One goroutine issues IDs in a loop, each by a call of a function value, the floor too. In each round every case does a batch of about 5 ms, after an unmeasured lead-in and a garbage collection, next to a batch of its floor. " +
			"The floor is one clock read and one compare-and-swap; a counted number reads no clock, and its floor is one atomic addition. The layout of tickflake has a sequence here that is never used up; " +
			"a peer at the ceiling of its format shows the ceiling, and not its cost. × floor is the distance to the case's own floor.",
		Measure: measureCost}
}

// Names of cases in targets and verdicts.
const (
	nextName   = "Next"
	leasedName = "Next, under a lease"
	bulkName   = "NextN(1024)"
	streamName = "Stream.Next"
	numberName = "Sequence.Next"
	publicName = "publicid.Encode"
)

func measureCost(ctx context.Context, run *measure.Run) report.Section {
	set := &generators.Set{Target: 5 * time.Millisecond}
	cases := slices.Concat([]generators.Case{generators.Floor, generators.AddFloor}, generators.Ours(), []generators.Case{generators.Number(), generators.Public()}, generators.Others())
	for _, c := range cases {
		base := &generators.Floor
		if c.Clockless || c.Name == generators.AddFloor.Name {
			base = &generators.AddFloor
		}
		set.Add(ctx, c, base, 1)
	}
	// Two of our cases are compared with each other.
	leased := set.Load(ctx, generators.Leased(leasedName, generators.Wide()), &cases[2], 1)
	run.Measure(ctx, measure.Pick(run, 1, 3), 0, append(slices.Clone(set.Loads), leased)...)
	s := report.Section{Tables: []report.Table{costTable(cases, set.Loads)}, Targets: costTargets(set.Loads, leased.Pair("wall"))}
	set.End(&s)
	return s
}

func costTable(cases []generators.Case, loads []*measure.Load) report.Table {
	t := report.Table{
		ID: "cost", Title: "One ID, one goroutine", RowName: "case", Base: nextName,
		Columns: []report.Column{
			{ID: "ns", Title: "time", Unit: "ns/ID", Better: report.Less},
			{ID: "floor", Title: "× floor", Better: report.Less},
			{ID: "cpu", Title: "CPU", Unit: "ns/ID", Better: report.Less},
			{ID: "allocs", Title: "allocations", Unit: "per ID", Better: report.Less},
			{ID: "bytes", Title: "allocated", Unit: "bytes/ID", Better: report.Less},
		},
	}
	// The few allocations per batch of the loop and the runtime are not per ID.
	whole := func(perID float64) float64 {
		if perID < 0.01 {
			return 0
		}
		return perID
	}
	for i, c := range cases {
		l := loads[i]
		if ns := l.Of("wall").Median(); c.Limit.Binds() && ns < 1.05*c.Limit.NanosecondsPerID() {
			l.Note = "at the ceiling of its format; the cost of the code does not show"
		}
		t.Rows = append(t.Rows, report.Row{Name: c.Name, Group: c.Group, Note: l.Note, Cells: []report.Cell{
			l.Of("wall"), l.Pair("wall"), l.Of("cpu"), l.Of("allocs").By(whole), l.Of("bytes").By(whole)}})
	}
	faster := "no peer is measurably faster"
	if names := t.Ahead(nextName, "floor"); len(names) > 0 {
		faster = "faster: " + report.List(names)
	}
	t.Say("Next takes %s ns per ID, %s× the floor; %s.", t.Cell(nextName, "ns"), t.Cell(nextName, "floor"), faster)
	return t
}

// costTargets judges the pairs of the cases with their floors, and of Next under a lease with
// Next.
func costTargets(loads []*measure.Load, leased report.Cell) []report.Target {
	fastest := &measure.Load{}
	for _, l := range loads {
		if ns := l.Of("wall").Median(); l.Group == report.Peers && ns > 0 && !(fastest.Of("wall").Median() <= ns) {
			fastest = l
		}
	}
	floor := func(name string) report.Cell { return measure.Find(loads, name, "").Pair("wall") }
	return []report.Target{
		{ID: "cost-next", Text: "Next: at most 1.1× the floor", Unit: "×", Want: 1.1, AtMost: true, Got: floor(nextName)},
		{ID: "cost-bulk", Text: "NextN(1024): at least 20× as fast per ID as the fastest peer", Unit: "×", Want: 20, Got: fastest.Pair("wall").Per(floor(bulkName))},
		{ID: "cost-lease", Text: "Next under a lease: at most 1.03× Next without one", Unit: "×", Want: 1.03, AtMost: true, Got: leased},
		{ID: "cost-number", Text: "Sequence.Next: at most 1.5× an atomic addition", Unit: "×", Want: 1.5, AtMost: true, Got: floor(numberName)},
		{ID: "cost-public", Text: "publicid.Encode: at most 1,000 ns", Unit: "ns", Want: 1000, AtMost: true, Got: measure.Find(loads, publicName, "").Of("wall")},
	}
}
