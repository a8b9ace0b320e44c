package faults

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/generator/generatortest"
)

func catalogueSection() measure.Section {
	return measure.Section{ID: "faults", Title: "Strategies under faults", Full: 5 * time.Second, Quick: 2 * time.Second,
		About: "Each fault is a script of calls, and of what happens to the clock and the process. " +
			"Every strategy of tickflake runs on a raw wall clock, on a monoclock, and on a monoclock under a lease. Other generators run on a virtual clock too. " +
			"Those that read package time, such as bwmarrin/snowflake and sony/sonyflake, meet the faults on a real kernel. All time is virtual, so one run is enough. " +
			"A cell is ✓ if every call was served, in order, within one tick; ✗ if an ID came twice (dup) or a promise of the generator's documentation was broken; " +
			"– if the fault could not be run. Any other cell is the price: failed calls or starts (err), IDs out of order (disorder), " +
			"a wait of more than a tick (stall), or an ID ahead of the clock by more than a tick (lead). " +
			"In F17 and F18 a call that fails is right. The faults of stores and leases (F14, F15, F19, F20), which peers do not have, are in chaos_test; " +
			"in F19, a copy of a process's memory, every strategy issues IDs twice.",
		Measure: measureCatalogue}
}

// named are the strategies of the documentation.
var named = []string{"reject", "wait:5ms", "borrow:1s", "borrow:1s,wait:5s", "twitter", "leaf", "wait", "last-timestamp-plus-one", "default"}

func measureCatalogue(ctx context.Context, run *measure.Run) report.Section {
	var list []generators.Subject
	for _, in := range []struct {
		clock  generatortest.ClockKind
		leased bool
	}{{generatortest.Mono, true}, {generatortest.Mono, false}, {generatortest.Raw, false}} {
		for _, strategy := range measure.Pick(run, named[len(named)-1:], named) { // a quick run has time for the default
			list = append(list, generators.Tickflake(strategy, in.clock, in.leased))
		}
	}
	list = append(list, slices.DeleteFunc(generators.Peers(), func(s generators.Subject) bool { return s.Run == nil })...)
	c := card{prefix: "faults-", outcomes: map[[2]string]outcome{}}
	all := generatortest.Catalogue()
	for _, f := range all {
		c.faults = append(c.faults, kernel.Fault{Name: f.Fault, About: f.Name + ": " + f.What})
	}
	for i, got := range generators.Run(ctx, list) {
		s := list[i]
		claim := cmp.Or(s.Claim, "the bounds of its strategy")
		if s.Ordered {
			claim += "; order, whatever the clock does"
		}
		c.subjects = append(c.subjects, report.Row{Name: s.Name, Group: s.Group, Cells: report.Texts(cmp.Or(s.Version(), "–"), claim)})
		for _, f := range all {
			if got[f.Fault].Skipped == "" {
				c.outcomes[[2]string{s.Name, f.Fault}] = judge(s, got[f.Fault])
			}
		}
	}
	short := c
	short.subjects = slices.DeleteFunc(slices.Clone(c.subjects), func(s report.Row) bool {
		return s.Group == report.Ours && !strings.HasPrefix(s.Name, "tickflake default,")
	})
	duplicates := c.grid("duplicates", "IDs issued twice", c.faults, report.Column{Unit: "IDs", Better: report.Less}, twice)
	_, ours, _ := repeating(duplicates, func(r report.Row) bool { return strings.HasSuffix(r.Name, generators.Leases) })
	said := "no strategy issues an ID twice under a lease"
	if len(ours) > 0 {
		said += ", except in " + report.List(ours)
	}
	peers, _, of := repeating(duplicates, ofPeer)
	duplicates.Say("In these faults, %s; of the %s that take a virtual clock, these do: %s. The others read the machine's clock: see “%s”.",
		said, report.Count(of, "peer"), cmp.Or(report.List(peers), "none"), kernelTitle)
	return report.Section{Tables: []report.Table{
		short.grid("default", "Score card of the default strategy, and of peers", c.faults, report.Column{}, effects),
		c.list("The faults"),
		c.grid("card", "Score card of all strategies", c.faults, report.Column{}, effects),
		short.how(report.Column{ID: "version", Title: "version"}, report.Column{ID: "promised", Title: "held to"}),
		duplicates,
	}}
}

func judge(s generators.Subject, got generatortest.Result) outcome {
	broken, failed := "", got.Errors
	if got.Failed() {
		kind := got.Worst().Kind
		broken = number(got.Violated[kind]) + " " + strings.Replace(string(kind), string(generatortest.Duplicate), "dup", 1)
	}
	if got.Fault == "F17" || got.Fault == "F18" { // there is no ID that is safe, so a call that fails is right
		failed = 0
	}
	return outcome{effect: effect(broken, failed, got.Disorder, got.LongestStall, got.LargestLead, s.Tick), duplicates: got.Duplicates}
}
