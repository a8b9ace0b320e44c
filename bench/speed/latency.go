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
	return measure.Section{ID: "latency", Title: "Latency at a fixed rate", Full: 22 * time.Second, Quick: 4 * time.Second, Measure: measureLatency}
}

const aboutLatency = `IDs are asked for on a fixed schedule, one call after the other in one goroutine, and a latency is the time from when a call was due to when its ID was there. A call that is late is made as soon as the one before it is over, and is not left out, so a stall is seen in all the calls that queue behind it. Waiting for the next call is reading the clock, for every case and at every rate, so a whole core is in use, and what the system takes from it is in all figures: the empty loop, which makes no ID, shows how much that is, with the reading of the clock itself. Where stalls of the machine make up its tail, a tail like it says that a case adds no stall of its own; what a call takes is in the section on cost. Each slice of a schedule runs after a sixteenth of it that is not recorded; slices take turns in random order. A quantile has a sample per slice, or per as many slices as have 5 slower calls between them, or one of all; the longest is of all slices. Who has not caught up at twice a slice's length is stopped there, and cannot keep up if that is so in most slices.`

// rates are the calls per second, with how much of a round's time each gets: the slower,
// the more, or there would be too few calls to see their slowest.
var rates = []struct {
	perSecond int
	share     float64
}{{10_000, 0.55}, {100_000, 0.25}, {1_000_000, 0.2}}

// latencyRounds is how many rounds are planned for: enough for a target, and some that
// are used up by lead-ins, by cases that are too slow, and by a busy machine.
const latencyRounds = enough + 6

const (
	emptyName         = "empty loop"
	leasedDefaultName = "Next under a lease, default layout"
)

// emptyLoop makes no ID.
func emptyLoop() cases.Case {
	return cases.Case{Name: emptyName, Group: results.Floor, Open: func(context.Context) (cases.Source, error) {
		return cases.Source{Issue: func() (id cases.ID, err error) { return id, nil }}, nil
	}}
}

// line is what was recorded of one case at one rate, by slice.
type line struct {
	opened
	schedule schedule
	slices   []*hdrhistogram.PackedHistogram
	reached  []float64 // IDs per second, by slice
	stopped  []bool    // before it had caught up, by slice
}

func measureLatency(ctx context.Context, run *measure.Run) results.Section {
	began := time.Now()
	all := open(ctx, []cases.Case{
		emptyLoop(), cases.Next(ceilingName, snowflake.Default()), cases.Leased(leasedDefaultName, snowflake.Default()),
		cases.Bwmarrin(), cases.Sonyflake(), cases.XID(), cases.ObjectID(), cases.GoogleV7(),
	})
	var lines []*line
	var names []string
	for _, rate := range rates {
		gap := time.Second / time.Duration(rate.perSecond)
		slice := time.Duration(float64(run.Budget) * rate.share / float64(latencyRounds*len(all)))
		for _, o := range all {
			lines = append(lines, &line{opened: o, schedule: schedule{gap: gap, calls: max(int(slice/gap), 1)}})
			names = append(names, fmt.Sprintf("%s at %s IDs/s", o.Name, results.Figure(float64(rate.perSecond))))
		}
	}
	r := newRecorder()
	rounds := run.Rounds(ctx, began, 3, names, func(i int) { lines[i].runSlice(r) })

	s := results.Section{
		ID: "latency", Title: "Latency at a fixed rate", About: aboutLatency, Command: "go run ./bench --only latency",
		Notes: closeAll(all),
	}
	for _, l := range lines {
		l.keep(rounds)
		if l.err != nil {
			s.Notes = append(s.Notes, fmt.Sprintf("%s failed: %v.", l.Name, l.err))
		}
	}
	for i, rate := range rates {
		table, chart := latencyTable(rate.perSecond, lines[i*len(all):(i+1)*len(all)])
		s.Tables, s.Charts = append(s.Tables, table), append(s.Charts, chart)
	}
	fastest := lines[len(lines)-len(all):]
	s.Targets = []results.Target{tailTarget(fastest)}
	s.Verdict = latencyVerdict(s.Tables)
	return s
}

// started is what the clock of the schedules is read against.
var started = time.Now()

func sinceStart() time.Duration { return time.Since(started) }

// runSlice runs the schedule once, after a lead-in, and keeps what was recorded.
func (l *line) runSlice(r recorder) {
	if l.err != nil {
		return
	}
	runtime.GC()
	issue := func() error {
		_, err := l.source.Issue()
		return err
	}
	lead := schedule{l.schedule.gap, l.schedule.calls / 16}
	if l.err = lead.run(sinceStart, issue, func(time.Duration) {}).err; l.err != nil {
		return
	}
	r.slice.Reset()
	out := l.schedule.run(sinceStart, issue, r.record)
	if l.err = out.err; l.err != nil {
		return
	}
	l.slices = append(l.slices, r.take())
	l.reached = append(l.reached, float64(out.done)/out.took.Seconds())
	l.stopped = append(l.stopped, out.done < l.schedule.calls)
}

// keep drops what is not of the first rounds.
func (l *line) keep(rounds int) {
	n := min(rounds, len(l.slices))
	l.slices, l.reached, l.stopped = l.slices[:n], l.reached[:n], l.stopped[:n]
}

// timesStopped is in how many slices it had not caught up.
func (l *line) timesStopped() int {
	n := 0
	for _, s := range l.stopped {
		if s {
			n++
		}
	}
	return n
}

func latencyTable(rate int, lines []*line) (results.Table, results.Chart) {
	per := results.Figure(float64(rate))
	t := results.Table{
		ID: fmt.Sprintf("latency-%d", rate), Title: per + " IDs per second: time from when a call was due to its ID",
		RowName: "case", Base: emptyName,
	}
	for _, q := range quantiles {
		t.Columns = append(t.Columns, results.Column{ID: q.column, Title: q.title, Unit: "µs", Better: results.Less, X: q.oneIn()})
	}
	t.Columns = append(t.Columns,
		results.Column{ID: "longest", Title: "longest", Unit: "µs", Better: results.Less},
		results.Column{ID: "reached", Title: "reached", Unit: "IDs/s", Better: results.More})
	chart := results.Chart{
		ID: t.ID, Title: fmt.Sprintf("Latency at %s IDs per second", per), Kind: results.Lines, Table: t.ID,
		XLabel: "one call in so many is slower", YLabel: "µs", LogX: true, LogY: true,
	}
	for _, q := range quantiles {
		chart.Columns = append(chart.Columns, q.column)
	}
	for _, l := range lines {
		t.Rows = append(t.Rows, l.tableRow())
	}
	return t, chart
}

const cannotKeepUp = "cannot keep up"

func (l *line) tableRow() results.Row {
	row := l.row()
	for _, q := range quantiles {
		row.Cells = append(row.Cells, q.cell(l.slices))
	}
	row.Cells = append(row.Cells, longestOf(l.slices), results.Cell{Samples: l.reached})
	stopped := l.timesStopped()
	switch {
	case len(l.slices) == 0 && l.err != nil:
		for i := range row.Cells {
			row.Cells[i] = results.Cell{Text: "failed"}
		}
	case 2*stopped > len(l.slices):
		for i := range row.Cells[:len(row.Cells)-1] {
			row.Cells[i] = results.Cell{Text: cannotKeepUp}
		}
		row.Note = fmt.Sprintf("it was stopped at twice the slice's length in %d of %d slices", stopped, len(l.slices))
		if l.Limit.Binds() {
			row.Note += fmt.Sprintf("; its format allows %v", l.Limit)
		}
	case stopped > 0:
		row.Note = fmt.Sprintf("it had not caught up at twice the slice's length in %d of %d slices: the calls that were left count as late as they were then", stopped, len(l.slices))
	}
	return row
}
