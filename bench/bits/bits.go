// Package bits is the section of the report that shows how IDs at a low rate spread over shards that
// are chosen by id % n, and how many slots the random start wastes that spreads them.
package bits

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/strategies"
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "waste", Title: "IDs wasted, and how they spread", Full: 11 * time.Second, Quick: time.Second,
		About: "At a low rate, each generator issues one ID every 10 ms, in virtual time unless it reads package time. p is the probability that chance alone spreads 1,024 IDs (their last byte) as unevenly " +
			"over the shards, by Pearson's χ², as the median of five samples, in real time of one; below 0.01 it is not chance. A random start of the sequence leaves the places for IDs below it unused, " +
			"which a busy generator that waits misses: “At the ceiling” measures that.",
		Measure: measureSpread, Verdict: verdict}}
}

const perTick = 4096 // in the default layout

// starts are the ranges of random sequence starts that are compared, after a start at zero.
var starts = []int64{2, 16, 256, perTick}

// expected is the share of the slots that a random start leaves unused on average.
func expected(below int64) float64 { return float64(below-1) / 2 / perTick }

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
			{ID: "most", Title: "in the fullest of 16", Unit: "%", Better: report.Less}},
		Chart: &report.Chart{ID: "waste-shards", Title: "IDs at a low rate in the fullest of 16 shards", Column: "most", Label: "% of the IDs"}}
	list, unused := []generators.Subject{generators.Starting(strategies.StartZero())}, []string{""} // notes
	for _, below := range starts {
		list = append(list, generators.Starting(strategies.StartRandom(below)))
		unused = append(unused, fmt.Sprintf("a busy generator that waits leaves %s%% of its places unused", report.Figure(100*expected(below))))
	}
	list = append(list, generators.Peers()...)
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
		if i < len(unused) {
			row.Note = unused[i]
		}
		if err == nil {
			row.Cells = []report.Cell{judged(p2.Median()), judged(p16.Median()), report.One(most.Median())}
		}
		t.Rows = append(t.Rows, row)
	}
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
	return slices.Max(counts) / float64(len(low)), survival(square, shards-1)
}

// survival is the probability that chi-squared with k degrees of freedom, an odd number, exceeds x: the
// incomplete gamma function from 1/2 on, in steps of 1.
func survival(x float64, k int) float64 {
	p := math.Erfc(math.Sqrt(x / 2))
	for a := .5; a < float64(k)/2; a++ {
		gamma, _ := math.Lgamma(a + 1)
		p += math.Exp(a*math.Log(x/2) - x/2 - gamma)
	}
	return p
}

// judged is a cell with a probability.
func judged(p float64) report.Cell {
	c := report.One(p)
	if c.Mark = report.Good; p < uniform {
		c.Mark = report.Bad
	}
	return c
}

// verdict says which generators fill shards unevenly at a low rate.
func verdict(s report.Section) string {
	t := s.Table("waste-chances")
	var one []string
	measured := false
	for _, r := range t.Rows {
		most := t.Cell(r.Name, "most").Median()
		measured = measured || most > 0
		if most == 100 {
			one = append(one, r.Name)
		}
	}
	if !measured {
		return ""
	}
	said := "At a low rate, no generator puts all IDs into one of 16 shards"
	if len(one) > 0 {
		said = "At a low rate, these put all IDs into one of 16 shards: " + report.List(one)
	}
	if t.Cell("tickflake, start random:256", "p-16").Mark == report.Good {
		said += "; a random start below 256 fills all shards alike, and costs a busy generator that waits " + report.Figure(100*expected(256)) + "% of its slots"
	}
	return said + "."
}
