package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// grace is how long a section may take to return after its context has ended.
const grace = 10 * time.Second

// runner runs the sections, one after the other. What one of them does wrong does not
// cost the others their results.
type runner struct {
	options
	sections []measure.Section
	progress *progress
	err      io.Writer // for the traces of panics

	failed []string // IDs of sections that failed
}

// run returns the report of all sections. When ctx ends, they stop.
func (r *runner) run(ctx context.Context) *results.Report {
	report := r.empty()
	for i, s := range r.sections {
		got := r.frame(s)
		if ctx.Err() != nil {
			got.Skipped = "the run was interrupted before it began"
		} else {
			r.progress.begin(i)
			runtime.GC() // what the last section has left is not this one's to collect
			got = r.section(ctx, s)
		}
		report.Sections = append(report.Sections, got)
		// An ID that two sections use, say, would make the whole report unreadable.
		if err := report.Check(); err != nil {
			report.Sections[i] = r.fail(s, err)
		}
	}
	r.progress.end()
	report.Interrupted = ctx.Err() != nil
	return report
}

// frame is what is known of a section before it is measured.
func (r *runner) frame(s measure.Section) results.Section {
	return results.Section{ID: s.ID, Title: s.Title, Command: r.line(s.ID)}
}

// fail is the section without its results.
func (r *runner) fail(s measure.Section, err error) results.Section {
	r.failed = append(r.failed, s.ID)
	fmt.Fprintf(r.err, "\nbench: section %s failed: %v\n", s.ID, err)
	got := r.frame(s)
	got.Skipped = fmt.Sprintf("it failed: %v", err)
	var trace *panicked
	if errors.As(err, &trace) {
		fmt.Fprintf(r.err, "%s\n", trace.stack)
	}
	return got
}

// budget is what a section may take.
func (r *runner) budget(s measure.Section) time.Duration {
	if r.quick {
		return s.Quick
	}
	return s.Full
}

// section measures one section.
func (r *runner) section(ctx context.Context, s measure.Section) results.Section {
	budget := r.budget(s)
	limit := 3*budget + 30*time.Second // a server that hangs shall not hang the run
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name := fnv.New64a()
	name.Write([]byte(s.ID)) // never fails
	run := &measure.Run{
		Quick:  r.quick,
		Budget: budget,
		// Alone or among others, a section has the same order.
		Rand:     rand.New(rand.NewPCG(uint64(r.seed), name.Sum64())),
		Progress: r.progress.step,
	}
	got, err := measured(limited, s, run)
	if err != nil {
		return r.fail(s, err)
	}
	frame := r.frame(s)
	got.ID, got.Command = frame.ID, frame.Command // with this run's flags
	if got.Title == "" {
		got.Title = frame.Title
	}
	got.Repair()
	if limited.Err() != nil && ctx.Err() == nil {
		got.Notes = append(got.Notes, fmt.Sprintf("It was stopped after %v, where it was to take %v; what it had by then is shown.", limit, budget))
	}
	return got
}

// panicked is a panic in a section.
type panicked struct {
	value any
	stack []byte
}

func (e *panicked) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// measured runs Measure, and waits no longer than the grace for it after ctx has ended.
// One that does not return even then is left to run.
func measured(ctx context.Context, s measure.Section, run *measure.Run) (results.Section, error) {
	type outcome struct {
		section results.Section
		err     error
	}
	ended := make(chan outcome, 1)
	go func() {
		o := outcome{err: errors.New("its goroutine ended before it returned")}
		defer func() {
			if value := recover(); value != nil {
				o.err = &panicked{value, debug.Stack()}
			}
			ended <- o
		}()
		o = outcome{section: s.Measure(ctx, run)}
	}()
	select {
	case o := <-ended:
		return o.section, o.err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case o := <-ended:
		return o.section, o.err
	case <-late.C:
		return results.Section{}, fmt.Errorf("it did not stop within %v after it was told to, and may have disturbed what ran after it", grace)
	}
}
