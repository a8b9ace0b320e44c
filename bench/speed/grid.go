package speed

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// placements is how many sources a case has, at different addresses. The number is odd because
// the order of a pair is swapped in every round: a placement does not come in the same order each
// time.
const placements = 15

// inTurn says so to the reader of a report.
var inTurn = fmt.Sprintf("How fast goroutines share a word depends on its address: each case has %d generators or words at different addresses, which the rounds take in turn. ", placements)

// against is a case, and the one that it is compared with; a floor has none.
type against struct {
	generators.Case
	base *generators.Case
}

// grid is cases with several numbers of goroutines.
type grid struct {
	generators.Set
	goroutines []int
}

// measureGrid measures every case with every number of goroutines, which share a source, next to
// its base with as many.
func measureGrid(ctx context.Context, run *measure.Run, target time.Duration, list []against, goroutines ...int) (g grid, s report.Section) {
	g.goroutines = measure.Pick(run, []int{1, 2, 8, 64}, goroutines)
	g.Target, g.Places = measure.Pick(run, target/2, target), placements
	for _, c := range list {
		for _, n := range g.goroutines {
			g.Add(ctx, c.Case, c.base, n).At = fmt.Sprint("g", n)
		}
	}
	run.Measure(ctx, measure.Pick(run, 1, 3), 0, g.Loads...)
	g.End(&s)
	return g, s
}

// table has a row per case and a column per number of goroutines.
func (g grid) table(t report.Table, unit string, better report.Better, cell func(*measure.Load) report.Cell) report.Table {
	t.RowName = "case"
	for _, n := range g.goroutines {
		t.Columns = append(t.Columns, report.Column{ID: fmt.Sprint("g", n), Title: report.Count(n, "goroutine"), Unit: unit, Better: better})
	}
	return measure.Grid(t, g.Loads, cell)
}

// pairs compares a figure of a case with that of its base, by number of goroutines, from least goroutines on.
func (g grid) pairs(figure, name string, least int) (all []report.Cell) {
	for _, n := range g.goroutines {
		if n >= least {
			all = append(all, measure.Find(g.Loads, name, fmt.Sprint("g", n)).Pair(figure))
		}
	}
	return all
}

// worst is a target by the ratios that are worst for it. It stays open unless all were measured.
func worst(t report.Target, pairs []report.Cell) report.Target {
	for _, p := range pairs {
		got, before := p.Median(), t.Got.Median()
		if math.IsNaN(got) {
			t.Open = "not measured with each number of goroutines"
		} else if math.IsNaN(before) || got != before && (got > before) == t.AtMost {
			t.Got = p
		}
	}
	return t
}

// span is the range of the medians in a row: "1.2 to 3.4".
func span(t report.Table, row string) report.Cell {
	var cells []report.Cell
	for _, c := range t.Columns {
		if cell := t.Cell(row, c.ID); len(cell.Samples) > 0 {
			cells = append(cells, cell)
		}
	}
	if len(cells) == 0 {
		return report.Cell{}
	}
	slices.SortFunc(cells, func(a, b report.Cell) int { return cmp.Compare(a.Median(), b.Median()) })
	return report.Cell{Text: strings.Join(slices.Compact([]string{cells[0].String(), cells[len(cells)-1].String()}), " to ")}
}

func ceilingSection() measure.Section {
	return measure.Section{ID: "ceiling", Title: "At the ceiling", Full: 20 * time.Second, Quick: 2 * time.Second,
		About: "1 to 64 goroutines ask without a pause for more IDs than the format has: 4,096 per millisecond, or 256 per 10 ms for sony/sonyflake. " +
			"All generators reach about their ceiling, and differ in the processor time that the waiting takes. A batch is whole ticks, about 50 ms of them. " + inTurn +
			"Cores are the CPU time of the process divided by time.",
		Measure: measureCeiling}
}

const ceilingName = "Next, default layout"

func measureCeiling(ctx context.Context, run *measure.Run) report.Section {
	peer := generators.Others(generators.Bwmarrin)[0]
	list := []against{{generators.Next(ceilingName, snowflake.Default()), &peer}, {peer, nil},
		{generators.Next("Next, Wait(), random start below 256", snowflake.Default(), generator.WithStrategy(strategies.Wait()), generator.WithSequenceStart(strategies.StartRandom(256))), nil},
		{generators.Stream("Stream.Next, default layout", snowflake.Default()), nil}}
	for _, c := range generators.Others(generators.Sonyflake) {
		if c.Limit.Binds() {
			list = append(list, against{c, &peer})
		}
	}
	limits := map[string]generators.Limit{}
	for _, c := range list {
		limits[c.Name] = c.Limit
	}
	g, s := measureGrid(ctx, run, 50*time.Millisecond, list, 1, 2, 8, 64)
	share := g.table(report.Table{ID: "ceiling-share", Title: "Share of the format's ceiling", Base: peer.Name}, "%", report.More, func(l *measure.Load) report.Cell {
		return l.Of("wall").By(func(ns float64) float64 { return 100 * limits[l.Row].NanosecondsPerID() / ns })
	})
	cores := g.table(report.Table{ID: "ceiling-cores", Title: "Cores in use", Base: peer.Name}, "cores", report.Less, func(l *measure.Load) report.Cell { return l.Of("cpu").Per(l.Of("wall")) })
	cores.Say("Next reaches %s%% of its ceiling and keeps %s cores busy, where bwmarrin/snowflake keeps %s busy.",
		span(share, ceilingName), span(cores, ceilingName), span(cores, generators.Bwmarrin))
	s.Tables = []report.Table{share, cores}
	rate := g.pairs("wall", ceilingName, 1)
	for i, p := range rate {
		rate[i] = p.By(func(x float64) float64 { return 100 / x })
	}
	s.Targets = []report.Target{
		worst(report.Target{ID: "ceiling-cpu", Text: "CPU time per ID at the ceiling, 1 to 64 goroutines: at most a third of bwmarrin/snowflake's", Unit: "×", Want: 0.333, AtMost: true}, g.pairs("cpu", ceilingName, 1)),
		worst(report.Target{ID: "ceiling-rate", Text: "Rate at the ceiling, 1 to 64 goroutines: at least 99.5% of bwmarrin/snowflake's", Unit: "%", Want: 99.5}, rate),
	}
	return s
}

func scalingSection() measure.Section {
	return measure.Section{ID: "scaling", Title: "Scaling", Full: 32 * time.Second, Quick: 2 * time.Second,
		About: "1 to 64 goroutines issue IDs without a pause, in batches of about 8 ms that they share out. Next and the streams are of one generator. " +
			"The floor is one clock read and one atomic addition on a shared word; of streams, it is loops that share nothing. " +
			inTurn + "rs/xid, ObjectID and google/uuid have one, in package variables. No sequence of tickflake is used up. " +
			"Counted numbers are of one sequence, and their floor is a compare-and-swap loop on a shared word. " +
			"rs/xid and ObjectID repeat IDs beyond 16.8 million per second.",
		Measure: measureScaling}
}

func measureScaling(ctx context.Context, run *measure.Run) report.Section {
	word, counter, own := &generators.SharedFloor, &generators.SwapFloor, &generators.OwnFloor
	list := []against{
		{*word, nil}, {*counter, nil}, {*own, nil}, {generators.Next(nextName, generators.Wide()), word}, {generators.Stream(streamName, generators.Wide()), own}, {generators.Number(), counter},
	}
	for _, c := range generators.Others(generators.BwmarrinWide, "rs/xid", "MongoDB ObjectID", "google/uuid v7") {
		list = append(list, against{c, word})
	}
	// In a batch of 8 ms, a goroutine that begins late makes little difference.
	g, s := measureGrid(ctx, run, 8*time.Millisecond, list, 1, 2, 4, 8, 16, 32, 64)
	rates := g.table(report.Table{ID: "scaling", Title: "Million IDs per second, all goroutines together", Base: nextName}, "million/s", report.More, func(l *measure.Load) report.Cell {
		return l.Of("wall").By(func(ns float64) float64 { return 1e3 / ns })
	})
	var faster []string
	for _, c := range rates.Columns {
		if names := rates.Ahead(nextName, c.ID); len(names) > 0 {
			faster = append(faster, fmt.Sprintf("more than Next with %s: %s", c.Title, report.List(names)))
		}
	}
	if len(faster) == 0 {
		faster = []string{"no peer issues measurably more than Next"}
	}
	rates.Say("One generator issues %s million IDs per second by Next, and %s million by streams; %s.", span(rates, nextName), span(rates, streamName), strings.Join(faster, "; "))
	s.Tables = []report.Table{rates}
	// Who is as far from the floor with two goroutines as with one loses nothing to sharing.
	streams := g.pairs("wall", streamName, 1)
	s.Targets = []report.Target{
		worst(report.Target{ID: "scaling-shared", Unit: "×", Want: 1.2, AtMost: true,
			Text: "Next on one generator, 2 to 64 goroutines: at most 1.2× a clock read and a contended atomic addition"}, g.pairs("wall", nextName, 2)),
		{ID: "scaling-streams", Unit: "×", Want: 0.95, Got: streams[0].Per(streams[1]),
			Text: "Two streams of one generator on two cores: at least 0.95× of what two loops that share nothing gain over one"},
		worst(report.Target{ID: "scaling-number", Unit: "×", Want: 1.3, AtMost: true,
			Text: "Sequence.Next on one sequence, 2 to 64 goroutines: at most 1.3× a contended compare-and-swap loop"}, g.pairs("wall", numberName, 2)),
	}
	return s
}
