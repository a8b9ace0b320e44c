// Package speed has the sections of the report that measure time: the cost of an ID, the
// cost at the ceiling of its format, how the rate scales with goroutines, and how late an
// ID is at a fixed rate.
package speed

import (
	"context"
	"fmt"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// Sections returns the sections, in the order of the report.
func Sections() []measure.Section {
	return []measure.Section{costSection(), ceilingSection(), scalingSection(), latencySection()}
}

// opened is a case whose source is open, or the error that it could not be opened with.
type opened struct {
	cases.Case
	source cases.Source
	err    error
}

// open opens the sources of all cases. The caller closes them with closeAll.
func open(ctx context.Context, list []cases.Case) []opened {
	all := make([]opened, len(list))
	for i, c := range list {
		all[i] = opened{Case: c}
		all[i].source, all[i].err = c.Open(ctx)
	}
	return all
}

// closeAll closes the sources, and returns errors as notes.
func closeAll(all []opened) []string {
	var notes []string
	for _, o := range all {
		if o.err != nil || o.source.Close == nil {
			continue
		}
		if err := o.source.Close(); err != nil {
			notes = append(notes, fmt.Sprintf("%s could not be closed: %v.", o.Name, err))
		}
	}
	return notes
}

// work is that of so many goroutines, which share the source.
func (o opened) work(goroutines int) measure.Work {
	w := measure.Work{Name: o.Name, Unit: o.Unit, LeadIn: o.Limit.LeadIn(goroutines)}
	if goroutines > 1 {
		w.Name = fmt.Sprintf("%s, %d goroutines", o.Name, goroutines)
	}
	if o.Limit.Binds() {
		w.Unit = o.Limit.IDs // whole ticks
	}
	if o.err != nil {
		w.Do = func(int) error { return o.err }
		return w
	}
	w.Do = cases.Together(o.source.Loops(goroutines)...)
	return w
}

// row begins the row of a case.
func (o opened) row() results.Row {
	return results.Row{Name: o.Name, Group: o.Group, Note: o.Note}
}

// cell shows samples, or why there are none.
func cell(samples []float64, err error) results.Cell {
	if len(samples) == 0 && err != nil {
		return results.Cell{Text: "failed"}
	}
	return results.Cell{Samples: samples}
}

// cpuCell shows samples of processor time, which some systems do not tell.
func cpuCell(samples []float64, s measure.Samples) results.Cell {
	if len(s.Wall) > 0 && len(s.CPU) == 0 {
		return results.Cell{Text: "not measured"}
	}
	return cell(samples, s.Err)
}

// failures are notes on the works that failed.
func failures(works []measure.Work, samples []measure.Samples) []string {
	var notes []string
	for i, s := range samples {
		if s.Err != nil {
			notes = append(notes, fmt.Sprintf("%s failed after %d rounds: %v.", works[i].Name, len(s.Wall), s.Err))
		}
	}
	return notes
}
