package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/internal/simulation"
	"github.com/tickflake/tickflake/strategies"
)

// simulationEpoch is that of the simulation's layout, and simulationEnd where its
// time field ends.
var (
	simulationEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	simulationEnd   = time.Duration(1<<41) * time.Millisecond // after the epoch
)

// simulatedTrial returns the run of a script with a seed and with steps.
func (k *chaos) simulatedTrial(strategy namedStrategy, clock generatortest.ClockKind, name string, script generatortest.Script) (trial, error) {
	script.Strategy, script.Clock = fmt.Sprint(strategy.strategy), string(clock)
	c, steps, err := simulationOf(script, strategy.strategy)
	if err != nil {
		return nil, err
	}
	return func(trace io.Writer) outcome {
		c := c
		c.Trace = trace
		r := k.simulate(c)
		o := outcomeOf(r)
		o.Name, o.Script = name, script.Line()
		if r.Err != nil {
			o.Skipped = r.Err.Error()
		}
		for i, v := range r.Violations {
			if v.Op >= 0 {
				o.Violations[i].Step = steps[v.Op]
			}
		}
		return o
	}, nil
}

// simulationOf returns the program that a script is, and for each operation of it
// the step that it comes from. As in virtual time, a tick has 16 IDs. The seed
// decides how callers are scheduled, too, so that a few seeds try all ways.
func simulationOf(script generatortest.Script, strategy strategies.Strategy) (c simulation.Config, steps []int, err error) {
	c = simulation.Config{
		Seed:         script.Seed,
		Callers:      max(1, script.Callers),
		Schedule:     simulation.Schedule(script.Seed % 3),
		Changes:      3,
		Threshold:    time.Second,
		Limit:        24 * time.Hour,
		Strategy:     strategy,
		SequenceBits: 4,
	}
	switch generatortest.ClockKind(script.Clock) {
	case generatortest.Mono:
		c.Clock = simulation.Mono
	case generatortest.Resync:
		c.Clock = simulation.Resync
	}
	if c.Start, err = simulationStart(script.Begin); err != nil {
		return c, nil, err
	}
	for i, step := range script.Steps {
		if step.Do == generatortest.StepWall && step.Count > 0 {
			return c, nil, fmt.Errorf("script step %d: %q: the simulation steps the wall between operations only, as its callers read the clock in an order of the seed's; leave out the seed, or %q", i+1, step, fmt.Sprintf("at read %d", step.Count))
		}
		ops, ok := operations(step, c.Callers)
		if !ok {
			return c, nil, fmt.Errorf("script step %d: %q: the simulation has one process only; leave out the seed, or the step", i+1, step)
		}
		for _, op := range ops {
			c.Ops = append(c.Ops, op)
			steps = append(steps, i+1)
		}
	}
	return c, steps, nil
}

// simulationStart returns where the wall stands at the start, from the epoch.
func simulationStart(begin string) (time.Duration, error) {
	if before, ok := strings.CutPrefix(begin, "end"); ok {
		d, err := time.ParseDuration(before)
		return simulationEnd + d, err
	}
	if begin == "" {
		begin = "2026-06-01T12:00:00Z"
	}
	t, err := time.Parse(time.RFC3339Nano, begin)
	return t.Sub(simulationEpoch), err
}

// rounds is into how many parts IDs are divided that are spread over a time.
const rounds = 100

// operations returns what the simulation does for a step. The IDs of a step are
// shared among the callers, to whom operations are dealt one by one.
func operations(step generatortest.Step, callers int) ([]simulation.Op, bool) {
	if step.Do == generatortest.IDs {
		parts := 1
		if step.Time > 0 {
			parts = min(step.Count, rounds)
		}
		var ops []simulation.Op
		for _, n := range divide(step.Count, parts) {
			for _, share := range divide(n, min(n, callers)) {
				ops = append(ops, simulation.Op{Kind: simulation.IDs, N: share})
			}
			if step.Time > 0 {
				ops = append(ops, simulation.Op{Kind: simulation.Pass, D: step.Time / time.Duration(parts)})
			}
		}
		return ops, true
	}
	kinds := map[generatortest.Action]simulation.OpKind{
		generatortest.Batch:    simulation.Batch,
		generatortest.Stream:   simulation.Stream,
		generatortest.Pass:     simulation.Pass,
		generatortest.StepWall: simulation.Step,
		generatortest.Slew:     simulation.Slew,
		generatortest.Freeze:   simulation.Freeze,
		generatortest.Coarse:   simulation.Coarse,
		generatortest.Suspend:  simulation.Suspend,
		generatortest.Leap:     simulation.Leap,
	}
	kind, ok := kinds[step.Do]
	return []simulation.Op{{Kind: kind, N: step.Count, D: step.Time, Rate: step.Rate}}, ok
}

// divide returns parts that add up to n, as equal as can be.
func divide(n, parts int) []int {
	all := make([]int, parts)
	for i := range all {
		all[i] = n*(i+1)/parts - n*i/parts
	}
	return all
}

// outcomeOf returns a simulation's result in the terms of a report.
func outcomeOf(r simulation.Result) outcome {
	o := outcome{simulated: true, Result: generatortest.Result{
		Issued: r.Issued, Errors: r.Errors, LongestStall: r.LongestStall, LargestLead: r.LargestLead,
		Violated: map[generatortest.Kind]int{},
	}}
	for _, v := range r.Violations {
		detail := v.Detail
		if v.Caller >= 0 {
			detail += fmt.Sprintf(" (caller %d, op %d)", v.Caller, v.Op) // as in the trace
		}
		switch v.What {
		case "duplicate":
			o.Duplicates++
		case "order", "order of ticks":
			o.Disorder++
		}
		kind := generatortest.Kind(v.What)
		o.Violated[kind]++
		o.Violations = append(o.Violations, generatortest.Violation{Kind: kind, Step: v.Op + 1, Detail: detail})
	}
	return o
}

// seedScript returns the script of a program that a seed made. The seed is all of
// it: such a program may have more to it than a script can say. What it is stands
// above, for people.
func seedScript(c simulation.Config) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "#   "+format+"\n", args...) }
	b.WriteString("# This seed makes the program\n")
	switch s := c.Strategy.(type) {
	case nil:
		say("strategy %v", strategies.Default())
	case fmt.Stringer:
		say("strategy %v", s)
	default: // a function
		say("a strategy without a name")
	}
	switch c.Clock {
	case simulation.Mono:
		say("clock mono")
	case simulation.Resync:
		say("clock resync, from a drift of %s up to %s", c.Threshold, c.Limit)
	default:
		say("clock raw")
	}
	say("%d callers, %s, up to %s pass while a clock is read", c.Callers, scheduleText(c), c.Jitter)
	say("layout of %d bits of time, %d of sequence, which begins at %d; start %s after the epoch", timeBits(c), c.SequenceBits, c.FirstSequence, c.Start)
	for i, op := range c.Ops {
		say("op %d: %s", i, op)
	}
	fmt.Fprintf(&b, "seed %d", c.Seed)
	return b.String()
}

func timeBits(c simulation.Config) int {
	if c.TimeBits == 0 {
		return 41
	}
	return c.TimeBits
}

func scheduleText(c simulation.Config) string {
	switch c.Schedule {
	case simulation.Sticky:
		return "each for long"
	case simulation.Priorities:
		return fmt.Sprintf("by priorities that change %d times", c.Changes)
	}
	return "in any order"
}
