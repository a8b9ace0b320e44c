// Package spread is the section of the report that shows which slots a busy generator
// leaves unused, and how IDs at a low rate spread over shards that are chosen by id % n.
package spread

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
)

const (
	samples  = 5                     // per generator, of the spread
	each     = 1024                  // IDs per sample
	interval = 10 * time.Millisecond // between two of them
	patience = 30 * time.Second      // real time for a peer's process
	least    = 3                     // rounds of the busy generators
	fewest   = 4                     // whole ticks per round
	longest  = 40                    // milliseconds per round
	shards   = 16
	uniform  = 0.01 // a probability below it is not chance
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "waste", Title: "IDs wasted, and how they spread", Full: 3 * time.Second, Quick: time.Second,
		About: "A slot is a place for an ID: 4,096 in a millisecond, or 256 in 10 ms for sony/sonyflake. Busy generators are asked without a pause, in turn and in random order; " +
			"slots of whole ticks without an ID are unused. Ticks without any ID are counted apart: on a shared machine they are mostly the machine's doing. " +
			"At a low rate, each generator issues one ID every 10 ms in virtual time. p is the probability that chance alone spreads 1,024 IDs (their last byte) as unevenly " +
			"over the shards, by Pearson's χ², as the median of five samples; below 0.01 it is not chance.",
		Measure: measureAll, Verdict: verdict}}
}

func measureAll(ctx context.Context, run *measure.Run) results.Section {
	began := time.Now()
	var s results.Section
	idle, notes := measureIdle(ctx, run)
	s.Notes = notes
	generators, err := openAll()
	var busy []worn
	if err == nil {
		defer closeAll(generators)
		busy, err = measureBusy(ctx, run, began, generators)
	}
	if err != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("The busy generators could not be measured: %v.", err))
	}
	s.Tables = []results.Table{unused(busy), chances(idle)}
	return s
}

// line is a generator that issues IDs at a low rate.
type line struct {
	name    string
	group   results.Group
	by2, by []spread // over 2 shards, and over more; one per sample
}

// measureIdle has generators issue IDs at a low rate, in virtual time.
func measureIdle(ctx context.Context, run *measure.Run) (all []line, notes []string) {
	var list []peers.Peer
	for _, below := range starts {
		list = append(list, peers.Starting(startOf(below)))
	}
	ours := len(list)
	for i, p := range append(list, peers.List()...) {
		l := line{name: p.Name, group: results.Ours}
		if i >= ours {
			l.group = results.Peers
		}
		if run.Progress != nil {
			run.Progress(0, 1, l.name)
		}
		if ctx.Err() == nil {
			low, err := p.IDs(ctx, samples*each, interval, patience)
			if err != nil {
				notes = append(notes, fmt.Sprintf("%s: %v.", l.name, err))
			}
			for part := range slices.Chunk(low, each) {
				l.by2, l.by = append(l.by2, spreadOf(part, 2)), append(l.by, spreadOf(part, shards))
			}
		}
		all = append(all, l)
	}
	return all, notes
}

// spread is how a sample of IDs lies over shards.
type spread struct {
	most float64 // share of the fullest shard
	p    float64 // of at least as uneven a spread by chance
}

// spreadOf divides IDs by their lowest bytes over 2 to 256 shards, a power of two.
func spreadOf(low []byte, shards int) spread {
	counts, expected := make([]float64, shards), make([]float64, shards)
	for _, b := range low {
		counts[int(b)%shards]++
	}
	for i := range expected {
		expected[i] = float64(len(low)) / float64(shards)
	}
	return spread{
		most: slices.Max(counts) / float64(len(low)),
		p:    distuv.ChiSquared{K: float64(shards - 1)}.Survival(stat.ChiSquare(counts, expected)),
	}
}

// worn is a busy generator, and the waste of each round.
type worn struct {
	busy
	rounds []waste
}

// measureBusy has all generators issue as fast as they can, in turn.
func measureBusy(ctx context.Context, run *measure.Run, began time.Time, all []busy) ([]worn, error) {
	out := make([]worn, len(all))
	names := make([]string, len(all))
	for i, b := range all {
		out[i].busy, names[i] = b, b.name
		if ctx.Err() != nil {
			continue
		}
		if _, err := b.issue(nil, 1); err != nil { // to warm up
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
	}
	// A round takes a fifth of the budget, and each generator gets a few ticks at least.
	slice := min(run.Budget/5/time.Duration(len(all)), longest*time.Millisecond)
	buffer := make([]slot, 0, (longest+2)*perTick)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	run.Rounds(ctx, began, least, names, func(i int) {
		b := &out[i]
		slots, err := b.issue(buffer[:0], max(fewest, int(slice/b.tick)))
		if err != nil {
			failed = fmt.Errorf("%s: %w", b.name, err)
			stop()
			return
		}
		b.rounds = append(b.rounds, wasted(slots, b.perTick))
	})
	return out, failed
}

func unused(busy []worn) results.Table {
	columns := []struct {
		id, title string
		of        func(waste) float64
	}{
		{"all", "unused in all", waste.all},
		{"start", "before a tick's first ID", func(w waste) float64 { return w.start }},
		{"between", "between", func(w waste) float64 { return w.between }},
		{"end", "after its last ID", func(w waste) float64 { return w.end }},
		{"skipped", "ticks without an ID", func(w waste) float64 { return w.skipped }},
	}
	t := results.Table{ID: "waste-busy", Title: "Slots that a busy generator leaves unused", RowName: "generator"}
	for _, c := range columns {
		t.Columns = append(t.Columns, results.Column{ID: c.id, Title: c.title, Unit: "%", Better: results.Less})
	}
	for _, b := range busy {
		r := results.Row{Name: b.name, Group: b.group}
		if b.starts > 0 {
			r.Note = fmt.Sprintf("a start below %d leaves %s%% unused on average", b.starts, results.Figure(100*expected(b.starts)))
		}
		for _, column := range columns {
			var c results.Cell
			for _, w := range b.rounds {
				c.Samples = append(c.Samples, 100*column.of(w))
			}
			r.Cells = append(r.Cells, c)
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// expected is the share of the slots that a random start leaves unused on average.
func expected(below int64) float64 { return float64(max(below, 1)-1) / 2 / perTick }

func chances(idle []line) results.Table {
	t := results.Table{ID: "waste-chances", Title: "How IDs at a low rate spread", RowName: "generator",
		Columns: []results.Column{
			{ID: "p-2", Title: "p over 2 shards"}, {ID: "p-16", Title: "p over 16 shards"},
			{ID: "most", Title: "in the fullest of 16", Unit: "%", Better: results.Less}},
		Charts: []results.Chart{{ID: "waste-shards", Title: "IDs at a low rate in the fullest of 16 shards", Columns: []string{"most"}, YLabel: "% of the IDs"}}}
	for _, l := range idle {
		r := results.Row{Name: l.name, Group: l.group, Cells: make([]results.Cell, len(t.Columns))}
		if len(l.by) > 0 {
			p := func(s spread) float64 { return s.p }
			r.Cells = []results.Cell{judged(median(l.by2, p)), judged(median(l.by, p)), single(median(l.by, func(s spread) float64 { return 100 * s.most }))}
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

func median(all []spread, of func(spread) float64) float64 {
	var values []float64
	for _, s := range all {
		values = append(values, of(s))
	}
	return results.Cell{Samples: values}.Median()
}

// single is a cell with one sample. The five samples are not repeats of one measurement,
// and their differences are not noise.
func single(x float64) results.Cell { return results.Cell{Samples: []float64{x}} }

// judged is a cell with a probability.
func judged(p float64) results.Cell {
	c := single(p)
	if c.Mark = results.Good; p < uniform {
		c.Mark = results.Bad
	}
	return c
}

// verdict says which generators fill shards unevenly at a low rate.
func verdict(s results.Section) string {
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
		said = "At a low rate, these put all IDs into one of 16 shards: " + results.List(one)
	}
	if t.Cell("tickflake, start random:256", "p-16").Mark == results.Good {
		said += "; a random start below 256 fills all shards alike, and costs a busy generator " + results.Figure(100*expected(256)) + "% of its slots"
	}
	return said + "."
}
