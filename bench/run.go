package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/cli"
)

// run measures, and delivers the report.
func (p program) run(ctx context.Context, o options) error {
	chosen, err := p.chosen(o)
	if err != nil {
		return err
	}
	if o.publish && (o.quick || len(o.only) > 0) {
		return cli.Usage(errors.New("--publish: it needs all sections of a full run, without --quick and --only"))
	}
	to, err := p.prepare(o) // before the measurements, which take minutes
	if err != nil {
		return err
	}
	report := &results.Report{Schema: results.Schema, Command: o.line(), Commit: commit(to.root), Began: time.Now(), Quick: o.quick, Seed: uint64(o.seed)}
	machine := inspect()
	p.measure(ctx, o, chosen, report)
	report.Seconds = time.Since(report.Began).Seconds()
	report.Machine = machine.end()
	err = p.deliver(report, to)
	if ctx.Err() != nil {
		if err != nil {
			fmt.Fprintf(p.err, "bench: %v\n", err)
		}
		return fmt.Errorf("%w: the report is incomplete", context.Cause(ctx))
	}
	failed := 0
	for _, s := range report.Sections {
		if s.Failed {
			failed++
		}
	}
	if failed > 0 {
		err = errors.Join(fmt.Errorf("%d of %d sections failed", failed, len(chosen)), err)
	}
	return err
}

// grace is how long a section may take to return after its context has ended.
const grace = 10 * time.Second

// measure runs the sections, one after the other. The failure of one leaves the results of
// the others. When ctx ends, the sections stop.
func (p program) measure(ctx context.Context, o options, sections []measure.Section, report *results.Report) {
	progress := newProgress(p.err, o.quick, sections)
	for i, s := range sections {
		var got results.Section
		if ctx.Err() != nil {
			got.Skipped = "the run was interrupted before"
		} else {
			progress.begin(i)
			runtime.GC() // the garbage of the section before
			before := measure.Times()
			got = p.section(ctx, o, s, progress.step)
			got.Stolen = measure.Stolen(before, measure.Times())
		}
		got.ID, got.Title, got.About = s.ID, s.Title, s.About
		if s.Verdict != nil {
			got.Verdict = s.Verdict(got)
		}
		report.Sections = append(report.Sections, got)
		// An ID that two sections use would make the whole report unreadable.
		if err := report.Check(); err != nil {
			failed := p.fail(s, err)
			failed.ID, failed.Title = s.ID, s.Title
			report.Sections[i] = failed
		}
	}
	progress.clear()
	report.Interrupted = ctx.Err() != nil
}

// fail reports the failure of a section, and returns it without results.
func (p program) fail(s measure.Section, err error) results.Section {
	fmt.Fprintf(p.err, "\nbench: section %s failed: %v\n", s.ID, err)
	var trace *panicked
	if errors.As(err, &trace) {
		fmt.Fprintf(p.err, "%s\n", trace.stack)
	}
	return results.Section{Failed: true, Skipped: fmt.Sprintf("it failed: %v", err)}
}

func budget(s measure.Section, quick bool) time.Duration {
	if quick {
		return s.Quick
	}
	return s.Full
}

// section measures one section.
func (p program) section(ctx context.Context, o options, s measure.Section, step func(done, of int, what string)) results.Section {
	budget := budget(s, o.quick)
	limit := 3*budget + 30*time.Second // a server that hangs must not hang the run
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name := fnv.New64a()
	name.Write([]byte(s.ID))
	got, err := measured(limited, s, &measure.Run{
		Quick:  o.quick,
		Budget: budget,
		// Alone or among others, a section has the same order.
		Rand:     rand.New(rand.NewPCG(uint64(o.seed), name.Sum64())),
		Progress: step,
	})
	if err != nil {
		return p.fail(s, err)
	}
	if dropped := got.Clean(); dropped > 0 {
		got.Notes = append(got.Notes, fmt.Sprintf("Samples that are not finite and were dropped: %d.", dropped))
	}
	if limited.Err() != nil && ctx.Err() == nil {
		got.Notes = append(got.Notes, fmt.Sprintf("The section was stopped after %v; it was planned for %v.", limit, budget))
	}
	return got
}

// panicked is a panic in a section.
type panicked struct {
	value any
	stack []byte
}

func (e *panicked) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// measured calls Measure. After the end of ctx it waits for [grace], and then leaves a
// section running that does not return.
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
		return results.Section{}, fmt.Errorf("it did not stop within %v of the end of its time, and may have disturbed the sections after it", grace)
	}
}

// progress shows what runs, and how long the rest is planned to take: a line per section,
// and on a terminal a line that changes within a section. It is safe for concurrent use.
type progress struct {
	sections []measure.Section
	quick    bool
	out      io.Writer
	screen   bool // out is a terminal

	mu   sync.Mutex
	at   int // index of the section
	last time.Time
}

func newProgress(out io.Writer, quick bool, sections []measure.Section) *progress {
	p := &progress{sections: sections, quick: quick, out: out}
	if file, ok := out.(*os.File); ok {
		p.screen = term.IsTerminal(int(file.Fd()))
	}
	return p
}

// begin shows that a section begins.
func (p *progress) begin(section int) {
	var left time.Duration
	for _, s := range p.sections[section:] {
		left += budget(s, p.quick)
	}
	p.clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = section
	fmt.Fprintf(p.out, "%d/%d %s: %s (about %s left)\n", section+1, len(p.sections), p.sections[section].ID, p.sections[section].Title, left)
}

// step shows that so many parts of the section's work are done, and what comes next.
func (p *progress) step(done, of int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen && time.Since(p.last) > 250*time.Millisecond {
		p.last = time.Now()
		fmt.Fprintf(p.out, "\r\x1b[K%3d%% %.60s", 100*done/max(of, 1), what)
	}
}

// clear removes the line that changes.
func (p *progress) clear() {
	if p.screen {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
