package speed

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	flake "github.com/tickflake/tickflake/snowflake"
)

// takes are samples of so many nanoseconds, more or less, all on the processor.
func takes(ns float64) measure.Samples {
	s := around(ns, ns/1000, 20)
	none := make([]float64, 20)
	return measure.Samples{Wall: s, CPU: s, Allocs: none, Bytes: none}
}

// costsOf are the costs of cases that take so long.
func costsOf(next, wide, xid float64) costs {
	list := []cases.Case{
		cases.Floor(), cases.Next(nextName, cases.Wide()), cases.Leased(leasedName, cases.Wide()), cases.NextN(1024),
		cases.Bwmarrin(), cases.BwmarrinWide(), cases.XID(),
	}
	all := make([]opened, len(list))
	for i, c := range list {
		all[i].Case = c
	}
	return newCosts(all, []measure.Samples{
		takes(30), takes(next), takes(next * 1.01), takes(1.5),
		takes(244.2), takes(wide), takes(xid),
	})
}

func TestCostsInOurFavour(t *testing.T) {
	c := costsOf(36, 90, 72)
	targets := c.targets()
	for i, want := range []float64{1.2, 2, 48, 1.01} {
		assert.InEpsilon(t, want, targets[i].Got.Median(), 0.001, targets[i].ID)
		assert.Equal(t, results.Met, targets[i].State(), targets[i].ID)
	}
	assert.Equal(t, []string{
		"Next takes 36 ns per ID, 1.2× the floor.",
		"No peer is as fast as Next. The fastest is rs/xid with 72 ns, 2× the time.",
		"In bulk, NextN(1024) takes 1.5 ns per ID: 48× as fast as the fastest peer.",
		"Under a lease, Next takes 1.01× the time that it takes without one.",
		"These ran at the ceiling of their formats, so their figures are not the cost of the code: bwmarrin/snowflake.",
		"No case allocates memory.",
	}, c.verdict())
	assert.InEpsilon(t, 1.2, c.table.Cell(nextName, "floor").Median(), 0.001)
	assert.Contains(t, c.table.Row("bwmarrin/snowflake").Note, "as fast as its format allows")
	assert.Equal(t, "244.1 (4,096 per 1ms)", c.table.Cell("bwmarrin/snowflake", "ceiling").Text)
	assert.Len(t, c.table.Cell("bwmarrin/snowflake", "ceiling").Samples, 1, "for the chart")
	assert.Contains(t, c.table.Cell("rs/xid", "ceiling").Text, "it repeats IDs")
	assert.Equal(t, results.Cell{Text: "122.1 (8,192 per 1ms); faster, it runs ahead of the clock"}, ceilingCell(cases.Case{Limit: cases.Limit{IDs: 1 << 13, Per: time.Millisecond, Ahead: true}}), "and has no bar in the chart")
}

func TestCostsInAPeersFavour(t *testing.T) {
	c := costsOf(45, 39, 45)
	targets := c.targets()
	assert.Equal(t, results.Missed, targets[0].State())
	assert.Empty(t, targets[0].Why, "the data does not tell")
	assert.Equal(t, results.Missed, targets[1].State())
	assert.InEpsilon(t, 39.0/45, targets[1].Got.Median(), 0.001)
	assert.Contains(t, targets[1].Why, "takes 1.3× the floor itself")
	text := strings.Join(c.verdict(), "\n")
	assert.Contains(t, text, "Faster than Next: bwmarrin/snowflake, 22-bit sequence (0.867× the time).")
	assert.Contains(t, text, "Not to be told from Next by these rounds: rs/xid (1× the time).")
	assert.Contains(t, text, "Of the peers as they are imported, the fastest is rs/xid with 45 ns")
	assert.NotContains(t, text, "No peer is as fast")
}

// gridOf is a grid of what cases take, by number of goroutines.
func gridOf(list []cases.Case, goroutines []int, ns ...[]float64) grid {
	g := grid{goroutines: goroutines}
	for i, c := range list {
		g.cases = append(g.cases, opened{Case: c})
		var samples []measure.Samples
		for _, each := range ns[i] {
			samples = append(samples, takes(each))
		}
		g.samples = append(g.samples, samples)
	}
	return g
}

func ceilingGrid(next, bwmarrin measure.Samples) grid {
	g := gridOf([]cases.Case{cases.Next(ceilingName, flake.Default()), cases.Bwmarrin()}, []int{1, 2}, []float64{1, 1}, []float64{1, 1})
	g.samples = [][]measure.Samples{{bwmarrin, next}, {bwmarrin, bwmarrin}}
	return g
}

func TestCeilingIsJudgedByTheWorst(t *testing.T) {
	spins, sleeps := takes(244.14), takes(244.14)
	sleeps.CPU = around(122, 0.1, 20)
	g := ceilingGrid(sleeps, spins) // with 1 goroutine it is no better than the peer
	targets := ceilingTargets(g, "bwmarrin/snowflake")
	assert.InEpsilon(t, 1, targets[0].Got.Median(), 0.001)
	assert.Equal(t, results.Missed, targets[0].State())
	assert.Empty(t, targets[0].Why)
	assert.Equal(t, results.Met, targets[1].State())
	text := strings.Join(ceilingVerdict(g, "bwmarrin/snowflake"), "\n")
	assert.Contains(t, text, "Next reaches 100% to 100% of the rate of bwmarrin/snowflake")
	assert.Contains(t, text, "the most with 1 goroutine.")
	assert.NotContains(t, text, "Less processor time")
}

func TestCeilingOfABusyMachine(t *testing.T) {
	g := ceilingGrid(takes(500), takes(300))
	targets := ceilingTargets(g, "bwmarrin/snowflake")
	assert.Equal(t, results.Missed, targets[1].State())
	assert.Contains(t, targets[1].Why, "reached 81.4% of its ceiling")
	assert.Contains(t, ceilingVerdict(g, "bwmarrin/snowflake"), "Less processor time per ID than Next: bwmarrin/snowflake with 2 goroutines.")
}

func TestScalingSaysWhereAPeerIsAhead(t *testing.T) {
	list := []cases.Case{cases.SharedFloor(), cases.Next(nextName, cases.Wide()), cases.XID()}
	g := gridOf(list, []int{1, 2, 4}, []float64{30, 60, 60}, []float64{36, 66, 90}, []float64{64, 60, 64})
	table := g.table(results.Table{ID: "scaling"}, "million/s", results.More, func(_ opened, s measure.Samples) results.Cell {
		return results.Cell{Samples: measure.Each(s.Wall, millionsPerSecond)}
	})
	assert.InEpsilon(t, 1000.0/66, table.Cell(nextName, "g2").Median(), 0.001)
	assert.Equal(t, []string{
		"Next: 27.8 million IDs/s with 1 goroutine, 11.1 million with 4.",
		"Peers that issue more than Next on one generator: rs/xid with 2 and 4 goroutines.",
	}, scalingVerdict(g, table, nextName))

	target := sharedTarget(g, nextName, list[0].Name)
	assert.InEpsilon(t, 1.5, target.Got.Median(), 0.001, "one goroutine does not count, and of the others the worst does")
	assert.Equal(t, results.Missed, target.State())
}

// lineOf is a line of slices of 10,000 calls, which take so long, and the slowest 20 of
// them so long.
func lineOf(name string, group results.Group, each, slowest time.Duration) *line {
	l := &line{opened: opened{Case: cases.Case{Name: name, Group: group}}}
	r := newRecorder()
	for i := range 12 {
		for c := range 10_000 {
			late := each
			if c < 20 {
				late = slowest + time.Duration(i)*10*time.Nanosecond
			}
			r.record(late)
		}
		l.slices = append(l.slices, r.take())
		l.reached = append(l.reached, 1e6)
		l.stopped = append(l.stopped, false)
	}
	return l
}

func TestLatencyVerdictAndTarget(t *testing.T) {
	empty := lineOf(emptyName, results.Floor, 60, 10*time.Microsecond)
	next := lineOf(ceilingName, results.Ours, 110, 15*time.Microsecond)
	peer := lineOf("rs/xid", results.Peers, 130, 12*time.Microsecond)
	slow := lineOf("sony/sonyflake", results.Peers, 130, time.Second)
	for i := range slow.stopped {
		slow.stopped[i], slow.reached[i] = true, 25_600
	}
	lines := []*line{empty, next, peer, slow}

	target := tailTarget(lines)
	assert.Equal(t, results.Met, target.State())
	assert.InEpsilon(t, 1.5, target.Got.Median(), 0.01)
	assert.Len(t, target.Got.Samples, 12)

	table, chart := latencyTable(10_000, lines)
	require.NoError(t, (&results.Section{ID: "latency", Tables: []results.Table{table}, Charts: []results.Chart{chart}}).Check())
	assert.Equal(t, []string{
		"At 10,000 IDs/s, one call in a thousand takes Next more than 15.1 µs, and the empty loop more than 10.1 µs.",
		"At that rate, the tail is shorter for rs/xid (12.1 µs).",
		"Who cannot keep up with 10,000 IDs/s: sony/sonyflake (25,600 IDs/s).",
	}, latencyVerdict([]results.Table{table}))
	assert.Equal(t, cannotKeepUp, table.Cell("sony/sonyflake", "p50").Text)
	assert.Empty(t, table.Cell("sony/sonyflake", "p50").Samples, "no chart may show it")
	assert.Contains(t, table.Row("sony/sonyflake").Note, "in 12 of 12 slices")
}

func TestTheTailOfAMachineThatStalls(t *testing.T) {
	lines := []*line{
		lineOf(emptyName, results.Floor, 60, 2*time.Millisecond),
		lineOf(ceilingName, results.Ours, 110, 9*time.Millisecond),
	}
	lines[1].Limit = cases.Bwmarrin().Limit
	target := tailTarget(lines)
	assert.Equal(t, results.Missed, target.State())
	assert.Contains(t, target.Why, "worked off at no more than 4,096 per 1ms")

	lines[0] = lineOf(emptyName, results.Floor, 60, time.Microsecond)
	assert.Empty(t, tailTarget(lines).Why)
}

// Slices that were not run in the same rounds are not compared.
func TestTheTailIsComparedRoundByRound(t *testing.T) {
	empty, next := lineOf(emptyName, results.Floor, 60, 10*time.Microsecond), lineOf(ceilingName, results.Ours, 110, 10*time.Microsecond)
	next.slices = next.slices[:11] // it failed in the last round
	got := tailTarget([]*line{empty, next}).Got.Samples
	require.Len(t, got, 11)
	for _, ratio := range got {
		assert.InDelta(t, 1, ratio, 1e-9)
	}
	next.slices = nil
	assert.Equal(t, results.Open, tailTarget([]*line{empty, next}).State())
}

func TestLatencyVerdictOfFewSamples(t *testing.T) {
	lines := []*line{lineOf(emptyName, results.Floor, 60, 1000), lineOf(ceilingName, results.Ours, 110, 1000)}
	for _, l := range lines {
		l.slices = l.slices[:3]
	}
	table, _ := latencyTable(10_000, lines)
	assert.Contains(t, latencyVerdict([]results.Table{table})[0], "too few to tell them apart")
}

func TestATargetThatWasNotMeasuredWhollyIsOpen(t *testing.T) {
	sleeps := takes(244.14)
	sleeps.CPU = around(24, 0.1, 20)
	g := ceilingGrid(takes(244.14), takes(244.14))
	g.samples = [][]measure.Samples{{sleeps, {}}, {takes(244.14), takes(244.14)}}
	for _, target := range ceilingTargets(g, "bwmarrin/snowflake") {
		assert.Equal(t, results.Open, target.State(), target.ID)
		assert.Equal(t, "it was not measured with 2 goroutines", target.Reason(), target.ID)
	}
	g.samples[0][0] = takes(500)
	assert.Equal(t, results.Missed, ceilingTargets(g, "bwmarrin/snowflake")[1].State(), "that is sure")

	shared := gridOf([]cases.Case{cases.SharedFloor(), cases.Next(nextName, cases.Wide())}, []int{1, 2, 4}, []float64{30, 60, 60}, []float64{30, 60, 60})
	shared.samples[1][2] = measure.Samples{}
	assert.Equal(t, "it was not measured with 4 goroutines", sharedTarget(shared, nextName, cases.SharedFloor().Name).Reason())
	table := shared.table(results.Table{ID: "scaling"}, "million/s", results.More, func(_ opened, s measure.Samples) results.Cell {
		return results.Cell{Samples: measure.Each(s.Wall, millionsPerSecond)}
	})
	assert.NotContains(t, strings.Join(scalingVerdict(shared, table, nextName), "\n"), "NaN")
}

func TestALineKeepsWholeRoundsOnly(t *testing.T) {
	l := lineOf("a", results.Ours, 1, 2)
	l.stopped[11] = true
	assert.Equal(t, 1, l.timesStopped())
	assert.Contains(t, l.tableRow().Note, "in 1 of 12 slices")
	l.keep(11)
	assert.Len(t, l.slices, 11)
	assert.Zero(t, l.timesStopped())
	assert.Empty(t, l.tableRow().Note)
}
