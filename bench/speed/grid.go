package speed

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// grid is what was measured of cases with several numbers of goroutines.
type grid struct {
	cases      []opened
	goroutines []int
	samples    [][]measure.Samples // by case and number of goroutines
	notes      []string
}

// measureGrid measures every case with every number of goroutines, which share its
// source.
func measureGrid(ctx context.Context, run *measure.Run, batch time.Duration, least int, list []cases.Case, goroutines []int) grid {
	g := grid{cases: open(ctx, list), goroutines: goroutines}
	var works []measure.Work
	for _, o := range g.cases {
		for _, n := range goroutines {
			works = append(works, o.work(n))
		}
	}
	samples := measure.Interleave(ctx, run, batch, least, works)
	g.notes = append(failures(works, samples), closeAll(g.cases)...)
	for i := range g.cases {
		g.samples = append(g.samples, samples[i*len(goroutines):(i+1)*len(goroutines)])
	}
	return g
}

// of returns what was measured of a case, by number of goroutines.
func (g grid) of(name string) []measure.Samples {
	for i, o := range g.cases {
		if o.Name == name {
			return g.samples[i]
		}
	}
	return make([]measure.Samples, len(g.goroutines))
}

// table has a row per case and a column per number of goroutines.
func (g grid) table(t results.Table, unit string, better results.Better, cell func(opened, measure.Samples) results.Cell) results.Table {
	t.RowName = "case"
	for _, n := range g.goroutines {
		t.Columns = append(t.Columns, results.Column{ID: column(n), Title: goroutinesTitle(n), Unit: unit, Better: better, X: float64(n)})
	}
	for i, o := range g.cases {
		row := o.row()
		for _, s := range g.samples[i] {
			row.Cells = append(row.Cells, cell(o, s))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// column is the ID of the column for so many goroutines.
func column(goroutines int) string { return fmt.Sprintf("g%d", goroutines) }

func goroutinesTitle(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// against are the samples of f for two cases, by number of goroutines.
func (g grid) against(subject, base string, f func(subject, base measure.Samples) []float64) [][]float64 {
	s, b := g.of(subject), g.of(base)
	all := make([][]float64, len(g.goroutines))
	for i := range all {
		all[i] = f(s[i], b[i])
	}
	return all
}

// wallRatios and cpuRatios compare times per ID.
func wallRatios(s, b measure.Samples) []float64 { return measure.Ratios(s.Wall, b.Wall) }
func cpuRatios(s, b measure.Samples) []float64  { return measure.Ratios(s.CPU, b.CPU) }

// medians of samples by number of goroutines; NaN where there are none.
func medians(of [][]float64) []float64 {
	out := make([]float64, len(of))
	for i, samples := range of {
		out[i] = results.Cell{Samples: samples}.Median()
	}
	return out
}

// span writes the range of the medians that were measured: "1.2 to 3.4", or empty if
// there are none.
func span(of [][]float64, unit string) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, m := range medians(of) {
		if !math.IsNaN(m) {
			lo, hi = min(lo, m), max(hi, m)
		}
	}
	if lo > hi {
		return ""
	}
	return fmt.Sprintf("%s%s to %s%s", short(lo), unit, short(hi), unit)
}

// ahead says with how many goroutines a case takes less than another, as far as that
// can be told: "with 1, 2 and 64 goroutines". It is empty if with none.
func (g grid) ahead(subject, base string, f func(subject, base measure.Samples) []float64) string {
	var with []string
	for i, ratios := range g.against(subject, base, f) {
		if side(ratios) < 0 {
			with = append(with, fmt.Sprint(g.goroutines[i]))
		}
	}
	switch {
	case len(with) == 0:
		return ""
	case len(with) == 1 && with[0] == "1":
		return "with 1 goroutine"
	}
	return fmt.Sprintf("with %s goroutines", list(with))
}
