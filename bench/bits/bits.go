// Package bits is the section of the report that shows how IDs at a low rate spread over shards that
// are chosen by id % n.
package bits

import (
	"context"
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
		About: "At a low rate, each generator issues one ID every 10 ms, in virtual time unless it reads package time, and 1,024 of them (their last byte) go to 16 shards: an even spread is 6.25% in each. " +
			"The figure is the median of five samples, in real time of one. A random start of the sequence leaves the places for IDs below it unused: " +
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
	shards   = 16
)

// measureSpread has generators issue IDs at a low rate, in virtual time. Its five samples are not
// repeats of one measurement, so their medians are shown as one sample.
func measureSpread(ctx context.Context, run *measure.Run) (s report.Section) {
	t := report.Table{ID: "waste", Title: "How IDs at a low rate spread", RowName: "generator", Columns: []report.Column{{ID: "most", Title: "in the fullest of 16 shards", Unit: "%", Better: report.Less}}}
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
		if errs[i] != nil {
			s.Note("%s: %v.", g.Name, errs[i])
			continue
		}
		var most report.Cell
		for part := range slices.Chunk(lows[i], ids) {
			counts := make([]int, shards)
			for _, low := range part {
				counts[low%shards]++
			}
			most.Samples = append(most.Samples, 100*float64(slices.Max(counts))/float64(len(part)))
		}
		if most.Median() == 100 {
			one = append(one, g.Name)
		}
		t.Rows = append(t.Rows, report.Row{Name: g.Name, Group: g.Group, Cells: []report.Cell{report.One(most.Median())}})
	}
	all := "no generator puts all IDs into one of 16 shards"
	if len(one) > 0 {
		all = "these put all IDs into one of 16 shards: " + report.List(one)
	}
	t.Say("At a low rate, %s; with a random start below 256, the fullest shard has %s%%.", all, t.Cell("tickflake, start random:256", "most"))
	s.Tables = []report.Table{t}
	return s
}
