package speed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/snowflake"
)

// grid is what was measured of cases with several numbers of goroutines.
type grid struct {
	cases      []opened
	goroutines []int
	samples    [][]measure.Samples // by case and number of goroutines
	notes      []string
}

// against is a case and the name of the one that it is compared with, in the same grid. An
// empty name is none.
type against struct {
	cases.Case
	base string
}

// goroutineCounts are those of a section.
func goroutineCounts(run *measure.Run, all ...int) []int {
	if run.Quick {
		return []int{1, 2, 8, 64}
	}
	return all
}

// placements is how many sources of each case a grid opens, at different addresses: how fast
// goroutines share a word depends on its address. The number is odd because the order of a
// pair is swapped in every round: a placement does not come in the same order each time.
const placements = 15

// inTurn says so to the reader of a report.
var inTurn = fmt.Sprintf("How fast goroutines share a word depends on its address: each case has %d generators or words at different addresses, which the rounds take in turn. ", placements)

// measureGrid measures every case with every number of goroutines, which share a
// source, next to its base with as many. Each round takes the next source of every case.
func measureGrid(ctx context.Context, run *measure.Run, batch time.Duration, list []against, goroutines []int) grid {
	if run.Quick {
		batch /= 2
	}
	var plain []cases.Case
	for _, a := range list {
		plain = append(plain, a.Case)
	}
	var sources []opened // those of the first placement first
	var works []measure.Work
	for range placements {
		here := open(ctx, plain)
		for _, o := range here {
			for _, n := range goroutines {
				works = append(works, o.work(n))
			}
		}
		sources = append(sources, here...)
	}
	g := grid{cases: sources[:len(list)], goroutines: goroutines}
	works, others := works[:len(list)*len(goroutines)], works[len(list)*len(goroutines):]
	for i, w := range others {
		first := &works[i%len(works)]
		first.Elsewhere = append(first.Elsewhere, w.Do)
	}
	for i, a := range list {
		base := slices.IndexFunc(g.cases, func(o opened) bool { return o.Name == a.base })
		for k := range goroutines {
			if base >= 0 {
				works[i*len(goroutines)+k].Base = &works[base*len(goroutines)+k]
			}
		}
	}
	samples := measure.Interleave(ctx, run, batch, 3, works)
	g.notes = append(failures(works, samples), closeAll(sources)...)
	for i := range g.cases {
		g.samples = append(g.samples, samples[i*len(goroutines):(i+1)*len(goroutines)])
	}
	return g
}

// table has a row per case and a column per number of goroutines.
func (g grid) table(t results.Table, unit string, better results.Better, cell func(opened, measure.Samples) results.Cell) results.Table {
	t.RowName = "case"
	for _, n := range g.goroutines {
		t.Columns = append(t.Columns, results.Column{ID: fmt.Sprint("g", n), Title: results.Count(n, "goroutine"), Unit: unit, Better: better, X: float64(n)})
	}
	for i, o := range g.cases {
		row := o.row()
		for _, s := range g.samples[i] {
			row.Cells = append(row.Cells, cell(o, s))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// of returns the samples of a case, by number of goroutines.
func (g grid) of(name string) []measure.Samples {
	for i, o := range g.cases {
		if o.Name == name {
			return g.samples[i]
		}
	}
	return make([]measure.Samples, len(g.goroutines))
}

// pairs compares a case with its base, by number of goroutines.
func (g grid) pairs(name string) []measure.Pair {
	var all []measure.Pair
	for _, s := range g.of(name) {
		all = append(all, s.Pair())
	}
	return all
}

// target judges the pairs by the number of goroutines with which they are worst, from least
// goroutines on. It stays open if it is met but was not measured with each number. beside
// gives the figures to read beside that number; it may be nil.
func (g grid) target(t results.Target, least int, pairs []measure.Pair, beside func(at int) string) results.Target {
	worst, at, missing := math.NaN(), -1, 0
	for i, n := range g.goroutines {
		if n < least {
			continue
		}
		median := results.Cell{Samples: pairs[i].Ratios()}.Median()
		if math.IsNaN(median) {
			missing++
		} else if math.IsNaN(worst) || (median > worst) == t.AtMost {
			worst, at = median, i
		}
	}
	if at < 0 {
		at = len(pairs) - 1 // none has a round that counts
	}
	if beside != nil {
		t = t.With(beside(at))
	}
	t = pairs[at].Judge(t)
	if missing > 0 && t.State() == results.Met {
		t.Open = "not measured with each number of goroutines"
	}
	return t
}

// span writes the range of the medians in a row: "1.2 to 3.4". It is empty if there are
// none.
func span(t *results.Table, row string) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, c := range t.Columns {
		if m := t.Cell(row, c.ID).Median(); !math.IsNaN(m) {
			lo, hi = min(lo, m), max(hi, m)
		}
	}
	if lo > hi {
		return ""
	}
	return results.Figure(lo) + " to " + results.Figure(hi)
}

func ceilingSection() measure.Section {
	return measure.Section{ID: "ceiling", Title: "At the ceiling", Full: 20 * time.Second, Quick: 2 * time.Second,
		About: "1 to 64 goroutines ask without a pause for more IDs than the format has: 4,096 per millisecond, or 256 per 10 ms for sony/sonyflake. " +
			"All generators reach about their ceiling, and differ in the processor time that the waiting takes. A batch is whole ticks, about 50 ms of them. " + inTurn +
			"CPU time is that of the process; cores are CPU time divided by time. The floor is a clock read and a compare-and-swap for each of 4,096 IDs per millisecond, and a wait that costs nothing.",
		Measure: measureCeiling, Verdict: ceilingVerdict}
}

const ceilingName = "Next, default layout"

func measureCeiling(ctx context.Context, run *measure.Run) results.Section {
	peer, floor := cases.Bwmarrin(), cases.OwnFloor()
	list := []against{{cases.Next(ceilingName, snowflake.Default()), peer.Name}, {peer, ""}, {cases.Sonyflake(), peer.Name}, {floor, ""}}
	for _, c := range cases.Yours() {
		if c.Limit.Binds() {
			list = append(list, against{c, peer.Name})
		}
	}
	g := measureGrid(ctx, run, 50*time.Millisecond, list, goroutineCounts(run, 1, 2, 8, 64))
	// Who waits for free needs the processor for the floor of each ID only.
	perID := peer.Limit.NanosecondsPerID()
	cores := func(o opened, s measure.Samples) []float64 {
		if o.Limit.Binds() {
			return measure.Ratios(s.CPU, s.Wall)
		}
		return measure.Each(s.CPU, func(ns float64) float64 { return ns / perID })
	}
	t := []results.Table{
		g.table(results.Table{ID: "ceiling-share", Title: "Share of the format's ceiling", Base: peer.Name}, "%", results.More,
			func(o opened, s measure.Samples) results.Cell {
				if !o.Limit.Binds() {
					return results.Cell{Text: "no ceiling"}
				}
				return cell(measure.Each(s.Wall, func(ns float64) float64 { return 100 * o.Limit.NanosecondsPerID() / ns }), s.Err)
			}),
		g.table(results.Table{ID: "ceiling-cpu", Title: "CPU time per ID", Base: peer.Name}, "ns/ID", results.Less,
			func(_ opened, s measure.Samples) results.Cell { return cpuCell(s.CPU, s) }),
		g.table(results.Table{ID: "ceiling-cores", Title: "Cores in use", Base: peer.Name,
			Charts: []results.Chart{{ID: "ceiling-cores", Title: "Cores in use at the ceiling", YLabel: "cores"}}}, "cores", results.Less,
			func(o opened, s measure.Samples) results.Cell { return cpuCell(cores(o, s), s) }),
	}
	ours := g.pairs(ceilingName)
	var cpu, rate []measure.Pair
	for _, p := range ours {
		cpu, rate = append(cpu, p.OfCPU()), append(rate, p.By(func(x float64) float64 { return 100 / x }))
	}
	beside := func(t results.Table, rows ...string) func(int) string {
		return func(at int) string {
			var said []string
			for _, row := range rows {
				said = append(said, row+" "+t.Cell(row, t.Columns[at].ID).Value())
			}
			return fmt.Sprintf("with %s, in %s: %s", t.Columns[at].Title, t.Columns[at].Unit, results.List(said))
		}
	}
	return results.Section{
		Tables: t,
		Targets: []results.Target{
			g.target(results.Target{ID: "ceiling-cpu", Text: "CPU time per ID at the ceiling, 1 to 64 goroutines: at most a third of bwmarrin/snowflake's",
				Unit: "×", Want: 0.333, AtMost: true}, 1, cpu, beside(t[1], ceilingName, peer.Name, floor.Name)),
			g.target(results.Target{ID: "ceiling-rate", Text: "Rate at the ceiling, 1 to 64 goroutines: at least 99.5% of bwmarrin/snowflake's",
				Unit: "%", Want: 99.5}, 1, rate, beside(t[0], ceilingName, peer.Name)),
		},
		Notes: g.notes,
	}
}

func ceilingVerdict(s results.Section) string {
	share, cores := s.Table("ceiling-share"), s.Table("ceiling-cores")
	ours := span(cores, ceilingName)
	if ours == "" {
		return ""
	}
	return fmt.Sprintf("Next reaches %s%% of its ceiling and keeps %s cores busy, where bwmarrin/snowflake keeps %s busy.",
		span(share, ceilingName), ours, span(cores, "bwmarrin/snowflake"))
}

func scalingSection() measure.Section {
	return measure.Section{ID: "scaling", Title: "Scaling", Full: 32 * time.Second, Quick: 2 * time.Second,
		About: "1 to 64 goroutines issue IDs without a pause, in batches of about 8 ms that they share out. Next and the streams are of one generator; " +
			"“a generator each” has up to 64. The floor is one clock read and one atomic addition on a shared word; of streams and of a generator each, it is loops that share nothing. " +
			inTurn + "rs/xid, ObjectID and google/uuid have one, in package variables. No sequence of tickflake is used up. " +
			"Counted numbers are of one sequence, and their floor is a compare-and-swap loop on a shared word. " +
			"rs/xid and ObjectID repeat IDs beyond 16.8 million per second.",
		Measure: measureScaling, Verdict: scalingVerdict}
}

func measureScaling(ctx context.Context, run *measure.Run) results.Section {
	floor, counter, own := cases.SharedFloor(), cases.SwapFloor(), cases.OwnFloor()
	list := []against{
		{floor, ""}, {counter, ""}, {own, ""}, {cases.Next(nextName, cases.Wide()), floor.Name}, {cases.Stream(), own.Name}, {cases.Fleet(), own.Name}, {cases.Number(), counter.Name},
		{cases.BwmarrinWide(), floor.Name}, {cases.XID(), floor.Name}, {cases.ObjectID(), floor.Name}, {cases.GoogleV7(), floor.Name},
	}
	for _, c := range cases.Yours() {
		list = append(list, against{c, floor.Name})
	}
	// In a batch of 8 ms, a goroutine that begins late makes little difference.
	g := measureGrid(ctx, run, 8*time.Millisecond, list, goroutineCounts(run, 1, 2, 4, 8, 16, 32, 64))
	streams := g.pairs(streamName)
	// Who is as far from the floor with two goroutines as with one loses nothing to sharing.
	two := slices.Index(g.goroutines, 2)
	return results.Section{
		Tables: []results.Table{g.table(results.Table{ID: "scaling", Title: "Million IDs per second, all goroutines together", Base: nextName,
			Charts: []results.Chart{{ID: "scaling", Title: "IDs per second by number of goroutines", Lines: true, XLabel: "goroutines", YLabel: "million IDs per second", LogX: true}},
		}, "million/s", results.More, func(_ opened, s measure.Samples) results.Cell {
			return cell(measure.Each(s.Wall, func(ns float64) float64 { return 1e3 / ns }), s.Err)
		}), g.distances(list)},
		Targets: []results.Target{
			g.target(results.Target{ID: "scaling-shared", Unit: "×", Want: 1.15, AtMost: true,
				Text: "Next on one generator, 2 to 64 goroutines: at most 1.15× a clock read and a contended atomic addition"}, 2, g.pairs(nextName), nil),
			streams[0].Per(streams[two]).Judge(results.Target{ID: "scaling-streams", Unit: "×", Want: 0.95,
				Text: "Two streams of one generator on two cores: at least 0.95× of what two loops that share nothing gain over one"}),
			g.target(results.Target{ID: "scaling-number", Unit: "×", Want: 1.3, AtMost: true,
				Text: "Sequence.Next on one sequence, 2 to 64 goroutines: at most 1.3× a contended compare-and-swap loop"}, 2, g.pairs(numberName), nil)},
		Notes: g.notes,
	}
}

// distances shows how the cases stand to their floors.
func (g grid) distances(list []against) results.Table {
	t := results.Table{ID: "scaling-floor", Title: "Time per ID, × floor", RowName: "case and its floor", Detail: true}
	for _, n := range g.goroutines {
		t.Columns = append(t.Columns, results.Column{ID: fmt.Sprint("g", n), Title: results.Count(n, "goroutine"), Unit: "×", Better: results.Less})
	}
	for i, o := range g.cases {
		if list[i].base == "" {
			continue
		}
		row := o.row()
		row.Note = "its floor: " + strings.TrimPrefix(list[i].base, "floor: ")
		for _, s := range g.samples[i] {
			row.Cells = append(row.Cells, distance(s))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func scalingVerdict(s results.Section) string {
	t := s.Table("scaling")
	next := span(t, nextName)
	if next == "" {
		return ""
	}
	ahead := map[string][]string{}
	for _, c := range t.Columns {
		for _, name := range t.Ahead(nextName, c.ID) {
			ahead[name] = append(ahead[name], fmt.Sprint(c.X))
		}
	}
	var faster []string
	for _, r := range t.Rows {
		if with := ahead[r.Name]; len(with) > 0 {
			faster = append(faster, r.Name+" issues more than Next with "+results.List(with)+" goroutines")
		}
	}
	if len(faster) == 0 {
		faster = []string{"no peer issues measurably more than Next"}
	}
	return fmt.Sprintf("One generator issues %s million IDs per second by Next, and %s million by streams; %s.", next, span(t, streamName), strings.Join(faster, "; "))
}
