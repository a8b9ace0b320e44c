package speed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/snowflake"
)

func latencySection() measure.Section {
	return measure.Section{ID: "latency", Title: "Latency at a fixed rate", Full: 12 * time.Second, Quick: time.Second,
		About: "One goroutine asks for IDs on a fixed schedule. A latency is the time from the moment when a call was due to its ID, " +
			"so a stall shows in all calls that queue behind it. Waiting is reading the clock, so a whole core is in use; the empty loop, which makes no ID, " +
			"shows the stalls of the machine. A quantile is that of one turn of the schedule, and its figure the median of all turns.",
		Measure: measureLatency}
}

const (
	rate              = 1_000_000 // calls per second
	gap               = time.Second / rate
	latencyRounds     = report.Enough + 6 // planned: enough for a target, and some for lead-ins and a busy machine
	leasedDefaultName = "Next under a lease, default layout"
	cannotKeepUp      = "cannot keep up"
)

// quantiles are shares of the calls, with the columns that show them.
var quantiles = []struct {
	column, title string
	oneIn         int // calls of which one is slower
}{{"p50", "p50", 2}, {"p90", "p90", 10}, {"p99", "p99", 100}, {"p999", "p99.9", 1000}}

// late makes a load of the schedule, whose turns have the quantiles and the greatest of the latencies in µs, and how
// many IDs per second were reached.
func late(c generators.Case, calls int, source generators.Source, failed error) *measure.Load {
	l := &measure.Load{Row: c.Name, Group: c.Group, Err: failed}
	if failed != nil {
		return l
	}
	loop, all := source.Loop(), make([]time.Duration, calls)
	l.Turn = func(context.Context) (measure.Figures, error) {
		if _, err := schedule(loop, all[:calls/16]); err != nil {
			return nil, err
		}
		reached, err := schedule(loop, all)
		if err != nil {
			return nil, err
		}
		slices.Sort(all)
		f := measure.Figures{"reached": reached, "longest": float64(all[calls-1].Nanoseconds()) / 1e3}
		for _, q := range quantiles {
			f[q.column] = float64(all[calls-1-calls/q.oneIn].Nanoseconds()) / 1e3
		}
		return f, nil
	}
	return l
}

// latencyTable has a row per load.
func latencyTable(loads []*measure.Load) report.Table {
	t := report.Table{ID: fmt.Sprint("latency-", rate), Title: report.Figure(rate) + " IDs per second: time from when a call was due to its ID", RowName: "case", Base: loads[0].Row}
	for _, q := range quantiles {
		t.Columns = append(t.Columns, report.Column{ID: q.column, Title: q.title, Unit: "µs", Better: report.Less})
	}
	t.Columns = append(t.Columns, report.Column{ID: "longest", Title: "longest", Unit: "µs", Better: report.Less}, report.Column{ID: "reached", Title: "reached", Unit: "IDs/s", Better: report.More})
	t = measure.Rows(t, loads, func(l *measure.Load, column string) report.Cell {
		cell := l.Of(column, nil)
		switch reached := l.Of("reached", nil).Median(); {
		case column != "reached" && reached < rate/2: // its turns were given up
			return report.Cell{Text: cannotKeepUp}
		case column == "longest" && len(cell.Samples) > 0:
			return report.One(slices.Max(cell.Samples))
		}
		return cell
	})
	next, empty, slow := t.Cell(ceilingName, "p999"), t.Cell(loads[0].Row, "p999"), ""
	for _, row := range t.Rows {
		if row.Cells[0].Text == cannotKeepUp {
			slow += "; " + row.Name + " cannot keep up"
		}
	}
	t.Say("At a million IDs per second, p99.9 of Next is %s µs, and of the empty loop %s µs%s.", next, empty, slow)
	if empty.Median() >= tooLate {
		t.Say("The machine was too disturbed to compare generators: p99.9 of the empty loop is %s µs.", empty)
	}
	return t
}

// tooLate is the p99.9 of the empty loop, in microseconds, from which on it is a thousand calls behind: then
// the machine decides who keeps up.
const tooLate = 1000

func measureLatency(ctx context.Context, run *measure.Run) (s report.Section) {
	cases := append([]generators.Case{
		generators.EmptyLoop, generators.Next(ceilingName, snowflake.Default()), generators.Leased(leasedDefaultName, snowflake.Default()),
	}, generators.Others(generators.Bwmarrin, generators.Sonyflake, "rs/xid", "MongoDB ObjectID", "google/uuid v7")...)
	calls := max(int(time.Until(run.Until)/gap)/latencyRounds/len(cases), 1000) // of which one is slower than p99.9
	set := &generators.Set{}
	for _, c := range cases {
		source, err := set.Open(ctx, c)
		set.Loads = append(set.Loads, late(c, calls, source, err))
	}
	next := set.Loads[1]
	next.Base = set.Loads[0]
	run.Measure(ctx, measure.Pick(run, 1, 3), 0, set.Loads...)
	s.Tables = []report.Table{latencyTable(set.Loads)}
	// On a machine whose stalls are the empty loop's tail, it shows that Next adds none, and
	// nothing about the time of a call: the cost section shows that.
	s.Targets = []report.Target{next.Pair("p999").Judge(report.Target{ID: "latency-tail", Text: "p99.9 at 1 million IDs per second: at most 2× that of the empty loop", Unit: "×", Want: 2, AtMost: true})}
	set.End(&s)
	return s
}

// schedule makes a call after each gap, when it is due, and notes how late each ended. A call that is due during
// another one is made at the end of that one, and counts from the moment when it was due: a stall shows in all
// calls that queue behind it. Waiting is reading the clock.
//
// At twice the schedule's length it gives up. The calls that are left are as late as they are by then, which is less
// than they would have been. reached is calls per second, until the schedule's end or that of the last call, whichever
// is later.
func schedule(call generators.Loop, late []time.Duration) (reached float64, err error) {
	begin, length := time.Now(), time.Duration(len(late))*gap
	t, done := time.Duration(0), 0
	for i := range late {
		due := time.Duration(i) * gap
		if t <= 2*length {
			for t < due {
				t = time.Since(begin)
			}
			if err := call(1); err != nil {
				return 0, err
			}
			t, done = time.Since(begin), i+1
		}
		late[i] = t - due
	}
	return float64(done) / max(t, length).Seconds(), nil
}
