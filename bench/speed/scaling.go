package speed

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

func scalingSection() measure.Section {
	return measure.Section{ID: "scaling", Title: "Scaling", Full: 16 * time.Second, Quick: 3 * time.Second, Measure: measureScaling}
}

const aboutScaling = `1 to 64 goroutines issue IDs without a pause, in batches of about 8 ms (4 ms in a quick run) that they share out; the figures are millions of IDs per second of all together. Next is called on one generator by all. Streams are one per goroutine, of one generator. With a generator each, every goroutine has its own, with its own node number, up to 64. The floor is what one shared word allows: one clock read and one atomic addition, all on one cache line. The layouts have sequences that are never used up. Peers are called as they are, but those that have the width of a sequence in their names. More goroutines than cores add no work that can be done at once, but more callers to hold up. At 24 bits of a counter per second, rs/xid and ObjectIDs repeat beyond 16.8 million IDs per second.`

func measureScaling(ctx context.Context, run *measure.Run) results.Section {
	next, floor := cases.Next(nextName, cases.Wide()), cases.SharedFloor()
	list := []cases.Case{
		floor, next, cases.Stream(), cases.Fleet(),
		cases.BwmarrinWide(), cases.XID(), cases.ObjectID(), cases.GoogleV7(),
	}
	batch := 8 * time.Millisecond // in which a goroutine that is late to begin makes little difference
	if run.Quick {
		batch /= 2
	}
	g := measureGrid(ctx, run, batch, 3, list, []int{1, 2, 4, 8, 16, 32, 64})
	table := g.table(results.Table{ID: "scaling", Title: "IDs per second, all goroutines together", Base: next.Name}, "million/s", results.More,
		func(_ opened, s measure.Samples) results.Cell {
			return cell(measure.Each(s.Wall, millionsPerSecond), s.Err)
		})
	return results.Section{
		ID: "scaling", Title: "Scaling", About: aboutScaling, Command: "go run ./bench --only scaling",
		Tables: []results.Table{table},
		Charts: []results.Chart{{
			ID: "scaling", Title: "IDs per second by number of goroutines", Kind: results.Lines, Table: "scaling",
			XLabel: "goroutines", YLabel: "million IDs per second", LogX: true,
		}},
		Targets: []results.Target{sharedTarget(g, next.Name, floor.Name)},
		Verdict: scalingVerdict(g, table, next.Name),
		Notes:   append(g.notes, fmt.Sprintf("Go uses %d processors here.", runtime.GOMAXPROCS(0))),
	}
}

func millionsPerSecond(ns float64) float64 { return 1e3 / ns }

// sharedTarget judges by the number of goroutines, from 2 on, with which Next stands
// worst beside the floor.
func sharedTarget(g grid, subject, floor string) results.Target {
	t := results.Target{ID: "scaling-shared", Text: "Next on one generator, 2 to 64 goroutines: at most 1.15× a clock read and a contended atomic addition", Unit: "×", Want: 1.15, AtMost: true}
	wall, cpu := g.against(subject, floor, wallRatios)[1:], g.against(subject, floor, cpuRatios)[1:]
	i := worst(true, wall)
	if i < 0 {
		return judged(t, nil, "")
	}
	t.Got.Samples = wall[i]
	return wholly(judged(t, cpu[i], ""), wall, g.goroutines[1:])
}

func scalingVerdict(g grid, table results.Table, next string) []string {
	var out []string
	last := g.goroutines[len(g.goroutines)-1]
	for _, row := range table.Rows {
		one, most := table.Cell(row.Name, column(1)), table.Cell(row.Name, column(last))
		if row.Group == results.Ours && len(one.Samples) > 0 && len(most.Samples) > 0 {
			out = append(out, fmt.Sprintf("%s: %s million IDs/s with 1 goroutine, %s million with %d.",
				row.Name, short(one.Median()), short(most.Median()), last))
		}
	}
	if len(out) == 0 {
		return nil
	}
	var ahead []string
	for _, o := range g.cases {
		if with := g.ahead(o.Name, next, wallRatios); o.Group == results.Peers && with != "" {
			ahead = append(ahead, o.Name+" "+with)
		}
	}
	if len(ahead) > 0 {
		return append(out, fmt.Sprintf("Peers that issue more than Next on one generator: %s.", list(ahead)))
	}
	return append(out, "Of no peer can it be told from these rounds that it issues more than Next on one generator.")
}
