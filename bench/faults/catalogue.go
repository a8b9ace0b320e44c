// Package faults has the sections of the report that put tickflake and other generators through
// faults: those of the catalogue, in virtual time, and those on a real kernel, in a virtual
// machine. What each fault did to each generator, tickflake-chaos prints.
package faults

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/generator/generatortest"
)

// Sections returns the two sections.
func Sections() []measure.Section { return []measure.Section{catalogueSection(), kernelSection()} }

func catalogueSection() measure.Section {
	return measure.Section{ID: "faults", Title: "Strategies under faults", Full: 5 * time.Second, Quick: 2 * time.Second,
		About: "Each fault is a script of calls, and of what happens to the clock and the process; docs/faults.md says what. " +
			"The default strategy of tickflake runs on a raw wall clock, on a monoclock, and on a monoclock under a lease; `tickflake-chaos run` runs the others. Other generators run on a virtual clock too. " +
			"Those that read package time, such as bwmarrin/snowflake and sony/sonyflake, meet the faults on a real kernel. All time is virtual, so one run is enough. " +
			"A cell is ✓ if every call was served, in order, within one tick; ✗ if an ID came twice or another promise of the generator's documentation, as its note says, was broken; " +
			"– if the fault could not be run. Any other cell is the price: failed calls or starts (err), IDs out of order (disorder), " +
			"a wait of more than a tick (stall), or an ID ahead of the clock by more than a tick (lead). " +
			"In F17 and F18 a call that fails is right. The faults of stores and leases (F14, F15, F19, F20), which peers do not have, are in chaos_test; " +
			"in F19, a copy of a process's memory, every strategy issues IDs twice.",
		Measure: measureCatalogue}
}

func measureCatalogue(ctx context.Context, _ *measure.Run) report.Section {
	list := slices.Concat([]generators.Subject{generators.Leasing(), generators.Fixed(generatortest.Mono), generators.Fixed(generatortest.Raw)},
		slices.DeleteFunc(generators.Peers(), func(s generators.Subject) bool { return s.Run == nil }))
	t := report.Table{ID: "faults", Title: "Score card of the default strategy, and of peers", RowName: "generator"}
	faults := generatortest.Catalogue()
	for _, f := range faults {
		t.Columns = append(t.Columns, report.Column{ID: f.Fault, Title: f.Fault})
	}
	var leased, peers, repeat []string // the faults in which a lease does not help; the peers, and those that issue IDs twice
	for i, got := range generators.Run(ctx, list) {
		row := report.Row{Name: list[i].Name, Group: list[i].Group, Note: list[i].Claim}
		twice := 0
		for _, f := range faults {
			row.Cells = append(row.Cells, effect(list[i], got[f.Fault]))
			if n := got[f.Fault].Duplicates; n > 0 {
				if twice += n; i == 0 {
					leased = append(leased, f.Fault)
				}
			}
		}
		if row.Group == report.Peers {
			peers = append(peers, row.Name)
			if twice > 0 {
				repeat = append(repeat, row.Name)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	said := "no ID comes twice under a lease"
	if len(leased) > 0 {
		said += ", except in " + report.List(leased)
	}
	t.Say("In these faults, %s; of the %s that take a virtual clock, these issue IDs twice: %s. The others read the machine's clock: see “%s”.",
		said, report.Count(len(peers), "peer"), cmp.Or(report.List(repeat), "none"), kernelTitle)
	return report.Section{Tables: []report.Table{t}}
}

// effect is what a fault did: which promises were broken, or what it cost the callers. A
// stall or a lead of a tick is not noticed.
func effect(s generators.Subject, got generatortest.Result) report.Cell {
	number := func(n int) string { return report.Figure(float64(n)) }
	stall, lead := time.Duration(got.LongestStall), time.Duration(got.LargestLead)
	switch {
	case got.Skipped != "":
		return report.Cell{Text: "–"}
	case got.Failed():
		return report.Cell{Text: "✗ " + got.Summary()}
	case got.Errors > 0 && got.Fault != "F17" && got.Fault != "F18": // in which no ID is safe
		return report.Cell{Text: number(got.Errors) + " err"}
	case got.Disorder > 0:
		return report.Cell{Text: number(got.Disorder) + " disorder"}
	case stall > s.Tick:
		return report.Cell{Text: "stall " + report.Span(stall)}
	case lead > s.Tick:
		return report.Cell{Text: "lead " + report.Span(lead)}
	}
	return report.Cell{Text: "✓"}
}
