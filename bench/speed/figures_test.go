package speed

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// around are n samples about a middle.
func around(middle, step float64, n int) []float64 {
	samples := make([]float64, n)
	for i := range samples {
		samples[i] = middle + step*(float64(i)-float64(n-1)/2)
	}
	return samples
}

// takes are samples of about so many nanoseconds, all on the processor.
func takes(ns float64) measure.Samples {
	s := around(ns, ns/1000, 20)
	none := make([]float64, 20)
	return measure.Samples{Wall: s, CPU: s, Allocs: none, Bytes: none}
}

// costsOf is the cost section of cases that take so long.
func costsOf(next, wide, xid float64) results.Section {
	var all []opened
	for _, c := range []cases.Case{
		cases.Floor(), cases.Next(nextName, cases.Wide()), cases.Leased(leasedName, cases.Wide()), cases.NextN(1024),
		cases.Bwmarrin(), cases.BwmarrinWide(), cases.XID(), cases.AddFloor(), cases.Number(), cases.Numbers(1000),
	} {
		all = append(all, opened{Case: c})
	}
	samples := []measure.Samples{takes(30), takes(next), takes(next * 1.01), takes(1.5), takes(244.2), takes(wide), takes(xid), takes(5), takes(7), takes(0.02)}
	for i, o := range all {
		samples[i].Base = new(takes(30))
		if o.Clockless {
			samples[i].Base = new(takes(5))
		}
	}
	return results.Section{Tables: []results.Table{costTable(all, samples)}, Targets: costTargets(all, samples, measure.Compare(samples[2], samples[1]))}
}

func TestCostsInOurFavour(t *testing.T) {
	s := costsOf(32.1, 90, 72)
	for i, want := range []float64{1.07, 48, 1.01, 1.4, 0.02} {
		assert.InEpsilon(t, want, s.Targets[i].Got.Median(), 0.001, s.Targets[i].ID)
		assert.Equal(t, results.Met, s.Targets[i].State(), s.Targets[i].ID)
	}
	assert.Equal(t, "Next takes 32.10 ns per ID, 1.07× the floor; no peer is measurably faster.", costVerdict(s))
	table := s.Table("cost")
	assert.Equal(t, "Next 1.07× and rs/xid 2.4× the floor", s.Targets[0].Beside)
	assert.InEpsilon(t, 1.07, table.Cell(nextName, "floor").Median(), 0.001)
	assert.Contains(t, table.Rows[4].Note, "at the ceiling of its format")
	assert.Equal(t, "244.1", table.Cell("bwmarrin/snowflake", "ceiling").Text)
	assert.Contains(t, table.Cell("rs/xid", "ceiling").Text, "it repeats IDs")
}

func TestCostsInAPeersFavour(t *testing.T) {
	s := costsOf(45, 39, 45)
	assert.Equal(t, results.Missed, s.Targets[0].State())
	assert.Empty(t, s.Targets[0].Why, "the data does not tell")
	assert.Equal(t, "Next 1.5× and bwmarrin/snowflake, 22-bit sequence 1.3× the floor", s.Targets[0].Beside)
	assert.Contains(t, costVerdict(s), "; bwmarrin/snowflake, 22-bit sequence is faster.")
}

// gridOf is a grid of cases that take so long, by number of goroutines.
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

// A target over several numbers of goroutines is judged by the worst of them.
func TestGridTarget(t *testing.T) {
	floor, next := cases.SharedFloor(), cases.Next(nextName, cases.Wide())
	g := gridOf([]cases.Case{floor, next}, []int{1, 2, 4}, []float64{30, 60, 60}, []float64{60, 66, 90})
	for i := range g.goroutines {
		g.samples[1][i].Base = &g.samples[0][i]
	}
	target := func(least int, t results.Target) results.Target { return g.target(t, least, g.pairs(nextName), nil) }
	atMost := results.Target{ID: "t", Want: 1.15, AtMost: true}
	assert.InEpsilon(t, 2, target(1, atMost).Got.Median(), 0.001)
	assert.InEpsilon(t, 1.5, target(2, atMost).Got.Median(), 0.001, "one goroutine does not count")
	assert.InEpsilon(t, 1.1, target(1, results.Target{ID: "t", Want: 1}).Got.Median(), 0.001, "the least is the worst")
	assert.Equal(t, "with 4", g.target(atMost, 2, g.pairs(nextName), func(at int) string { return fmt.Sprint("with ", g.goroutines[at]) }).Beside)
	assert.Empty(t, target(1, atMost).Why)
	g.samples[1][2].CPU = around(60, 0.1, 20)
	assert.Contains(t, target(2, atMost).Why, "met by processor time")

	distances := g.distances([]against{{floor, ""}, {next, floor.Name}})
	assert.Len(t, distances.Rows, 1)
	assert.InEpsilon(t, 1.5, distances.Cell(nextName, "g4").Median(), 0.001)

	base := g.samples[1][2].Base
	g.samples[1][2] = measure.Samples{Base: base}
	assert.Equal(t, "not measured with each number of goroutines", target(2, atMost).Open, "66 is met")
	g.samples[1][1] = takes(90)
	g.samples[1][1].Base = &g.samples[0][1]
	assert.Equal(t, results.Missed, target(2, atMost).State(), "a miss is a miss")
	assert.Equal(t, results.Open, g.target(atMost, 1, make([]measure.Pair, 3), nil).State(), "nothing was measured")
}

// lineOf is a line of 12 slices of 10,000 calls, which take so long, and the slowest 20 of
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
		l.disturbed = append(l.disturbed, false)
	}
	return l
}

func TestLatencyVerdictAndTarget(t *testing.T) {
	empty := lineOf("empty loop", results.Floor, 60, 10*time.Microsecond)
	next := lineOf(ceilingName, results.Ours, 110, 15*time.Microsecond)
	slow := lineOf("sony/sonyflake", results.Peers, 130, time.Second)
	for i := range slow.stopped {
		slow.stopped[i], slow.reached[i] = true, 25_600
	}
	target := tailTarget(next, empty)
	assert.Equal(t, results.Met, target.State())
	assert.InEpsilon(t, 1.5, target.Got.Median(), 0.01)
	assert.Len(t, target.Got.Samples, 12)

	s := results.Section{ID: "latency", Tables: []results.Table{latencyTable(1_000_000, []*line{empty, next, slow})}}
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
	assert.Equal(t, "At a million IDs per second, p99.9 of Next is 15.06 µs, and of the empty loop 10.06 µs; sony/sonyflake cannot keep up.", latencyVerdict(s))
	assert.Empty(t, s.Tables[0].Cell("sony/sonyflake", "p50").Samples, "no chart may show it")
}

// Slices of different rounds are not compared.
func TestTheTailIsComparedRoundByRound(t *testing.T) {
	empty, next := lineOf("empty loop", results.Floor, 60, 10*time.Microsecond), lineOf(ceilingName, results.Ours, 110, 10*time.Microsecond)
	next.slices = next.slices[:11] // it failed in the last round
	got := tailTarget(next, empty).Got.Samples
	require.Len(t, got, 11)
	for _, ratio := range got {
		assert.InDelta(t, 1, ratio, 1e-9)
	}
	next.slices = nil
	assert.Equal(t, results.Open, tailTarget(next, empty).State())
}
