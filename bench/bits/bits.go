// Package bits is the section of the report that shows how IDs at a low rate spread over shards that
// are chosen by id % n.
package bits

import (
	"context"
	"slices"
	"time"

	"github.com/aclements/go-moremath/mathx"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/strategies"
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "waste", Title: "IDs wasted, and how they spread", Full: 11 * time.Second, Quick: time.Second,
		About: "At a low rate, each generator issues one ID every 10 ms, in virtual time unless it reads package time. p is the probability that chance alone spreads 1,024 IDs (their last byte) as unevenly " +
			"over the shards, by Pearson's χ², as the median of five samples, in real time of one; below 0.01 it is not chance. A random start of the sequence leaves the places for IDs below it unused: " +
			"below 256, a busy generator that waits misses 3.11% of its slots, which “At the ceiling” measures.",
		Measure: measureSpread}}
}

// starts are the ranges of random sequence starts that are compared, after a start at zero. The last is a whole tick
// of the default layout.
var starts = []int64{2, 16, 256, 4096}

const (
	samples  = 5                     // per generator, of the spread
	ids      = 1024                  // of a sample
	interval = 10 * time.Millisecond // between two of them
	uniform  = 0.01                  // a probability below it is not chance
)

// measureSpread has generators issue IDs at a low rate, in virtual time. Its five samples are not
// repeats of one measurement, so their medians are shown as one sample.
func measureSpread(ctx context.Context, run *measure.Run) (s report.Section) {
	t := report.Table{ID: "waste-chances", Title: "How IDs at a low rate spread", RowName: "generator", Detail: true,
		Columns: []report.Column{
			{ID: "p-2", Title: "p over 2 shards"}, {ID: "p-16", Title: "p over 16 shards"},
			{ID: "most", Title: "in the fullest of 16", Unit: "%", Better: report.Less}}}
	list := []generators.Subject{generators.Starting(strategies.StartZero())}
	for _, below := range starts {
		list = append(list, generators.Starting(strategies.StartRandom(below)))
	}
	list = append(list, generators.Peers()...)
	var one []string // who puts all IDs into one shard
	lows, errs := make([][]byte, len(list)), make([]error, len(list))
	_ = measure.Together(len(list), func(i int) error { // the errors are in errs
		n := samples * ids
		if list[i].PackageTime {
			n = measure.Pick(run, 100, ids)
		}
		lows[i], errs[i] = list[i].IDs(ctx, n, interval)
		return nil
	})
	for i, g := range list {
		low, err := lows[i], errs[i]
		if err != nil {
			s.Note("%s: %v.", g.Name, err)
		}
		var p2, p16, most report.Cell
		for part := range slices.Chunk(low, ids) {
			_, p := spread(part, 2)
			share, by16 := spread(part, 16)
			p2.Samples, p16.Samples, most.Samples = append(p2.Samples, p), append(p16.Samples, by16), append(most.Samples, 100*share)
		}
		row := report.Row{Name: g.Name, Group: g.Group, Cells: make([]report.Cell, 3)}
		if err == nil {
			if most.Median() == 100 {
				one = append(one, g.Name)
			}
			row.Cells = []report.Cell{judged(p2.Median()), judged(p16.Median()), report.One(most.Median())}
		}
		t.Rows = append(t.Rows, row)
	}
	all := "no generator puts all IDs into one of 16 shards"
	if len(one) > 0 {
		all = "these put all IDs into one of 16 shards: " + report.List(one)
	}
	t.Say("At a low rate, %s; with a random start below 256, the fullest shard has %s%%.", all, t.Cell("tickflake, start random:256", "most"))
	s.Tables = []report.Table{t}
	return s
}

// spread divides IDs by their lowest bytes over 2 to 256 shards, a power of two. It returns the
// share of the fullest, and the probability of at least as uneven a spread by chance.
func spread(low []byte, shards int) (most, p float64) {
	counts, expected, square := make([]float64, shards), float64(len(low))/float64(shards), 0.
	for _, b := range low {
		counts[int(b)%shards]++
	}
	for _, n := range counts {
		square += (n - expected) * (n - expected) / expected
	}
	return slices.Max(counts) / float64(len(low)), mathx.GammaIncComp(float64(shards-1)/2, square/2)
}

// judged is a cell with a probability.
func judged(p float64) report.Cell {
	c := report.One(p)
	if c.Mark = report.Good; p < uniform {
		c.Mark = report.Bad
	}
	return c
}
