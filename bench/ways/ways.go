// Package ways measures the other ways to make an ID, against real servers: sequences,
// auto-increments, tickets, counters, segments, and beside them tickflake under a lease
// that the same server keeps.
package ways

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/servers"
)

// Sections returns the section.
func Sections() []measure.Section {
	return []measure.Section{{
		ID:      "ways",
		Title:   "The other ways to make an ID",
		Full:    25 * time.Second,
		Quick:   5 * time.Second,
		Measure: measureWays,
	}}
}

// closing is what is kept of the budget for checking the IDs and stopping the servers.
const closing = 2 * time.Second

func measureWays(ctx context.Context, run *measure.Run) results.Section {
	began := time.Now()
	if run.Progress != nil {
		run.Progress(0, 1, "starting servers")
	}
	started, stop := servers.Start(ctx, wanted...)
	defer func() { _ = stop() }() // whatever happens
	inner := *run
	inner.Budget -= closing
	if run.Quick {
		inner.Budget = run.Budget - closing/4
	}
	section := measureOn(ctx, &inner, began, started, list())
	if err := stop(); err != nil {
		section.Notes = append(section.Notes, fmt.Sprintf("Stopping the servers failed: %v.", err))
	}
	return section
}

// measureOn measures ways on servers that run.
func measureOn(ctx context.Context, run *measure.Run, began time.Time, r running, ways []way) results.Section {
	if !r.any() {
		return report(r, nil)
	}
	var subjects []*subject
	for _, w := range ways {
		s := &subject{way: w}
		s.open(ctx, r)
		subjects = append(subjects, s)
	}
	measureAll(ctx, run, began, subjects)
	var notes []string
	for _, s := range subjects {
		if err := s.close(); err != nil && ctx.Err() == nil {
			notes = append(notes, fmt.Sprintf("Closing %s failed: %s.", s.name, servers.Reason(err)))
		}
	}
	section := report(r, subjects)
	section.Notes = append(section.Notes, notes...)
	return section
}
