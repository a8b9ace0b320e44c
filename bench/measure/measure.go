// Package measure runs the loads of a benchmark side by side: in turn, in random order, in many
// rounds, so that a disturbance of the machine affects them all alike. A load and its base are
// neighbours in each round, and [Load.Pair] compares them round by round.
//
// You need these names: a [Section] of the report measures within a [Run], which gives [Load]
// values their turns by [Run.Measure]. A [Batch] is the turn of an operation that can be
// repeated. [Rows] and [Grid] make tables of loads.
package measure

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/report"
)

// Section is one kind of measurement.
type Section struct {
	ID, Title string
	About     string // what is measured, and how
	// Full and Quick are about how long the section takes.
	Full, Quick time.Duration
	// Measure returns the tables, targets and notes, or the reason why the section is
	// skipped. When ctx ends, it soon returns what it has.
	Measure func(ctx context.Context, run *Run) report.Section
}

// Run is how to measure a section.
type Run struct {
	Quick bool
	Until time.Time  // when its last round should end
	Rand  *rand.Rand // for the order of the loads
}

// Pick is one of two values: that of a quick run, or that of a full one.
func Pick[T any](run *Run, quick, full T) T {
	if run.Quick {
		return quick
	}
	return full
}

// Figures are what a turn has measured, by name.
type Figures map[string]float64

// Load is something that is measured in turns, and the place of its figures in tables.
type Load struct {
	Row   string // of the tables
	At    string // the column, where a row has several loads
	Group report.Group
	Note  string
	// Turn does it once. The first turn is to warm up, and does not count.
	Turn func(ctx context.Context) (Figures, error)
	// Base is what this load is compared with. It has its turn before or after this one.
	Base *Load

	Figures map[string][]float64 // of the rounds
	Rounds  int                  // how many there are
	Err     error                // why the figures end, if the load failed
}

// Measure gives each load its turn once per round, in an order that is drawn anew for every
// round. A load and its base are neighbours, in an order that is swapped from one round to the
// next. It ends before the round that would exceed run.Until, but not before there are least
// rounds; after most rounds, if most is not 0; or when ctx ends. The loads keep the figures of
// whole rounds. A load that fails has no further turn.
func (run *Run) Measure(ctx context.Context, least, most int, loads ...*Load) {
	var blocks [][]*Load
	index := map[*Load]int{}
	for _, l := range loads {
		for _, one := range []*Load{l.Base, l} {
			if _, known := index[one]; one == nil || known {
				continue
			}
			at, joins := index[l.Base]
			if !joins {
				at, blocks = len(blocks), append(blocks, nil)
			}
			index[one], blocks[at] = at, append(blocks[at], one)
		}
	}
	for _, block := range blocks {
		for _, l := range block {
			if l.Figures = map[string][]float64{}; l.Err == nil && ctx.Err() == nil {
				runtime.GC()
				_, l.Err = l.Turn(ctx)
			}
		}
	}
	rounds := run.rounds(ctx, least, most, blocks)
	for l := range index {
		for name, samples := range l.Figures {
			l.Figures[name] = samples[:min(rounds, len(samples))]
		}
		l.Rounds = min(rounds, l.Rounds)
	}
}

// rounds returns how many are complete.
func (run *Run) rounds(ctx context.Context, least, most int, blocks [][]*Load) int {
	first := time.Now()
	for round := 0; ; round++ {
		each := time.Since(first) / time.Duration(max(round, 1))
		if round >= least && time.Now().Add(each).After(run.Until) || most > 0 && round == most {
			return round
		}
		for _, block := range run.Rand.Perm(len(blocks)) {
			for _, l := range blocks[block] {
				if ctx.Err() != nil {
					return round
				}
				l.turn(ctx)
			}
			slices.Reverse(blocks[block])
		}
	}
}

// turn measures the load once.
func (l *Load) turn(ctx context.Context) {
	if l.Err != nil {
		return
	}
	runtime.GC() // the garbage of other loads
	figures, err := l.Turn(ctx)
	if err != nil {
		if ctx.Err() == nil { // and what fails by that is no failure of the load
			l.Err = err
		}
		return
	}
	l.Rounds++
	for name, v := range figures {
		l.Figures[name] = append(l.Figures[name], v)
	}
}

// Failed notes the loads that failed.
func Failed(s *report.Section, loads []*Load) {
	for _, l := range loads {
		if l.Err != nil {
			s.Note("%s failed after %d rounds: %v.", strings.TrimSpace(l.Row+" "+l.At), l.Rounds, l.Err)
		}
	}
}

// Of is a cell with the samples of a figure.
func (l *Load) Of(figure string) report.Cell {
	samples := l.Figures[figure]
	if len(samples) == 0 && l.Err != nil {
		return report.Cell{Text: "failed"}
	}
	return report.Cell{Samples: samples}
}

// Pair is how a figure of the load compares with that of its base: the ratio of each round. It is empty if there is no
// base.
func (l *Load) Pair(figure string) report.Cell {
	if l.Base == nil {
		return report.Cell{}
	}
	return l.Of(figure).Per(l.Base.Of(figure))
}

// Rows fills a table with a row per load.
func Rows(t report.Table, loads []*Load, cell func(l *Load, column string) report.Cell) report.Table {
	for _, l := range loads {
		row := report.Row{Name: l.Row, Group: l.Group, Note: l.Note}
		for _, c := range t.Columns {
			row.Cells = append(row.Cells, cell(l, c.ID))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Grid fills a table with a row for all loads of one row, at their columns. It leaves out loads at no column.
func Grid(t report.Table, loads []*Load, cell func(*Load) report.Cell) report.Table {
	for _, l := range loads {
		column := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == l.At })
		if column < 0 {
			continue
		}
		at := slices.IndexFunc(t.Rows, func(r report.Row) bool { return r.Name == l.Row })
		if at < 0 {
			at = len(t.Rows)
			t.Rows = append(t.Rows, report.Row{Name: l.Row, Group: l.Group, Note: l.Note, Cells: make([]report.Cell, len(t.Columns))})
		}
		t.Rows[at].Cells[column] = cell(l)
	}
	return t
}

// Find returns the load of a row and column. It has no samples if there is none.
func Find(loads []*Load, row, at string) *Load {
	if i := slices.IndexFunc(loads, func(l *Load) bool { return l.Row == row && l.At == at }); i >= 0 {
		return loads[i]
	}
	return &Load{}
}
