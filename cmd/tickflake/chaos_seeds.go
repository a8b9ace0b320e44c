package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/internal/simulation"
)

// simulated is the subject of reports on the programs that seeds make.
const simulated = "simulation"

// search simulates the programs of many seeds and reports the lowest that fails.
func (k *chaos) search(ctx context.Context) error {
	if k.trace { // of one seed
		return k.runSeed(ctx, uint64(k.from))
	}
	n := int(min(k.seeds, math.MaxInt)) // an int may have 32 bits
	bar := newBar(k.screen, int64(n), "seeds")
	began, done := time.Now(), 0
	var all generatortest.Result // of all seeds together
	r, failed := simulation.Search(ctx, k.program, uint64(k.from), n, int(min(k.parallel, k.seeds)), func(r simulation.Result) {
		_ = bar.Add(1) // a bar that cannot be drawn is no reason to stop
		done++
		all.Issued += r.Issued
		all.Errors += r.Errors
		all.LongestStall = max(all.LongestStall, r.LongestStall)
		all.LargestLead = max(all.LargestLead, r.LargestLead)
	})
	took := time.Since(began)
	_ = bar.Clear() // for whatever is to be said on that line
	if err := context.Cause(ctx); err != nil && !failed && done < n {
		return fmt.Errorf("%w; %d of %d seeds done", err, done, n)
	}
	last := uint64(k.from) + uint64(n) - 1
	all.Name = fmt.Sprintf("seeds %d to %d", k.from, last)
	o := outcome{Result: all}
	if failed {
		o = seedOutcome(r)
	}
	w := k.seedWriter()
	if err := errors.Join(w.write(report{simulated, []outcome{o}}), w.end(), k.out.Flush()); err != nil {
		return err
	}
	// How fast it went differs from run to run, so it is no part of the output.
	fmt.Fprintf(k.err, "%d seeds in %s: %s seeds/s\n", done, max(took.Round(time.Millisecond), time.Millisecond), numberText(float64(done)/took.Seconds()))
	if failed {
		return errReported
	}
	return nil
}

// runSeed simulates the program of one seed.
func (k *chaos) runSeed(ctx context.Context, seed uint64) error {
	t := func(trace io.Writer) outcome {
		c := k.program(seed)
		c.Trace = trace
		return seedOutcome(simulation.Run(c))
	}
	return k.run(ctx, []suite{{simulated, []trial{t}}}, k.seedWriter())
}

// replaySeed runs a script that is nothing but a seed, as a search prints them.
func (k *chaos) replaySeed(ctx context.Context, name string, script generatortest.Script) error {
	if len(k.strategies)+len(k.clocks) > 0 {
		return &usageError{err: errors.New("--strategy and --clock do not go with a script that is a seed alone, which decides all")}
	}
	if alone := (generatortest.Script{Seed: script.Seed}); script.Line() != alone.Line() {
		return fmt.Errorf("%s: script: without steps the seed decides all: leave out the other settings, or add steps", name)
	}
	return k.runSeed(ctx, script.Seed)
}

// seedOutcome returns what became of the program that a seed made.
func seedOutcome(r simulation.Result) outcome {
	o := outcomeOf(r)
	o.Name, o.Script = fmt.Sprintf("seed %d", r.Config.Seed), seedScript(r.Config)
	if r.Err != nil { // a program is made to be run
		o.Violated["not-run"]++
		o.Violations = append(o.Violations, generatortest.Violation{Kind: "not-run", Detail: r.Err.Error()})
	}
	return o
}

// seedWriter returns the writer for reports on seeds.
func (k *chaos) seedWriter() reportWriter {
	if *k.format == formatTable {
		return seedReports{k.out}
	}
	return k.writer(true)
}

// seedReports tells people about a search.
type seedReports struct{ w *bufio.Writer }

func (s seedReports) write(r report) error {
	for _, o := range r.Results {
		if !o.Failed() {
			fmt.Fprintf(s.w, "✓ %s: all promises kept, %s IDs and %s errors\n", o.Name, numberText(float64(o.Issued)), numberText(float64(o.Errors)))
			continue
		}
		fmt.Fprintf(s.w, "✗ %s\n%s\nIts script, which you may save and replay with 'tickflake chaos --script FILE':\n\n%s\n\n"+
			"Or at once, step by step:\n\n  echo '%s' | tickflake chaos --script - --trace\n", o.headline(), o.details(), o.Script, o.Name)
	}
	return s.w.Flush()
}

func (s seedReports) end() error { return nil }
