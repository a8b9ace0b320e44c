package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/strategies"
)

// maxScript is the longest script in bytes. The most steps that one may have fit.
const maxScript = 4 << 20

// report is what became of one generator.
type report struct {
	Subject string    `json:"subject"`
	Results []outcome `json:"results"`
}

// outcome is what became of one scenario.
type outcome struct {
	generatortest.Result
	// simulated says that it was run by the simulation, which counts no calls.
	simulated bool
	took      time.Duration
}

// suite is the scenarios that one generator is to be put through.
type suite struct {
	subject string
	trials  []trial
}

// trial runs one scenario. It writes a simulation's steps to trace, unless that
// is nil.
type trial func(trace io.Writer) outcome

// catalogue runs the scenarios that were chosen.
func (k *chaos) catalogue(ctx context.Context) error {
	chosen, clocks := k.chosen(namedStrategy{"default", strategies.Default()}, generatortest.Raw, generatortest.Mono)
	list := scenarios(k.faults)
	var suites []suite
	for _, strategy := range chosen {
		for _, clock := range clocks {
			s := suite{subject: k.title(strategy, clock)}
			for _, scenario := range list {
				s.trials = append(s.trials, k.trial(strategy, clock, scenario))
			}
			suites = append(suites, s)
		}
	}
	return k.run(ctx, suites, k.writer(false))
}

// trial returns the run of a scenario in virtual time.
func (k *chaos) trial(strategy namedStrategy, clock generatortest.ClockKind, scenario generatortest.Scenario) trial {
	// So that the script in the report replays the run.
	scenario.Script.Strategy, scenario.Script.Clock = fmt.Sprint(strategy.strategy), string(clock)
	return func(io.Writer) outcome {
		began := time.Now()
		subject := k.subject
		if k.noLease {
			subject = k.unleased
		}
		r := generatortest.Run(subject(strategy.strategy, clock), scenario)
		return outcome{Result: r.Results[0], took: time.Since(began)}
	}
}

// replay runs a script.
func (k *chaos) replay(ctx context.Context) error {
	name, script, err := k.readScript(ctx)
	if err != nil {
		return err
	}
	switch {
	case script.Seed != 0 && len(script.Steps) == 0:
		return k.replaySeed(ctx, name, script)
	case len(script.Steps) == 0:
		return fmt.Errorf("%s: script: there are no steps in it", name)
	case script.Seed != 0 && k.noLease:
		return &usageError{err: errors.New("--no-lease does not go with a script that has a seed: the simulation has one process only, without a lease")}
	case script.Seed == 0 && k.trace:
		return &usageError{err: errors.New("--trace needs a script with a seed, which is simulated")}
	}
	// What the script says, or what holds if it does not.
	own := namedStrategy{"default", strategies.Default()}
	if script.Strategy != "" {
		own.name = script.Strategy
		if own.strategy, err = strategies.Parse(script.Strategy); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	clock := generatortest.Raw
	if script.Clock != "" {
		if clock, err = generatortest.ParseClockKind(script.Clock); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	chosen, clocks := k.chosen(own, clock)
	var suites []suite
	for _, strategy := range chosen {
		for _, clock := range clocks {
			var t trial
			if script.Seed != 0 {
				t, err = k.simulatedTrial(strategy, clock, name, script)
			} else {
				t = k.trial(strategy, clock, generatortest.Scenario{Name: name, Script: script})
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			suites = append(suites, suite{k.title(strategy, clock), []trial{t}})
		}
	}
	return k.runScript(ctx, suites, script.Seed != 0)
}

// runScript runs suites of one script. One that was not run has failed: unlike
// the catalogue's, it was asked for by itself.
func (k *chaos) runScript(ctx context.Context, suites []suite, seeded bool) error {
	w := &strictWriter{reportWriter: k.writer(seeded)}
	if err := k.run(ctx, suites, w); err != nil {
		return err
	}
	return w.skipped
}

// strictWriter remembers what was not run.
type strictWriter struct {
	reportWriter
	skipped error
}

func (w *strictWriter) write(r report) error {
	for _, o := range r.Results {
		if o.Skipped != "" && w.skipped == nil {
			w.skipped = fmt.Errorf("%s was not run: %s", o.Name, o.Skipped)
		}
	}
	return w.reportWriter.write(r)
}

// readScript reads the script that --script names. The name is for messages.
func (k *chaos) readScript(ctx context.Context) (name string, script generatortest.Script, err error) {
	name, from := k.script, k.in
	if k.script == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(k.script)
		if err != nil {
			return name, script, err
		}
		defer file.Close()
		from = file
	}
	in := &input{ctx: ctx, r: from, before: k.out.Flush}
	text, err := io.ReadAll(io.LimitReader(in, maxScript+1))
	if err != nil {
		return name, script, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxScript {
		return name, script, fmt.Errorf("%s: longer than %d bytes, which no script is", name, maxScript)
	}
	if script, err = generatortest.ParseScript(string(text)); err != nil {
		return name, script, fmt.Errorf("%s: %w", name, err)
	}
	return name, script, nil
}

// run runs the suites and writes their reports. It returns errReported if a
// promise was broken.
func (k *chaos) run(ctx context.Context, suites []suite, w reportWriter) error {
	done, total := 0, 0
	for _, s := range suites {
		total += len(s.trials)
	}
	bar := newBar(k.screen, int64(total), "runs")
	defer bar.Clear() // for whatever is to be said on that line
	broken := false
	for _, s := range suites {
		r := report{Subject: s.subject, Results: []outcome{}}
		var stopped error
		for _, t := range s.trials {
			o, err := k.attempt(ctx, t)
			if err != nil {
				stopped = err
				break
			}
			r.Results = append(r.Results, o)
			broken = broken || o.Failed()
			done++
			_ = bar.Add(1) // a bar that cannot be drawn is no reason to stop
		}
		if len(r.Results) > 0 {
			if err := w.write(r); err != nil {
				return err
			}
		}
		if stopped != nil {
			if err := w.end(); err != nil {
				return err
			}
			return fmt.Errorf("%w; %d of %d runs done", stopped, done, total)
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	if broken {
		return errReported
	}
	return nil
}

// attempt runs a trial until ctx ends, whose cause is then the error. It writes
// the trace, if there is to be one.
func (k *chaos) attempt(ctx context.Context, t trial) (outcome, error) {
	if err := context.Cause(ctx); err != nil {
		return outcome{}, err
	}
	// A trial cannot be called off. When ctx ends, it is left behind. So it does
	// not write to the output itself.
	done := make(chan outcome, 1)
	if k.trace {
		r, w := io.Pipe()
		defer context.AfterFunc(ctx, func() { r.Close() })()
		go func() {
			done <- t(w)
			w.Close()
		}()
		if _, err := io.Copy(k.out, r); err != nil {
			if ended := context.Cause(ctx); ended != nil {
				err = ended
			}
			return outcome{}, err
		}
		fmt.Fprintln(k.out)
	} else {
		go func() { done <- t(nil) }()
	}
	select {
	case <-ctx.Done():
		return outcome{}, context.Cause(ctx)
	case o := <-done:
		return o, nil
	}
}
