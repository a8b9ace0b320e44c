package speed

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tickflake/tickflake/bench/generators"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/snowflake"
)

func latencySection() measure.Section {
	return measure.Section{ID: "latency", Title: "Latency at a fixed rate", Full: 30 * time.Second, Quick: 2 * time.Second,
		About: "One goroutine asks for IDs on a fixed schedule. A latency is the time from the moment when a call was due to its ID, " +
			"so a stall shows in all calls that queue behind it. Waiting is reading the clock, so a whole core is in use; the empty loop, which makes no ID, " +
			"shows the stalls of the machine. A quantile has a sample per as many slices of the schedule as have 5 slower calls.",
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

// A histogram holds latencies from 1 ns to a minute with three significant digits.
const longest = int64(time.Minute)

func histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, 3) }

// line is a load with the latencies of its turns.
type line struct {
	*measure.Load
	slices []*hdrhistogram.PackedHistogram
}

// newLine makes a load of a turn that records latencies, and returns how many IDs per second it
// reached and whether it was stopped.
func newLine(row, at string, group report.Group, err error, turn func(record func(time.Duration)) (reached float64, stopped bool, err error)) *line {
	l := &line{Load: &measure.Load{Row: row, At: at, Group: group, Samples: measure.Samples{Err: err}}}
	all := histogram()
	l.Turn = func(context.Context) (measure.Figures, error) {
		all.Reset()
		reached, stopped, err := turn(func(late time.Duration) { _ = all.RecordValue(min(max(int64(late), 0), longest)) }) // it is in the range
		if err != nil {
			return nil, err
		}
		packed := hdrhistogram.NewPacked(1, longest, 3)
		packed.MergeFrom(all)
		l.slices = append(l.slices, packed)
		f := measure.Figures{"reached": reached, "wall": float64(packed.ValueAtPercentile(99.9)), "stopped": 0}
		if stopped {
			f["stopped"] = 1
		}
		return f, nil
	}
	return l
}

// counting are the slices of the rounds that are whole: the first turn was to warm up.
func (l *line) counting() []*hdrhistogram.PackedHistogram {
	rounds := len(l.Figures["reached"])
	if rounds == 0 {
		return nil
	}
	return l.slices[1 : 1+rounds]
}

func merge(slices []*hdrhistogram.PackedHistogram) *hdrhistogram.Histogram {
	all := histogram()
	for _, s := range slices {
		s.MergeInto(all)
	}
	return all
}

// quantile is a share of the calls, with the column that shows it.
type quantile struct {
	column, title string
	oneIn         float64 // calls of which one is slower
}

var quantiles = []quantile{{"p50", "p50", 2}, {"p90", "p90", 10}, {"p99", "p99", 100}, {"p999", "p99.9", 1000}, {"p9999", "p99.99", 10_000}}

// cell has samples of the quantile, in microseconds. Each is of as many consecutive slices as
// together have 5 calls beyond the quantile, or of all slices if they have not.
func (q quantile) cell(l *line) report.Cell {
	slices := l.counting()
	calls := 0.0
	for _, s := range slices {
		calls += float64(s.TotalCount())
	}
	if calls < q.oneIn && len(slices) > 0 {
		return report.Cell{Text: "fewer than " + report.Figure(q.oneIn) + " calls"}
	}
	groups := min(max(int(calls/q.oneIn/5), 1), len(slices))
	var c report.Cell
	for i := range groups {
		merged := merge(slices[i*len(slices)/groups : (i+1)*len(slices)/groups])
		c.Samples = append(c.Samples, float64(merged.ValueAtQuantile(100*(1-1/q.oneIn)))/1e3)
	}
	return c
}

// latencyTable has a row per line.
func latencyTable(t report.Table, lines []*line) report.Table {
	for _, q := range quantiles {
		t.Columns = append(t.Columns, report.Column{ID: q.column, Title: q.title, Unit: "µs", Better: report.Less})
	}
	t.Columns = append(t.Columns, report.Column{ID: "longest", Title: "longest", Unit: "µs", Better: report.Less}, report.Column{ID: "reached", Title: "reached", Unit: "IDs/s", Better: report.More})
	for _, l := range lines {
		row := report.Row{Name: l.Row, Group: l.Group}
		for _, q := range quantiles {
			row.Cells = append(row.Cells, q.cell(l))
		}
		slices := l.counting()
		row.Cells = append(row.Cells, report.One(float64(merge(slices).Max())/1e3), l.Of("reached", nil))
		stopped := 0
		for _, s := range l.Figures["stopped"] {
			stopped += int(s)
		}
		for i := range row.Cells[:len(row.Cells)-1] {
			switch {
			case len(slices) == 0:
				row.Cells[i] = l.Of("reached", nil)
			case 2*stopped > len(slices):
				row.Cells[i] = report.Cell{Text: cannotKeepUp}
			}
		}
		if 0 < stopped && 2*stopped <= len(slices) {
			row.Note = fmt.Sprintf("stopped at twice the slice's length in %d of %d slices: the calls that were left count as late as they were then", stopped, len(slices))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
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
	var lines []*line
	for _, rate := range rates {
		gap := time.Second / time.Duration(rate.perSecond)
		calls := max(int(float64(budget)*rate.share/float64(latencyRounds*len(cases))/float64(gap)), 1)
		for i, c := range cases {
			var loop generators.Loop
			if errs[i] == nil {
				loop = sources[i].Loop()
			}
			lines = append(lines, newLine(c.Name, fmt.Sprintf("%d IDs/s", rate.perSecond), c.Group, errs[i], func(record func(time.Duration)) (float64, bool, error) {
				if _, _, err := (schedule{gap, calls / 16}).run(loop, func(time.Duration) {}); err != nil {
					return 0, false, err
				}
				done, took, err := schedule{gap, calls}.run(loop, record)
				return float64(done) / took.Seconds(), done < calls, err
			}))
		}
	}
	next, empty := lines[len(lines)-len(cases)+1], lines[len(lines)-len(cases)]
	next.Base = empty.Load
	var loads []*measure.Load
	for _, l := range lines {
		loads = append(loads, l.Load)
	}
	run.Measure(ctx, 3, 0, loads...)
	measure.Failed(&s, loads)
	for i, rate := range rates {
		per := report.Figure(float64(rate.perSecond))
		id := fmt.Sprint("latency-", rate.perSecond)
		s.Tables = append(s.Tables, latencyTable(report.Table{ID: id, Title: per + " IDs per second: time from when a call was due to its ID", RowName: "case", Base: cases[0].Name,
			Detail: rate.perSecond < 1_000_000}, lines[i*len(cases):(i+1)*len(cases)]))
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

func latencyVerdict(s report.Section) string {
	t := s.Table("latency-1000000")
	next, empty := t.Cell(ceilingName, "p999"), t.Cell("empty loop", "p999")
	if len(next.Samples) == 0 || len(empty.Samples) == 0 {
		return ""
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
