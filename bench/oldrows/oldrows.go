// Package oldrows measures how fast rows from before get the IDs of their own times, beside Compose in a loop.
package oldrows

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/postgres"
)

// Sections returns the section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "old", Title: "IDs for old rows", Full: 5 * time.Minute, Quick: 3 * time.Second,
		About: "Rows of which the second is known get the IDs of their times: a hundred million of ten years, or 200,000 of five weeks in a quick run, by one process each, in the order of time and shuffled. " +
			"The cases take turns of a hundredth of the rows, in random order, until all have IDs or the section's five minutes are up: the title of the table says how many rows each case got to. Compose gets a node number, the instant and a counter, and nothing keeps its IDs from meeting others. " +
			"OpenPast has its defaults: buckets of a day, lanes of 16, and 64 MB. PostgreSQL has its default settings.",
		Measure: measureOld}}
}

const (
	tenYears = 10 * 365 * 24 * time.Hour
	turns    = 100
	node     = 1023
	composed = "Compose in a loop"
	inFiles  = "OpenPast, a directory"
)

// table are the rows of a load, and where it is in them.
type table struct {
	begin         time.Time // the instant of the first
	between       time.Duration
	rows, step, n int
}

// next is the instant of the next row, to the second.
func (t *table) next() time.Time {
	i := t.n * t.step % t.rows
	t.n++
	return t.begin.Add(time.Duration(i) * t.between).Truncate(time.Second)
}

// load gives a part of the rows their IDs in each turn. writes are those to the store until then.
func (t table) load(row, order string, group report.Group, id func(context.Context, time.Time) (snowflake.ID, error), writes func() float64) *measure.Load {
	return &measure.Load{Row: row, At: order, Group: group, Served: true, Turn: func(ctx context.Context) (measure.Figures, error) {
		began := time.Now()
		for range t.rows / turns {
			if _, err := id(ctx, t.next()); err != nil {
				return nil, err
			}
		}
		return measure.Figures{"rate": float64(t.rows/turns) / time.Since(began).Seconds(), "writes": writes()}, nil
	}}
}

func measureOld(ctx context.Context, run *measure.Run) (s report.Section) {
	started, stop := servers.All(ctx, servers.Wanted{Kind: servers.Directory}, servers.Wanted{Kind: servers.PostgreSQL})
	defer func() { _ = stop() }() // on a panic
	span, rows := measure.Pick(run, tenYears/turns, tenYears), measure.Pick(run, 200_000, 100_000_000)
	layout := snowflake.Default()
	layout.Epoch = time.Now().Add(-span - time.Hour).UTC().Truncate(time.Second)
	var loads []*measure.Load
	for _, order := range []string{"sorted", "shuffled"} {
		step := 1
		if order == "shuffled" {
			step = 61_803_399 // a prime
		}
		t := table{begin: layout.Epoch, between: span / time.Duration(rows), rows: rows, step: step}
		sequence := int64(0)
		loads = append(loads, t.load(composed, order, report.Floor, func(_ context.Context, at time.Time) (snowflake.ID, error) {
			sequence = (sequence + 1) % 4096
			return layout.Compose(at, node, sequence)
		}, func() float64 { return 0 }))
		for _, server := range started {
			name, url := inFiles, server.URL+order
			if server.Kind == servers.PostgreSQL {
				name, url = "OpenPast, PostgreSQL", server.At(server.Addr, "namespace="+order)
			}
			old, err := openPast(ctx, url, layout, server.Err)
			if err != nil {
				s.Note("%s: %s.", name, servers.Reason(err))
				continue
			}
			defer func() { _ = old.Close() }()
			loads = append(loads, t.load(name, order, report.Ours, old.At, func() float64 { return float64(old.Stats().Lanes) }))
		}
	}
	run.Measure(ctx, 1, turns-1, loads...)
	measure.Failed(&s, loads)
	out := report.Table{ID: "old-rows", RowName: "way", Base: composed,
		Columns: []report.Column{{ID: "sorted", Title: "sorted", Unit: "rows/s", Better: report.More}, {ID: "shuffled", Title: "shuffled", Unit: "rows/s", Better: report.More}}}
	writes := measure.Grid(out, loads, func(l *measure.Load) report.Cell {
		all := l.Of("writes", nil)
		if len(all.Samples) == 0 {
			return all
		}
		return report.One(slices.Max(all.Samples))
	})
	out = measure.Grid(out, loads, func(l *measure.Load) report.Cell { return l.Of("rate", nil) })
	for _, c := range writes.Columns {
		out.Columns = append(out.Columns, report.Column{ID: "writes-" + c.ID, Title: "writes to the store, " + c.ID, Better: report.Less})
	}
	for i := range out.Rows {
		out.Rows[i].Cells = append(out.Rows[i].Cells, writes.Rows[i].Cells...)
	}
	done := report.Figure(float64((1 + len(loads[0].Disturbed)) * (rows / turns)))
	out.Title = done + " rows"
	out.Say("With a directory, %s sorted rows get their IDs at %s per second by %s writes, shuffled ones at %s by %s.", done,
		out.Cell(inFiles, "sorted"), out.Cell(inFiles, "writes-sorted"), out.Cell(inFiles, "shuffled"), out.Cell(inFiles, "writes-shuffled"))
	s.Tables = []report.Table{out}
	return s
}

// openPast creates a fleet with a past number, unless err says that there is no server, and opens its past.
func openPast(ctx context.Context, url string, l snowflake.Layout, err error) (*generator.Past, error) {
	if err != nil {
		return nil, err
	}
	store, err := stores.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	err = lease.SetFleet(ctx, store, lease.Fleet{Layout: l, From: 0, To: node, Past: []lease.Past{{From: node, To: node}}})
	if err = errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	return generator.OpenPast(ctx, url, generator.WithPastUnit(time.Second))
}
