package speed

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/snowflake"
)

func latencySection() measure.Section {
	return measure.Section{ID: "latency", Title: "Latency at a fixed rate", Full: 30 * time.Second, Quick: 2 * time.Second,
		About: "One goroutine asks for IDs on a fixed schedule. A latency is the time from the moment when a call was due to its ID, " +
			"so a stall shows in all calls that queue behind it. Waiting is reading the clock, so a whole core is in use; the empty loop, which makes no ID, " +
			"shows the stalls of the machine. At the ceiling, goroutines call as fast as they can, and calls wait for slots. A quantile has a sample per as many slices of the schedule as have 5 slower calls.",
		Measure: measureLatency, Verdict: latencyVerdict}
}

// rates are the calls per second, with the share of a round's time that each gets: the
// slower, the more, to see the slowest calls.
var rates = []struct {
	perSecond int
	share     float64
}{{10_000, 0.405}, {100_000, 0.183}, {1_000_000, 0.147}} // saturation is the rest

// latencyRounds is how many rounds are planned: enough for a target, and some for
// lead-ins, slow cases, and a busy machine.
const latencyRounds = results.Enough + 6

const (
	leasedDefaultName = "Next under a lease, default layout"
	cannotKeepUp      = "cannot keep up"
)

// tail is the quantile of the target.
var tail = quantiles[3]

// line is what was recorded of one case at one rate, by slice.
type line struct {
	opened
	issue    func() error // makes one ID
	schedule schedule
	slices   []*hdrhistogram.PackedHistogram
	reached  []float64 // IDs per second, by slice
	stopped  []bool    // at twice the slice's length, by slice
	// disturbed says which slices do not count in a pair.
	disturbed []bool
}

func measureLatency(ctx context.Context, run *measure.Run) results.Section {
	began := time.Now()
	all := open(ctx, append([]cases.Case{
		cases.EmptyLoop(), cases.Next(ceilingName, snowflake.Default()), cases.Leased(leasedDefaultName, snowflake.Default()),
		cases.Bwmarrin(), cases.Sonyflake(), cases.XID(), cases.ObjectID(), cases.GoogleV7(),
	}, cases.Yours()...))
	var lines []*line
	var names []string
	for _, rate := range rates {
		gap := time.Second / time.Duration(rate.perSecond)
		slice := time.Duration(float64(run.Budget) * rate.share / float64(latencyRounds*len(all)))
		for _, o := range all {
			l := &line{opened: o, schedule: schedule{gap: gap, calls: max(int(slice/gap), 1)}}
			if o.err == nil {
				loop := o.source.Loop()
				l.issue = func() error { return loop(1) }
			}
			lines = append(lines, l)
			names = append(names, fmt.Sprintf("%s at %d IDs/s", o.Name, rate.perSecond))
		}
	}
	full := crowds(all[1], run.Budget)
	for _, c := range full {
		names = append(names, c.name()+" at the ceiling")
	}
	r := newRecorder()
	rounds := run.Rounds(ctx, began, 3, names, func(i int) {
		if i < len(lines) {
			lines[i].runSlice(r)
		} else {
			full[i-len(lines)].runSlice()
		}
	}, []int{len(lines) - len(all), len(lines) - len(all) + 1}) // the target's
	s := results.Section{Notes: closeAll(all)}
	for _, l := range lines {
		l.keep(rounds)
		if l.err != nil {
			s.Notes = append(s.Notes, fmt.Sprintf("%s failed: %v.", l.Name, l.err))
		}
	}
	for _, c := range full {
		c.keep(rounds)
		if c.err != nil {
			s.Notes = append(s.Notes, fmt.Sprintf("%s at the ceiling failed: %v.", c.name(), c.err))
		}
	}
	for i, rate := range rates {
		s.Tables = append(s.Tables, latencyTable(rate.perSecond, lines[i*len(all):(i+1)*len(all)]))
	}
	s.Tables = append(s.Tables, saturationTable(full))
	fastest := lines[len(lines)-len(all):]
	s.Targets = []results.Target{tailTarget(fastest[1], fastest[0])}
	return s
}

// started is the base of the schedules' clock.
var started = time.Now()

// runSlice runs the schedule once, after a garbage collection and a lead-in, and keeps
// the latencies.
func (l *line) runSlice(r recorder) {
	if l.err != nil {
		return
	}
	runtime.GC()
	now := func() time.Duration { return time.Since(started) }
	lead := schedule{l.schedule.gap, l.schedule.calls / 16}
	if l.err = lead.run(now, l.issue, func(time.Duration) {}).err; l.err != nil {
		return
	}
	r.slice.Reset()
	disturbed := measure.Watch()
	out := l.schedule.run(now, l.issue, r.record)
	if l.err = out.err; l.err != nil {
		return
	}
	l.disturbed = append(l.disturbed, disturbed())
	l.slices = append(l.slices, r.take())
	l.reached = append(l.reached, float64(out.done)/out.took.Seconds())
	l.stopped = append(l.stopped, out.done < l.schedule.calls)
}

// keep drops the slices after the first rounds.
func (l *line) keep(rounds int) {
	n := min(rounds, len(l.slices))
	l.slices, l.reached, l.stopped, l.disturbed = l.slices[:n], l.reached[:n], l.stopped[:n], l.disturbed[:n]
}

func latencyTable(rate int, lines []*line) results.Table {
	per := results.Figure(float64(rate))
	t := results.Table{ID: fmt.Sprint("latency-", rate), Title: per + " IDs per second: time from when a call was due to its ID", RowName: "case", Base: lines[0].Name, Detail: rate < 1_000_000}
	chart := results.Chart{
		ID: t.ID, Title: "Latency at " + per + " IDs per second", Lines: true,
		XLabel: "quantile", YLabel: "µs", LogX: true, LogY: true,
	}
	for _, q := range quantiles {
		t.Columns = append(t.Columns, results.Column{ID: q.column, Title: q.title, Unit: "µs", Better: results.Less, X: q.oneIn()})
		chart.Columns = append(chart.Columns, q.column)
	}
	t.Columns = append(t.Columns,
		results.Column{ID: "longest", Title: "longest", Unit: "µs", Better: results.Less},
		results.Column{ID: "reached", Title: "reached", Unit: "IDs/s", Better: results.More})
	t.Charts = []results.Chart{chart}
	for _, l := range lines {
		t.Rows = append(t.Rows, l.tableRow())
	}
	return t
}

func (l *line) tableRow() results.Row {
	row := l.row()
	for _, q := range quantiles {
		row.Cells = append(row.Cells, q.cell(l.slices))
	}
	row.Cells = append(row.Cells, longestOf(l.slices), results.Cell{Samples: l.reached})
	stopped := 0
	for _, s := range l.stopped {
		if s {
			stopped++
		}
	}
	switch {
	case len(l.slices) == 0 && l.err != nil:
		for i := range row.Cells {
			row.Cells[i] = results.Cell{Text: "failed"}
		}
	case 2*stopped > len(l.slices):
		for i := range row.Cells[:len(row.Cells)-1] {
			row.Cells[i] = results.Cell{Text: cannotKeepUp}
		}
	case stopped > 0:
		row.Note = fmt.Sprintf("stopped at twice the slice's length in %d of %d slices: the calls that were left count as late as they were then", stopped, len(l.slices))
	}
	return row
}

// tailTarget compares the tail of Next with that of the empty loop, slice by slice. On a
// machine whose stalls are the empty loop's tail, it shows that Next adds none, and
// nothing about the time of a call: the cost section shows that.
func tailTarget(next, empty *line) results.Target {
	t := results.Target{ID: "latency-tail", Text: "p99.9 at 1 million IDs per second: at most 2× that of the empty loop", Unit: "×", Want: 2, AtMost: true}
	tails := func(l *line) measure.Samples {
		s := measure.Samples{Disturbed: l.disturbed}
		for _, one := range l.slices {
			s.Wall = append(s.Wall, microseconds(one.ValueAtPercentile(100*tail.q)))
		}
		return s
	}
	return measure.Compare(tails(next), tails(empty)).Judge(t)
}

func latencyVerdict(s results.Section) string {
	t := s.Table("latency-1000000")
	next, empty := t.Cell(ceilingName, tail.column), t.Cell("empty loop", tail.column)
	if len(next.Samples) == 0 || len(empty.Samples) == 0 {
		return ""
	}
	said := fmt.Sprintf("At a million IDs per second, p99.9 of Next is %s µs, and of the empty loop %s µs", results.Figure(next.Median()), results.Figure(empty.Median()))
	var slow []string
	for _, row := range t.Rows {
		if row.Cells[0].Text == cannotKeepUp {
			slow = append(slow, row.Name)
		}
	}
	if len(slow) > 0 {
		said += "; " + results.List(slow) + " cannot keep up"
	}
	return said + "."
}
