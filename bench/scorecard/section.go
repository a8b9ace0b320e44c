// Package scorecard is the section of the report that puts tickflake's strategies and
// other generators through every fault of the catalogue, in virtual time, and sets what
// they did side by side:
//
//	go run ./bench --only faults
//
// The program must begin with peers.Serve, for some peers need processes of their own.
package scorecard

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator/generatortest"
)

const (
	id    = "faults"
	title = "Strategies under faults"
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: id, Title: title, Full: 8 * time.Second, Quick: 4 * time.Second,
		Measure: func(ctx context.Context, run *measure.Run) results.Section {
			rows, list := newRows()
			return measureRows(ctx, run, limit(run.Budget), rows, list)
		}}}
}

// measureRows runs the peers of the list, each of which is the row of the same index, and
// whose processes must answer within the limit.
func measureRows(ctx context.Context, run *measure.Run, limit time.Duration, rows []*row, list []peers.Peer) results.Section {
	all := faults()
	var later []func() string // the faults of leases, which come after the catalogue
	for i, r := range rows {
		for _, f := range all {
			if f.run != nil && r.setting == peers.Leased {
				later = append(later, func() string {
					r.extra[f.id] = f.outcomeOf(ctx, r)
					return list[i].Name + ", " + f.id
				})
			}
		}
	}
	progress := func(done, of int, what string) { run.Progress(done, of+len(later), what) }
	cells := 0
	report := peers.Run(ctx, list, peers.Options{Limit: limit, Progress: func(done, of int, what string) {
		cells = of
		progress(done, of, what)
	}})
	for i, p := range report.Peers {
		rows[i].PeerReport = p
	}
	for i, one := range later {
		what := one()
		progress(cells+i+1, cells, what)
	}
	s := results.Section{ID: id, Title: title, About: about, Command: "go run ./bench --only " + id}
	s.Tables, s.Charts = tables(rows, all)
	s.Verdict = verdict(rows, all)
	s.Notes = notes(report.Limit)
	return s
}

// limit is the real time in which a process must answer, of which two never do.
// The rest of the budget is for the others, who take turns with them.
func limit(budget time.Duration) time.Duration {
	if budget <= 0 {
		return peers.DefaultLimit
	}
	return min(peers.DefaultLimit, budget*3/8)
}

// outcomeOf puts a row through a fault of leases.
func (f fault) outcomeOf(ctx context.Context, r *row) peers.Outcome {
	rec := newRecord(r.strategy)
	if ctx.Err() == nil {
		f.run(ctx, rec)
	}
	if ctx.Err() != nil { // perhaps in the middle
		return peers.Outcome{Result: generatortest.Result{Fault: f.id, Name: f.name, Skipped: peers.Interrupted}}
	}
	rec.Fault, rec.Name = f.id, f.name
	return rec.Outcome
}
