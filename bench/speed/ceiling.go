package speed

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/snowflake"
)

func ceilingSection() measure.Section {
	return measure.Section{ID: "ceiling", Title: "At the ceiling", Full: 14 * time.Second, Quick: 3 * time.Second, Measure: measureCeiling}
}

const aboutCeiling = `1 to 64 goroutines ask for IDs without a pause, which is for more than the format of these IDs has room for: 4,096 per millisecond, or 256 per 10 ms for sony/sonyflake. So all reach about the same share of their ceiling, and differ in what the waiting costs. Each batch is whole ticks, about 50 ms of them (25 ms in a quick run), and begins when the tick that it finds is used up. CPU time is that of the process, as the system counts it; cores are CPU time by time that passed. A processor that is taken away for a millisecond takes a tick with it, from whichever case is running.`

const ceilingName = "Next, default layout"

func measureCeiling(ctx context.Context, run *measure.Run) results.Section {
	bwmarrin := cases.Bwmarrin()
	list := []cases.Case{cases.Next(ceilingName, snowflake.Default()), bwmarrin, cases.Sonyflake()}
	batch := 50 * time.Millisecond
	if run.Quick {
		batch /= 2
	}
	g := measureGrid(ctx, run, batch, 3, list, []int{1, 2, 8, 64})
	return results.Section{
		ID: "ceiling", Title: "At the ceiling", About: aboutCeiling, Command: "go run ./bench --only ceiling",
		Tables: []results.Table{
			g.table(results.Table{ID: "ceiling-share", Title: "Share of the format's ceiling that is reached", Base: bwmarrin.Name}, "%", results.More,
				func(o opened, s measure.Samples) results.Cell {
					return cell(measure.Each(s.Wall, func(ns float64) float64 { return 100 * o.Limit.NanosecondsPerID() / ns }), s.Err)
				}),
			g.table(results.Table{ID: "ceiling-cpu", Title: "CPU time per ID", Base: bwmarrin.Name}, "ns/ID", results.Less,
				func(_ opened, s measure.Samples) results.Cell { return cpuCell(s.CPU, s) }),
			g.table(results.Table{ID: "ceiling-cores", Title: "Cores in use", Base: bwmarrin.Name}, "cores", results.Less,
				func(_ opened, s measure.Samples) results.Cell { return cpuCell(measure.Ratios(s.CPU, s.Wall), s) }),
		},
		Charts: []results.Chart{
			{ID: "ceiling-cores", Title: "Cores in use at the ceiling", Kind: results.Bars, Table: "ceiling-cores", YLabel: "cores"},
			{ID: "ceiling-share", Title: "Share of the ceiling", Kind: results.Bars, Table: "ceiling-share", YLabel: "% of the ceiling"},
		},
		Targets: ceilingTargets(g, bwmarrin.Name),
		Verdict: ceilingVerdict(g, bwmarrin.Name),
		Notes:   g.notes,
	}
}

// rateShares are the rates of a case as shares of another's, in percent.
func rateShares(s, b measure.Samples) []float64 {
	return measure.Each(measure.Ratios(b.Wall, s.Wall), func(x float64) float64 { return 100 * x })
}

// ceilingTargets judge by the number of goroutines with which tickflake stands worst.
func ceilingTargets(g grid, peer string) []results.Target {
	return []results.Target{
		ceilingTarget(g, peer, cpuRatios, results.Target{
			ID: "ceiling-cpu", Text: "CPU time per ID at the ceiling, 1 to 64 goroutines: at most a third of bwmarrin/snowflake's",
			Unit: "×", Want: 0.333, AtMost: true,
		}),
		ceilingTarget(g, peer, rateShares, results.Target{
			ID: "ceiling-rate", Text: "Rate at the ceiling, 1 to 64 goroutines: at least 99.5% of bwmarrin/snowflake's",
			Unit: "%", Want: 99.5,
		}),
	}
}

func ceilingTarget(g grid, peer string, f func(subject, base measure.Samples) []float64, t results.Target) results.Target {
	all := g.against(ceilingName, peer, f)
	i := worst(t.AtMost, all)
	if i < 0 {
		return judged(t, nil, "")
	}
	t.Got.Samples = all[i]
	return wholly(judged(t, nil, busy(peer, g.of(peer)[i])), all, g.goroutines)
}

// busy says that there were not enough processors for a peer that spins: then it would
// have reached its ceiling.
func busy(peer string, s measure.Samples) string {
	perID := cases.Bwmarrin().Limit.NanosecondsPerID()
	share := results.Cell{Samples: measure.Each(s.Wall, func(ns float64) float64 { return 100 * perID / ns })}.Median()
	if share < 97 {
		return fmt.Sprintf("this process did not have the processors to itself: %s, which spins, reached %s%% of its ceiling, where it reaches all of it on a free core", peer, short(share))
	}
	return ""
}

func ceilingVerdict(g grid, peer string) []string {
	cpu, rate := g.against(ceilingName, peer, cpuRatios), g.against(ceilingName, peer, rateShares)
	var out []string
	if s := span(rate, "%"); s != "" {
		out = append(out, fmt.Sprintf("Next reaches %s of the rate of %s, by number of goroutines; the least with %s.",
			s, peer, goroutinesTitle(g.goroutines[worst(false, rate)])))
	}
	if s := span(cpu, "×"); s != "" {
		out = append(out, fmt.Sprintf("It takes %s the processor time of it; the most with %s.", s, goroutinesTitle(g.goroutines[worst(true, cpu)])))
	}
	var cheaper []string
	for _, o := range g.cases {
		if with := g.ahead(o.Name, ceilingName, cpuRatios); o.Group == results.Peers && with != "" {
			cheaper = append(cheaper, o.Name+" "+with)
		}
	}
	if len(cheaper) > 0 {
		out = append(out, fmt.Sprintf("Less processor time per ID than Next: %s.", list(cheaper)))
	}
	return out
}
