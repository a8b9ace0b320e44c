// Package bits is the section of the report that shows which slots a busy generator leaves
// unused, and how IDs at a low rate spread over shards that are chosen by id % n.
package bits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/chaos_test/kernel/peers"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "waste", Title: "IDs wasted, and how they spread", Full: 14 * time.Second, Quick: 2 * time.Second,
		About: "A slot is a place for an ID: 4,096 in a millisecond, or 256 in 10 ms for sony/sonyflake. Busy generators are asked without a pause, in turn and in random order; " +
			"slots of whole ticks without an ID are unused. Ticks without any ID are counted apart: on a shared machine they are mostly the machine's doing. " +
			"At a low rate, each generator issues one ID every 10 ms, in virtual time unless it reads package time. p is the probability that chance alone spreads 1,024 IDs (their last byte) as unevenly " +
			"over the shards, by Pearson's χ², as the median of five samples, in real time of one; below 0.01 it is not chance.",
		Measure: measureAll, Verdict: verdict}}
}

const perTick = 4096 // in the default layout

// starts are the ranges of random sequence starts that are compared; 0 is a start at
// zero.
var starts = []int64{0, 2, 16, 256, perTick}

// startOf is the sequence start with such a range.
func startOf(below int64) strategies.SequenceStart {
	if below == 0 {
		return strategies.StartZero()
	}
	return strategies.StartRandom(below)
}

func measureAll(ctx context.Context, run *measure.Run) (s report.Section) {
	chances := chances(ctx, run, &s)
	loads, err := busy(run)
	if err != nil {
		s.Note("The busy generators could not be measured: %v.", err)
	}
	run.Measure(ctx, 3, 0, loads...)
	measure.Failed(&s, loads)
	t := report.Table{ID: "waste-busy", Title: "Slots that a busy generator leaves unused", RowName: "generator", Detail: true, Columns: []report.Column{
		{ID: "all", Title: "unused slots", Unit: "%", Better: report.Less}, {ID: "skipped", Title: "ticks without an ID", Unit: "%", Better: report.Less}}}
	percent := func(share float64) float64 { return 100 * share }
	s.Tables = []report.Table{measure.Rows(t, loads, func(l *measure.Load, column string) report.Cell { return l.Of(column, percent) }), chances}
	return s
}

// A slot is a place for an ID: the tick times the IDs per tick, plus the number within the
// tick. The IDs of one generator have different slots.
type slot int64

// slotOf is the slot of an ID in the default layout.
func slotOf(id snowflake.ID) slot { return slot(int64(id)>>22<<12 | int64(id)&(perTick-1)) }

// issuer issues IDs in the rest of the tick in which it begins, in so many whole ticks
// after that, and one more ID. It appends their slots to into. It may be called again.
type issuer func(into []slot, ticks int) ([]slot, error)

// until calls for one ID after the other.
func until(perTick slot, next func() (slot, error)) issuer {
	return func(into []slot, ticks int) ([]slot, error) {
		for end := slot(-1); ; {
			s, err := next()
			if err != nil {
				return into, err
			}
			into = append(into, s)
			if end < 0 {
				end = (s/perTick + slot(ticks) + 1) * perTick
			}
			if s >= end {
				return into, nil
			}
		}
	}
}

func each(next func() (snowflake.ID, error)) issuer {
	return until(perTick, func() (slot, error) {
		id, err := next()
		return slotOf(id), err
	})
}

// busy makes loads of the generators that issue IDs without a pause.
func busy(run *measure.Run) (loads []*measure.Load, err error) {
	buffer := make([]slot, 0, 42*perTick) // of the load whose turn it is
	add := func(name string, group report.Group, note string, tick time.Duration, perTick int64, issue issuer) {
		ticks := measure.Pick(run, 4, max(4, int(40*time.Millisecond/tick)))
		loads = append(loads, &measure.Load{Row: name, Group: group, Note: note, Turn: func(context.Context) (measure.Figures, error) {
			slots, err := issue(buffer[:0], ticks)
			return wasted(slots, slot(perTick)), err
		}})
	}
	ours := func(name string, below int64, issue func(*generator.Generator) issuer) {
		g, failed := generator.New(generator.WithNode(7), generator.WithStrategy(strategies.Wait()), generator.WithSequenceStart(startOf(below)))
		if err = errors.Join(err, failed); failed != nil {
			return
		}
		note := ""
		if below > 0 {
			note = fmt.Sprintf("a start below %d leaves %s%% unused on average", below, report.Figure(100*expected(below)))
		}
		add(name, report.Ours, note, time.Millisecond, perTick, issue(g))
	}
	stream := func(g *generator.Generator) issuer { return each(g.Stream().Next) }
	for _, below := range starts {
		ours(fmt.Sprintf("tickflake Next, start %s", startOf(below)), below, func(g *generator.Generator) issuer { return each(g.Next) })
	}
	ours("tickflake NextN(1024)", 0, func(g *generator.Generator) issuer {
		return func(into []slot, ticks int) ([]slot, error) {
			var ids [1024]snowflake.ID
			n := 0 // the rest of the last batch is not for the next turn, which comes much later
			return each(func() (id snowflake.ID, err error) {
				if n == 0 {
					if n, err = g.NextN(ids[:]); err != nil {
						return 0, err
					}
				}
				n--
				return ids[len(ids)-1-n], nil
			})(into, ticks)
		}
	})
	ours("tickflake stream", 0, stream)
	ours("tickflake 2 streams at once", 0, func(g *generator.Generator) issuer {
		streams := [2]issuer{stream(g), stream(g)}
		return func(into []slot, ticks int) ([]slot, error) {
			var slots [2][]slot
			err := measure.Together(2, func(i int) (err error) {
				slots[i], err = streams[i](nil, ticks)
				return err
			})
			return slices.Concat(into, slots[0], slots[1]), err
		}
	})
	for _, p := range peers.List() {
		if !p.Integer {
			continue
		}
		g, failed := p.New(peers.System)
		if err = errors.Join(err, failed); failed == nil {
			add(p.Name, report.Peers, "", p.Tick, p.PerTick, until(slot(p.PerTick), func() (slot, error) {
				id, err := g.Integer()
				return slot(p.Slot(id)), err
			}))
		}
	}
	return loads, err
}

// expected is the share of the slots that a random start leaves unused on average.
func expected(below int64) float64 { return float64(max(below, 1)-1) / 2 / perTick }

// wasted returns shares of the ticks between the first and the last one, which are not whole:
// "skipped" of the ticks without an ID, and "all" of the slots without one. It sorts the slots,
// which differ.
func wasted(slots []slot, perTick slot) measure.Figures {
	slices.Sort(slots)
	if len(slots) == 0 {
		return nil
	}
	first, last, before := slots[0]/perTick+1, slots[len(slots)-1]/perTick, slot(-1)
	ticks, used, seen := max(last-first, 1), 0, 0 // slots, and ticks, with IDs
	for _, s := range slots {
		if tick := s / perTick; first <= tick && tick < last {
			used++
			if tick != before {
				seen++
			}
			before = tick
		}
	}
	return measure.Figures{"skipped": 1 - float64(seen)/float64(ticks), "all": 1 - float64(used)/float64(ticks*perTick)}
}

const (
	samples  = 5                     // per generator, of the spread
	ids      = 1024                  // of a sample
	interval = 10 * time.Millisecond // between two of them
	uniform  = 0.01                  // a probability below it is not chance
)

// chances has generators issue IDs at a low rate, in virtual time. Its five samples are not
// repeats of one measurement, so their medians are shown as one sample.
func chances(ctx context.Context, run *measure.Run, s *report.Section) report.Table {
	t := report.Table{ID: "waste-chances", Title: "How IDs at a low rate spread", RowName: "generator", Detail: true,
		Columns: []report.Column{
			{ID: "p-2", Title: "p over 2 shards"}, {ID: "p-16", Title: "p over 16 shards"},
			{ID: "most", Title: "in the fullest of 16", Unit: "%", Better: report.Less}},
		Chart: &report.Chart{ID: "waste-shards", Title: "IDs at a low rate in the fullest of 16 shards", Column: "most", Label: "% of the IDs"}}
	var list []generators.Subject
	for _, below := range starts {
		list = append(list, generators.Starting(startOf(below)))
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
		if err == nil {
			row.Cells = []report.Cell{judged(p2.Median()), judged(p16.Median()), report.One(most.Median())}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// spread divides IDs by their lowest bytes over 2 to 256 shards, a power of two. It returns the
// share of the fullest, and the probability of at least as uneven a spread by chance.
func spread(low []byte, shards int) (most, p float64) {
	counts, expected := make([]float64, shards), make([]float64, shards)
	for _, b := range low {
		counts[int(b)%shards]++
	}
	for i := range expected {
		expected[i] = float64(len(low)) / float64(shards)
	}
	return slices.Max(counts) / float64(len(low)), distuv.ChiSquared{K: float64(shards - 1)}.Survival(stat.ChiSquare(counts, expected))
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
		said += "; a random start below 256 fills all shards alike, and costs a busy generator " + report.Figure(100*expected(256)) + "% of its slots"
	}
	return said + "."
}
