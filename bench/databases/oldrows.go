package databases

import (
	"context"
	"errors"
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

// oldSection measures how fast rows from before get the IDs of their own times, beside Compose in a loop.
func oldSection() measure.Section {
	return measure.Section{ID: "old", Title: "IDs for old rows", Full: 5 * time.Minute, Quick: 3 * time.Second,
		About: "Rows of which the second is known get the IDs of their times: a hundred million of ten years, or 200,000 of five weeks in a quick run, by one process each, in the order of time and shuffled. " +
			"The cases take turns of a hundredth of the rows, in random order, until all have IDs or the section's five minutes are up: the title of the table says how many rows each case got to. Compose gets a node number, the instant and a counter, and nothing keeps its IDs from meeting others. " +
			"OpenPast has its defaults: buckets of a day, lanes of 16, and 64 MB. PostgreSQL has its default settings.",
		Measure: measureOld}
}

const (
	tenYears = 10 * 365 * 24 * time.Hour
	turns    = 100
	node     = 1023
	composed = "Compose in a loop"
	inFiles  = "OpenPast, a directory"
)

// past are the rows of a load, and where it is in them.
type past struct {
	begin         time.Time // the instant of the first
	between       time.Duration
	rows, step, n int
}

// next is the instant of the next row, to the second.
func (p *past) next() time.Time {
	i := p.n * p.step % p.rows
	p.n++
	return p.begin.Add(time.Duration(i) * p.between).Truncate(time.Second)
}

// load gives a part of the rows their IDs in each turn.
func (p past) load(row, order string, group report.Group, id func(context.Context, time.Time) (snowflake.ID, error)) *measure.Load {
	return &measure.Load{Row: row, At: order, Group: group, Turn: func(ctx context.Context) (measure.Figures, error) {
		began := time.Now()
		for range p.rows / turns {
			if _, err := id(ctx, p.next()); err != nil {
				return nil, err
			}
		}
		return measure.Figures{"rate": float64(p.rows/turns) / time.Since(began).Seconds()}, nil
	}}
}

func measureOld(ctx context.Context, run *measure.Run) report.Section {
	return run.On(ctx, []servers.Wanted{{Kind: servers.Directory}, {Kind: servers.PostgreSQL}}, func(started []*servers.Server, s *report.Section) {
		span, rows := measure.Pick(run, tenYears/turns, tenYears), measure.Pick(run, 200_000, 100_000_000)
		layout := snowflake.Default()
		layout.Epoch = time.Now().Add(-span - time.Hour).UTC().Truncate(time.Second)
		var loads []*measure.Load
		for order, step := range map[string]int{"sorted": 1, "shuffled": 61_803_399} { // a prime
			p := past{begin: layout.Epoch, between: span / time.Duration(rows), rows: rows, step: step}
			sequence := int64(0)
			loads = append(loads, p.load(composed, order, report.Floor, func(_ context.Context, at time.Time) (snowflake.ID, error) {
				sequence = (sequence + 1) % 4096
				return layout.Compose(at, node, sequence)
			}))
			for _, server := range started {
				if server.Err != nil {
					continue
				}
				name, url := inFiles, server.URL+order
				if server.Kind == servers.PostgreSQL {
					name, url = "OpenPast, PostgreSQL", server.At(server.Addr, "namespace="+order)
				}
				old, err := openPast(ctx, url, layout)
				if err != nil {
					s.Note("%s: %s.", name, servers.Reason(err))
					continue
				}
				defer func() { _ = old.Close() }()
				loads = append(loads, p.load(name, order, report.Ours, old.At))
			}
		}
		run.Measure(ctx, 1, turns-1, loads...)
		measure.Failed(s, loads)
		s.Tables = []report.Table{oldTable(loads, report.Figure(float64((1+loads[0].Rounds)*(rows/turns))))}
	})
}

// oldTable has the rates of the loads, which have got to so many rows.
func oldTable(loads []*measure.Load, done string) report.Table {
	t := measure.Grid(report.Table{ID: "old-rows", Title: done + " rows", RowName: "way", Base: composed,
		Columns: []report.Column{{ID: "sorted", Title: "sorted", Unit: "rows/s", Better: report.More}, {ID: "shuffled", Title: "shuffled", Unit: "rows/s", Better: report.More}}},
		loads, func(l *measure.Load) report.Cell { return l.Of("rate") })
	t.Say("With a directory, %s sorted rows get their IDs at %s per second, shuffled ones at %s.", done, t.Cell(inFiles, "sorted"), t.Cell(inFiles, "shuffled"))
	return t
}

// openPast creates a fleet with a past number, and opens its past.
func openPast(ctx context.Context, url string, l snowflake.Layout) (*generator.Past, error) {
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
