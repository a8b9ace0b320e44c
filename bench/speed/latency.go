package speed

import (
	"context"
	"errors"
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
			"so a stall shows in all calls that queue behind it. sony/sonyflake, whose format has 25,600 IDs per second, cannot take part. Waiting is reading the clock, so a whole core is in use; the empty loop, which makes no ID, " +
			"shows the stalls of the machine. A quantile is that of one turn of the schedule, and its figure the median of all turns.",
		Measure: measureLatency}
}

const (
	rate              = 1_000_000 // calls per second
	gap               = time.Second / rate
	latencyRounds     = report.Enough + 6 // planned: enough for a target, and some for lead-ins and a busy machine
	leasedDefaultName = "Next under a lease, default layout"
)

// quantiles are the columns, and of how many calls one is slower.
var quantiles = []struct {
	column string
	oneIn  int
}{{"p50", 2}, {"p99", 100}, {"p99.9", 1000}}

// late makes a load of the schedule, whose turns have the quantiles of the latencies in µs.
func late(c generators.Case, calls int, source generators.Source, failed error) *measure.Load {
	l := &measure.Load{Row: c.Name, Group: c.Group, Err: failed}
	if failed != nil {
		return l
	}
	loop, all := source.Loop(), make([]time.Duration, calls)
	l.Turn = func(context.Context) (measure.Figures, error) {
		if err := errors.Join(schedule(loop, all[:calls/16]), schedule(loop, all)); err != nil {
			return nil, err
		}
		slices.Sort(all)
		f := measure.Figures{}
		for _, q := range quantiles {
			f[q.column] = float64(all[calls-1-calls/q.oneIn].Nanoseconds()) / 1e3
		}
		return f, nil
	}
	return l
}

// latencyTable has a row per load.
func latencyTable(loads []*measure.Load) report.Table {
	t := report.Table{ID: "latency", Title: report.Figure(rate) + " IDs per second: time from when a call was due to its ID", RowName: "case", Base: loads[0].Row}
	for _, q := range quantiles {
		t.Columns = append(t.Columns, report.Column{ID: q.column, Title: q.column, Unit: "µs", Better: report.Less})
	}
	t = measure.Rows(t, loads, (*measure.Load).Of)
	t.Say("At a million IDs per second, p99.9 of Next is %s µs, and of the empty loop %s µs.", t.Cell(ceilingName, "p99.9"), t.Cell(loads[0].Row, "p99.9"))
	return t
}

func measureLatency(ctx context.Context, run *measure.Run) (s report.Section) {
	cases := append([]generators.Case{
		generators.EmptyLoop, generators.Next(ceilingName, snowflake.Default()), generators.Leased(leasedDefaultName, snowflake.Default()),
	}, generators.Others(generators.Bwmarrin, "rs/xid", "MongoDB ObjectID", "google/uuid v7")...)
	calls := max(int(time.Until(run.Until)/gap)/latencyRounds/len(cases), 1000) // of which one is slower than p99.9
	set := &generators.Set{}
	for _, c := range cases {
		source, err := set.Open(ctx, c)
		set.Loads = append(set.Loads, late(c, calls, source, err))
	}
	set.Loads[1].Base = set.Loads[0]
	run.Measure(ctx, measure.Pick(run, 1, 3), 0, set.Loads...)
	s.Tables = []report.Table{latencyTable(set.Loads)}
	// On a machine whose stalls are the empty loop's tail, it shows that Next adds none, and
	// nothing about the time of a call: the cost section shows that.
	s.Targets = []report.Target{{ID: "latency-tail", Text: "p99.9 at 1 million IDs per second: at most 2× that of the empty loop", Unit: "×", Want: 2, AtMost: true, Got: set.Loads[1].Pair("p99.9")}}
	set.End(&s)
	return s
}

// schedule makes a call after each gap, when it is due, and notes how late each ended. A call that is due during
// another one is made at the end of that one, and counts from the moment when it was due: a stall shows in all
// calls that queue behind it. Waiting is reading the clock.
func schedule(call generators.Loop, late []time.Duration) error {
	begin := time.Now()
	for i := range late {
		due := time.Duration(i) * gap
		for time.Since(begin) < due {
		}
		if err := call(1); err != nil {
			return err
		}
		late[i] = time.Since(begin) - due
	}
	return nil
}
