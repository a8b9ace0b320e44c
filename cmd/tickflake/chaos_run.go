package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// maxScript is the longest script in bytes. 100,000 steps fit.
const maxScript = 4 << 20

// report is the result of one generator.
type report struct {
	Subject string    `json:"subject"`
	Results []outcome `json:"results"`
}

// outcome is the result of one scenario.
type outcome struct {
	generatortest.Result
	took time.Duration
}

// suite is one generator and the scenarios to run on it.
type suite struct {
	title     string
	subject   func() generatortest.Subject[snowflake.ID]
	scenarios []generatortest.Scenario
}

// suites returns a suite of the scenarios for each strategy on each clock.
func (k *chaos) suites(chosen []namedStrategy, clocks []generatortest.ClockKind, scenarios ...generatortest.Scenario) []suite {
	subject := k.subject
	if k.noLease {
		subject = k.unleased
	}
	var suites []suite
	for _, s := range chosen {
		for _, clock := range clocks {
			own := slices.Clone(scenarios)
			for i := range own { // so that the script in the report repeats the run
				own[i].Script.Strategy, own[i].Script.Clock = fmt.Sprint(s.strategy), string(clock)
			}
			suites = append(suites, suite{k.title(s, clock), func() generatortest.Subject[snowflake.ID] { return subject(s.strategy, clock) }, own})
		}
	}
	return suites
}

// catalogue runs the scenarios that were chosen.
func (k *chaos) catalogue(ctx context.Context) error {
	chosen, clocks := k.chosen(namedStrategy{"default", strategies.Default()}, generatortest.Raw, generatortest.Mono)
	_, err := k.run(ctx, k.suites(chosen, clocks, scenarios(k.faults)...))
	return err
}

// replay runs a script. A script that does not apply to the generator is an error: unlike
// a scenario of the catalogue, it was asked for by itself.
func (k *chaos) replay(ctx context.Context) error {
	name, script, err := k.readScript(ctx)
	if err != nil {
		return err
	}
	if len(script.Steps) == 0 {
		return fmt.Errorf("%s: script: it has no steps", name)
	}
	own := namedStrategy{"default", strategies.Default()}
	if script.Strategy != "" {
		own.name = script.Strategy
		if own.strategy, err = strategies.Parse(script.Strategy); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	clock := generatortest.Raw
	if script.Clock != "" {
		clock = generatortest.ClockKind(script.Clock) // ParseScript has checked it
	}
	chosen, clocks := k.chosen(own, clock)
	skipped, err := k.run(ctx, k.suites(chosen, clocks, generatortest.Scenario{Name: name, Script: script}))
	if err == nil && skipped != "" {
		err = fmt.Errorf("%s was not run: %s", name, skipped)
	}
	return err
}

// readScript reads the script of --script. The name is for messages.
func (k *chaos) readScript(ctx context.Context) (name string, script generatortest.Script, err error) {
	if name = k.script; name == "-" {
		name = "standard input"
	}
	text, err := io.ReadAll(io.LimitReader(k.fileOrInput(ctx, k.script), maxScript+1))
	if err != nil {
		if k.script == "-" { // the error of a file has its name
			err = fmt.Errorf("%s: %w", name, err)
		}
		return name, script, err
	}
	if len(text) > maxScript {
		return name, script, fmt.Errorf("%s: longer than the %d bytes that a script may have", name, maxScript)
	}
	if script, err = generatortest.ParseScript(string(text)); err != nil {
		return name, script, fmt.Errorf("%s: %w", name, err)
	}
	return name, script, nil
}

// run runs the suites and writes a report on each. It returns errReported if a promise
// was broken, and why the first scenario was skipped that was.
func (k *chaos) run(ctx context.Context, suites []suite) (skipped string, err error) {
	w := k.writer()
	done, total, broken := 0, 0, false
	for _, s := range suites {
		total += len(s.scenarios)
	}
	for _, s := range suites {
		r := report{Subject: s.title}
		for _, scenario := range s.scenarios {
			o, ok := attempt(ctx, s.subject, scenario)
			if !ok {
				break
			}
			r.Results = append(r.Results, o)
			broken = broken || o.Failed()
			if skipped == "" {
				skipped = o.Skipped
			}
			done++
		}
		if len(r.Results) > 0 {
			if err := w.write(r); err != nil {
				return skipped, err
			}
		}
	}
	if err := w.end(); err != nil {
		return skipped, err
	}
	switch {
	case done < total:
		return skipped, fmt.Errorf("%w; %d of %d runs done", context.Cause(ctx), done, total)
	case broken:
		return skipped, errReported
	}
	return skipped, nil
}

// attempt runs a scenario, unless ctx ends first. A scenario cannot be stopped, so it is
// left to run on then.
func attempt(ctx context.Context, subject func() generatortest.Subject[snowflake.ID], scenario generatortest.Scenario) (o outcome, ok bool) {
	if ctx.Err() != nil {
		return outcome{}, false
	}
	done := make(chan outcome, 1)
	go func() {
		began := time.Now()
		r := generatortest.Run(subject(), scenario)
		done <- outcome{Result: r.Results[0], took: time.Since(began)}
	}()
	select {
	case <-ctx.Done():
		return outcome{}, false
	case o := <-done:
		return o, true
	}
}
