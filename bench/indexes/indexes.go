// Package indexes measures what kinds of primary keys cost a database: how fast rows
// are inserted, and how large the index becomes.
package indexes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/rig/servers"
)

// Sections returns the section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "index", Title: "Index friendliness", Full: 70 * time.Second, Quick: 3 * time.Second,
		About: "Rows of a primary key and 100 bytes are inserted by INSERTs of 1,000 rows over one connection, each committed by itself, " +
			"into a table for each kind of key. The tables take turns, in random order, until each has a million rows (20,000 in a quick run) or the time is up, and share the server's cache. " +
			"The rows are made before the inserts are timed. The servers have their default settings, with synced commits and caches of 128 MB.",
		Measure: func(ctx context.Context, run *measure.Run) results.Section {
			return measureIndexes(ctx, run, planOf(run))
		},
		Verdict: verdict,
	}}
}

// plan is the number of rows for each table.
type plan struct {
	rows    int
	batches int // in a chunk, the turn of a table
	least   int // chunks, also beyond the budget
}

func planOf(run *measure.Run) plan {
	if run.Quick {
		return plan{rows: 20_000, batches: 2, least: 3}
	}
	return plan{rows: 1_000_000, batches: 20, least: 5}
}

// closing is kept of the budget for the sizes of the tables, and for stopping the servers.
const closing = 2 * time.Second

func measureIndexes(ctx context.Context, run *measure.Run, p plan) results.Section {
	began := time.Now()
	if run.Progress != nil {
		run.Progress(0, 1, "starting servers")
	}
	all := engines()
	var wanted []servers.Wanted
	for _, e := range all {
		wanted = append(wanted, servers.Wanted{Kind: e.kind})
	}
	started, stop := servers.All(ctx, wanted...)
	defer func() { _ = stop() }() // on a panic

	end := run.Budget - closing
	if run.Quick {
		end = run.Budget - closing/4
	}
	var trials []*trial
	for i, e := range all {
		t := &trial{engine: e, server: started[i], err: started[i].Err}
		trials = append(trials, t)
		if t.err != nil {
			continue
		}
		// One engine runs after the other, because they write in the background. The
		// rest of the budget is shared evenly.
		used := time.Since(began)
		part := *run
		part.Budget = used + (end-used)/time.Duration(len(all)-i)
		part.Progress = func(_, _ int, what string) {
			if run.Progress != nil {
				run.Progress(int(min(time.Since(began), run.Budget).Milliseconds()), int(run.Budget.Milliseconds()), what)
			}
		}
		t.err = t.run(ctx, &part, began, p)
	}
	section := report(p, trials)
	if err := stop(); err != nil {
		section.Notes = append(section.Notes, fmt.Sprintf("Stopping the servers failed: %v.", err))
	}
	return section
}

// trial is the measurement of one engine.
type trial struct {
	engine
	server *servers.Server
	tables []*subject
	err    error // why there is nothing, or no more
}

// run fills the tables until each has the rows of the plan, or run.Budget is used up,
// counted from began.
func (t *trial) run(ctx context.Context, run *measure.Run, began time.Time, p plan) (err error) {
	db, err := t.server.SQL(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, statement := range t.setUp {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	all, err := keys()
	if err != nil {
		return err
	}
	var names []string
	for _, k := range all {
		s := &subject{engine: t.engine, key: k, db: db}
		if err := s.open(ctx); err != nil {
			return fmt.Errorf("make table %s: %w", s.table, err)
		}
		t.tables = append(t.tables, s)
		names = append(names, fmt.Sprintf("%s into %s", s.name, t.kind))
	}
	if err := t.fill(ctx, run, began, p, names); err != nil {
		return err
	}
	for _, s := range t.tables {
		if err := s.weigh(ctx); err != nil {
			return fmt.Errorf("find the size of table %s: %w", s.table, err)
		}
	}
	return nil
}

// fill inserts a chunk into each table in turn, in rounds, so that all have as many rows.
func (t *trial) fill(ctx context.Context, run *measure.Run, began time.Time, p plan, names []string) error {
	inner, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	full := errors.New("all tables are full")
	turns := 0
	run.Rounds(inner, began, p.least, names, func(i int) {
		if err := t.tables[i].chunk(ctx, run.Rand, p.batches); err != nil {
			enough(fmt.Errorf("insert into table %s: %w", t.tables[i].table, err))
			return
		}
		if turns++; turns*p.batches*batchRows >= p.rows*len(names) {
			enough(full)
		}
	})
	if err := context.Cause(inner); err != nil && !errors.Is(err, full) {
		return err
	}
	return nil
}
