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
	return measure.Section{ID: "latency", Title: "Latency at a fixed rate", Full: 30 * time.Second, Quick: 2 * time.Second,
		About: "One goroutine asks for IDs on a fixed schedule. A latency is the time from the moment when a call was due to its ID, " +
			"so a stall shows in all calls that queue behind it. Waiting is reading the clock, so a whole core is in use; the empty loop, which makes no ID, " +
			"shows the stalls of the machine. A quantile is that of one turn of the schedule, and its figure the median of all turns.",
		Measure: measureLatency, Verdict: latencyVerdict}
}

// rates are the calls per second, with the share of a round's time that each gets: the
// slower, the more, to see the slowest calls.
var rates = []struct {
	perSecond int
	share     float64
}{{10_000, 0.55}, {100_000, 0.25}, {1_000_000, 0.2}}

const (
	latencyRounds     = report.Enough + 6 // planned: enough for a target, and some for lead-ins and a busy machine
	leasedDefaultName = "Next under a lease, default layout"
	cannotKeepUp      = "cannot keep up"
)

// quantiles are shares of the calls, with the columns that show them.
var quantiles = []struct {
	column, title string
	oneIn         int // calls of which one is slower
}{{"p50", "p50", 2}, {"p90", "p90", 10}, {"p99", "p99", 100}, {"p999", "p99.9", 1000}}

// late makes a load of the schedule, whose turns have the quantiles and the greatest of the latencies in µs, how many IDs
// per second were reached, and whether the turn was stopped.
func late(c generators.Case, at schedule, source generators.Source, failed error) *measure.Load {
	l := &measure.Load{Row: c.Name, At: at.String(), Group: c.Group, Err: failed}
	if failed != nil {
		return l
	}
	loop, all := source.Loop(), make([]time.Duration, 0, at.calls)
	l.Turn = func(context.Context) (measure.Figures, error) {
		if _, _, err := (schedule{at.gap, at.calls / 16}).run(loop, func(time.Duration) {}); err != nil {
			return nil, err
		}
		all = all[:0]
		done, took, err := at.run(loop, func(late time.Duration) { all = append(all, late) })
		if err != nil {
			return nil, err
		}
		slices.Sort(all)
		f := measure.Figures{"reached": float64(done) / took.Seconds(), "stopped": 0}
		if done < at.calls {
			f["stopped"] = 1
		}
		for _, q := range quantiles {
			f[q.column] = float64(all[len(all)-1-len(all)/q.oneIn].Nanoseconds()) / 1e3
		}
		f["wall"], f["longest"] = f["p999"], float64(all[len(all)-1].Nanoseconds())/1e3
		return f, nil
	}
	return l
}

// latencyTable has a row per load of a schedule.
func latencyTable(at schedule, loads []*measure.Load) report.Table {
	t := report.Table{ID: fmt.Sprint("latency-", at.rate()), Title: report.Figure(float64(at.rate())) + " IDs per second: time from when a call was due to its ID", RowName: "case",
		Base: loads[0].Row, Detail: at.rate() < 1_000_000}
	for _, q := range quantiles {
		t.Columns = append(t.Columns, report.Column{ID: q.column, Title: q.title, Unit: "µs", Better: report.Less})
	}
	t.Columns = append(t.Columns, report.Column{ID: "longest", Title: "longest", Unit: "µs", Better: report.Less}, report.Column{ID: "reached", Title: "reached", Unit: "IDs/s", Better: report.More})
	return measure.Rows(t, loads, func(l *measure.Load, column string) report.Cell {
		cell := l.Of(column, nil)
		switch stopped := l.Of("stopped", nil).Median(); {
		case column != "reached" && stopped > 0.5:
			return report.Cell{Text: cannotKeepUp}
		case column == "longest" && len(cell.Samples) > 0:
			return report.One(slices.Max(cell.Samples))
		}
		for _, q := range quantiles {
			if q.column == column && at.calls < q.oneIn {
				return report.Cell{Text: "fewer than " + report.Count(q.oneIn, "call")}
			}
		}
		return cell
	})
}

func measureLatency(ctx context.Context, run *measure.Run) (s report.Section) {
	budget := time.Until(run.Until)
	cases := append([]generators.Case{
		generators.EmptyLoop, generators.Next(ceilingName, snowflake.Default()), generators.Leased(leasedDefaultName, snowflake.Default()),
	}, generators.Others(generators.Bwmarrin, generators.Sonyflake, "rs/xid", "MongoDB ObjectID", "google/uuid v7")...)
	var open measure.Closers
	sources, errs := make([]generators.Source, len(cases)), make([]error, len(cases))
	for i, c := range cases {
		if sources[i], errs[i] = c.Open(ctx); sources[i].Close != nil {
			open.Add(sources[i].Close)
		}
	}
	var loads []*measure.Load
	var schedules []schedule
	for _, rate := range rates {
		at := schedule{gap: time.Second / time.Duration(rate.perSecond)}
		at.calls = max(int(float64(budget)*rate.share/float64(latencyRounds*len(cases))/float64(at.gap)), 1)
		schedules = append(schedules, at)
		for i, c := range cases {
			loads = append(loads, late(c, at, sources[i], errs[i]))
		}
	}
	next, empty := loads[len(loads)-len(cases)+1], loads[len(loads)-len(cases)]
	next.Base = empty
	run.Measure(ctx, measure.Pick(run, 1, 3), 0, loads...)
	measure.Failed(&s, loads)
	for i, at := range schedules {
		s.Tables = append(s.Tables, latencyTable(at, loads[i*len(cases):(i+1)*len(cases)]))
	}
	// On a machine whose stalls are the empty loop's tail, it shows that Next adds none, and
	// nothing about the time of a call: the cost section shows that.
	s.Targets = []report.Target{next.Pair().Judge(report.Target{ID: "latency-tail", Text: "p99.9 at 1 million IDs per second: at most 2× that of the empty loop", Unit: "×", Want: 2, AtMost: true})}
	if err := open.Close(); err != nil {
		s.Note("A generator could not be closed: %v.", err)
	}
	return s
}

// schedule is when calls are due: so many, one after each gap.
type schedule struct {
	gap   time.Duration
	calls int
}

// rate is how many calls are due in a second.
func (s schedule) rate() int { return int(time.Second / s.gap) }

func (s schedule) String() string { return fmt.Sprintf("%d IDs/s", s.rate()) }

// run makes the calls when they are due, and records how long after that each ended. A
// call that is due during another one is made at the end of that one, and counts from the
// moment when it was due: a stall shows in all calls that queue behind it. Waiting is
// reading the clock.
//
// At twice the schedule's length run gives up. It records the calls that are left as late
// as they are by then, which is less than they would have been. took ends with the schedule or
// with the last call, whichever is later.
func (s schedule) run(call generators.Loop, record func(late time.Duration)) (done int, took time.Duration, err error) {
	begin, length := time.Now(), time.Duration(s.calls)*s.gap
	t := time.Duration(0)
	for i := range s.calls {
		due := time.Duration(i) * s.gap
		if t > 2*length {
			for left := i; left < s.calls; left++ {
				record(t - time.Duration(left)*s.gap)
			}
			return i, t, nil
		}
		for t < due {
			t = time.Since(begin)
		}
		if err := call(1); err != nil {
			return i, t, err
		}
		t = time.Since(begin)
		record(t - due)
	}
	return s.calls, max(t, length), nil
}

// tooLate is the p99.9 of the empty loop, in microseconds, from which on it is a thousand calls behind: then
// the machine decides who keeps up.
const tooLate = 1000

func latencyVerdict(s report.Section) string {
	t := s.Table("latency-1000000")
	next, empty := t.Cell(ceilingName, "p999"), t.Cell("empty loop", "p999")
	if len(next.Samples) == 0 || len(empty.Samples) == 0 {
		return ""
	}
	if empty.Median() >= tooLate {
		return fmt.Sprintf("The machine was too disturbed to compare generators: p99.9 of the empty loop is %s µs.", empty.Value())
	}
	said := fmt.Sprintf("At a million IDs per second, p99.9 of Next is %s µs, and of the empty loop %s µs", next.Value(), empty.Value())
	var slow []string
	for _, row := range t.Rows {
		if row.Cells[0].Text == cannotKeepUp {
			slow = append(slow, row.Name)
		}
	}
	if len(slow) > 0 {
		said += "; " + report.List(slow) + " cannot keep up"
	}
	return said + "."
}
