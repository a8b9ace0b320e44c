package speed

import (
	"context"
	"fmt"
	"math"
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

// measureGrid measures every case with every number of goroutines, which share its
// source.
func measureGrid(ctx context.Context, run *measure.Run, batch time.Duration, list []cases.Case, goroutines []int) grid {
	if run.Quick {
		batch /= 2
	}
	g := grid{cases: open(ctx, list), goroutines: goroutines}
	var works []measure.Work
	for _, o := range g.cases {
		for _, n := range goroutines {
			works = append(works, o.work(n))
		}
	}
	samples := measure.Interleave(ctx, run, batch, 3, works)
	g.notes = append(failures(works, samples), closeAll(g.cases)...)
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

// comparison returns samples of how one case compares to another.
type comparison func(subject, base measure.Samples) []float64

func wallRatios(s, b measure.Samples) []float64 { return measure.Ratios(s.Wall, b.Wall) }
func cpuRatios(s, b measure.Samples) []float64  { return measure.Ratios(s.CPU, b.CPU) }

// rateShares are the rates of a case as shares of another's, in percent.
func rateShares(s, b measure.Samples) []float64 {
	return measure.Each(measure.Ratios(b.Wall, s.Wall), func(x float64) float64 { return 100 * x })
}

// target judges a case against another by the number of goroutines with which the case is
// worst, from least goroutines on. It stays open if it is met but was not measured with
// each number. byCPU is the same comparison by processor time; it may be nil.
func (g grid) target(t results.Target, subject, base string, least int, compare, byCPU comparison) results.Target {
	var s, b []measure.Samples
	for i, o := range g.cases {
		switch o.Name {
		case subject:
			s = g.samples[i]
		case base:
			b = g.samples[i]
		}
	}
	worst, missing := math.NaN(), 0
	var cpu []float64
	for i, n := range g.goroutines {
		if n < least {
			continue
		}
		got := compare(s[i], b[i])
		median := results.Cell{Samples: got}.Median()
		if math.IsNaN(median) {
			missing++
		} else if math.IsNaN(worst) || (median > worst) == t.AtMost {
			worst, t.Got.Samples = median, got
			if byCPU != nil {
				cpu = byCPU(s[i], b[i])
			}
		}
	}
	t = t.Judge(cpu)
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
	return measure.Section{ID: "ceiling", Title: "At the ceiling", Full: 14 * time.Second, Quick: 3 * time.Second,
		About: "1 to 64 goroutines ask without a pause for more IDs than the format has: 4,096 per millisecond, or 256 per 10 ms for sony/sonyflake. " +
			"All generators reach about their ceiling, and differ in the processor time that the waiting takes. A batch is whole ticks, about 50 ms of them. " +
			"CPU time is that of the process; cores are CPU time divided by time.",
		Measure: measureCeiling, Verdict: ceilingVerdict}
}

const ceilingName = "Next, default layout"

func measureCeiling(ctx context.Context, run *measure.Run) results.Section {
	peer := cases.Bwmarrin()
	list := []cases.Case{cases.Next(ceilingName, snowflake.Default()), peer, cases.Sonyflake()}
	g := measureGrid(ctx, run, 50*time.Millisecond, list, []int{1, 2, 8, 64})
	return results.Section{
		Tables: []results.Table{
			g.table(results.Table{ID: "ceiling-share", Title: "Share of the format's ceiling", Base: peer.Name}, "%", results.More,
				func(o opened, s measure.Samples) results.Cell {
					return cell(measure.Each(s.Wall, func(ns float64) float64 { return 100 * o.Limit.NanosecondsPerID() / ns }), s.Err)
				}),
			g.table(results.Table{ID: "ceiling-cpu", Title: "CPU time per ID", Base: peer.Name}, "ns/ID", results.Less,
				func(_ opened, s measure.Samples) results.Cell { return cpuCell(s.CPU, s) }),
			g.table(results.Table{ID: "ceiling-cores", Title: "Cores in use", Base: peer.Name,
				Charts: []results.Chart{{ID: "ceiling-cores", Title: "Cores in use at the ceiling", YLabel: "cores"}}}, "cores", results.Less,
				func(_ opened, s measure.Samples) results.Cell { return cpuCell(measure.Ratios(s.CPU, s.Wall), s) }),
		},
		Targets: []results.Target{
			g.target(results.Target{ID: "ceiling-cpu", Text: "CPU time per ID at the ceiling, 1 to 64 goroutines: at most a third of bwmarrin/snowflake's",
				Unit: "×", Want: 0.333, AtMost: true}, ceilingName, peer.Name, 1, cpuRatios, nil),
			g.target(results.Target{ID: "ceiling-rate", Text: "Rate at the ceiling, 1 to 64 goroutines: at least 99.5% of bwmarrin/snowflake's",
				Unit: "%", Want: 99.5}, ceilingName, peer.Name, 1, rateShares, nil),
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
	return measure.Section{ID: "scaling", Title: "Scaling", Full: 16 * time.Second, Quick: 3 * time.Second,
		About: "1 to 64 goroutines issue IDs without a pause, in batches of about 8 ms that they share out. Next and the streams are of one generator; " +
			"“a generator each” has up to 64. The floor is one clock read and one atomic addition on a shared word. No sequence of tickflake is used up. " +
			"Counted numbers are of one sequence, and their floor is a compare-and-swap loop on a shared word. " +
			"rs/xid and ObjectID repeat IDs beyond 16.8 million per second.",
		Measure: measureScaling, Verdict: scalingVerdict}
}

func measureScaling(ctx context.Context, run *measure.Run) results.Section {
	floor, counter := cases.SharedFloor(), cases.SwapFloor()
	list := []cases.Case{
		floor, counter, cases.Next(nextName, cases.Wide()), cases.Stream(), cases.Fleet(), cases.Number(),
		cases.BwmarrinWide(), cases.XID(), cases.ObjectID(), cases.GoogleV7(),
	}
	// In a batch of 8 ms, a goroutine that begins late makes little difference.
	g := measureGrid(ctx, run, 8*time.Millisecond, list, []int{1, 2, 4, 8, 16, 32, 64})
	return results.Section{
		Tables: []results.Table{g.table(results.Table{ID: "scaling", Title: "Million IDs per second, all goroutines together", Base: nextName,
			Charts: []results.Chart{{ID: "scaling", Title: "IDs per second by number of goroutines", Lines: true, XLabel: "goroutines", YLabel: "million IDs per second", LogX: true}},
		}, "million/s", results.More, func(_ opened, s measure.Samples) results.Cell {
			return cell(measure.Each(s.Wall, func(ns float64) float64 { return 1e3 / ns }), s.Err)
		})},
		Targets: []results.Target{g.target(results.Target{ID: "scaling-shared", Unit: "×", Want: 1.15, AtMost: true,
			Text: "Next on one generator, 2 to 64 goroutines: at most 1.15× a clock read and a contended atomic addition"},
			nextName, floor.Name, 2, wallRatios, cpuRatios),
			g.target(results.Target{ID: "scaling-number", Unit: "×", Want: 1.3, AtMost: true,
				Text: "Sequence.Next on one sequence, 2 to 64 goroutines: at most 1.3× a contended compare-and-swap loop"},
				numberName, counter.Name, 2, wallRatios, cpuRatios)},
		Notes: g.notes,
	}
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
	return fmt.Sprintf("One generator issues %s million IDs per second by Next, and %s million by streams; %s.", next, span(t, "Stream.Next"), strings.Join(faster, "; "))
}
