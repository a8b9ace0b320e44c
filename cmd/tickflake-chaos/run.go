package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

const runHelp = `Put tickflake's generator through the faults of 'tickflake-chaos list', or those
given, in virtual time, and check its promises; or through --script: the output of
'tickflake-chaos list F5', the script in a report, or one of yours. 'tickflake-chaos
list --help' lists the steps. A script names its strategy and clock (default and raw
if it does not); --strategy and --clock override them. A script that does not apply
is a failure.

The layout has 16 IDs per tick, so that ticks run out. Each line of a table is one
fault: ✓ all promises kept, ✗ a promise broken, - does not apply. STALL is the
longest call, LEAD the furthest that an ID was ahead of its clock. The promises are:
no ID twice; each ID above all IDs that were returned before its call began; no stall
and no lead beyond what the strategy allows; the right error. Violations are listed
below the table, each with the shortest script found that repeats it.

The generator has a lease in a store in memory: grants of 3 seconds, and one node
number for all processes of a script. With --no-lease it has a fixed node number, and
scripts with restarts do not apply.

JSON is one object per generator, on a line of its own; times are in nanoseconds.`

// all is the value that stands for every other value of a flag.
const all = "all"

// presets are the strategies of --strategy all: the rows of the table in docs/strategy.md.
var presets = []string{
	"default", "reject", "wait:5ms", "wait", "borrow:1s", "borrow:1s,wait:5s", "twitter", "leaf", "last-timestamp-plus-one",
}

// subjectOf returns the generator with a strategy and a clock. Tests replace it.
var subjectOf = func(s strategies.Strategy, clock generatortest.ClockKind, leased bool) generatortest.Subject[snowflake.ID] {
	if leased {
		return generatortest.Leased{Strategy: s, Clock: clock}.Subject()
	}
	return generatortest.Tickflake(s, clock)
}

// settings are the flags of a run in virtual time.
type settings struct {
	*command.Console
	strategies []string
	clocks     []generatortest.ClockKind
	noLease    bool
	format     *string
}

func newRun(c *command.Console) *cobra.Command {
	var chosen []generatortest.Scenario
	cmd := &cobra.Command{
		Use:   "run [FAULT...]",
		Short: "Put tickflake's generator through clock faults, or a script, in virtual time",
		Long:  runHelp,
		Example: `  tickflake-chaos run
  tickflake-chaos run F5 leap-second --clock raw
  tickflake-chaos run --strategy borrow:1s,wait:5s --strategy reject --clock all
  tickflake-chaos run --strategy all --clock all
  tickflake-chaos list F5 > f5.txt; tickflake-chaos run --script f5.txt --strategy wait
  echo 'strategy reject; ids 20; step -1s; ids 5' | tickflake-chaos run --script -`,
	}
	takeFaults(cmd, &chosen, generatortest.Catalogue())
	s := &settings{Console: c}
	cmd.Flags().SortFlags = false
	usage := fmt.Sprintf("`SPEC` of a strategy, as 'tickflake generate' takes it, or all for the %d best known; may be repeated (default \"default\")", len(presets))
	command.Flag(cmd, "strategy", usage, &s.strategies, func(text string) ([]string, error) {
		_, err := strategies.Parse(text)
		if text == all {
			return append(s.strategies, presets...), nil
		}
		return append(s.strategies, text), err
	})
	usage = "`CLOCK` that the generator reads: raw (the wall), mono (monotonic time, which no step reaches), resync (mono that catches up after a suspend) or all; may be repeated (default raw and mono, or that of the script)"
	command.Flag(cmd, "clock", usage, &s.clocks, func(text string) ([]generatortest.ClockKind, error) {
		kind, err := generatortest.ParseClockKind(text)
		switch {
		case text == all:
			return append(s.clocks, generatortest.ClockKinds...), nil
		case err != nil:
			return nil, fmt.Errorf("want raw, mono, resync or all, got %q", text)
		}
		return append(s.clocks, kind), nil
	})
	script := cmd.Flags().String("script", "", "run the script in `FILE`, or in standard input if it is -, instead of faults")
	cmd.Flags().BoolVar(&s.noLease, "no-lease", false, "use a fixed node number and keep no state across restarts")
	s.format = command.FormatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("script") {
			if len(args) > 0 {
				return cli.Usage(errors.New("--script cannot be used with faults"))
			}
			return s.script(cmd.Context(), *script)
		}
		_, err := s.run(cmd.Context(), "default", []generatortest.ClockKind{generatortest.Raw, generatortest.Mono}, chosen...)
		return err
	}
	return cmd
}

// script runs the script in a file.
func (s *settings) script(ctx context.Context, name string) error {
	var text []byte
	var err error
	if name == "-" {
		name = "standard input"
		text, err = io.ReadAll(s.Input(ctx))
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return err
	}
	script, err := generatortest.ParseScript(string(text))
	if err == nil && len(script.Steps) == 0 {
		err = errors.New("script: it has no steps")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	strategy, clock := cmp.Or(script.Strategy, "default"), generatortest.ClockKind(cmp.Or(script.Clock, string(generatortest.Raw)))
	skipped, err := s.run(ctx, strategy, []generatortest.ClockKind{clock}, generatortest.Scenario{Name: name, Script: script})
	if err == nil && skipped != "" { // unlike a fault of the catalogue, it was asked for by itself
		err = fmt.Errorf("%s was not run: %s", name, skipped)
	}
	return err
}

// results are those of a generator, as JSON.
type results struct {
	Subject string                 `json:"subject"`
	Results []generatortest.Result `json:"results"`
}

// run runs the scenarios for each strategy on each clock of the flags, or else those given, and
// reports them. It returns [command.ErrReported] if a promise was broken, and why the first
// scenario was skipped that was.
func (s *settings) run(ctx context.Context, strategy string, clocks []generatortest.ClockKind, scenarios ...generatortest.Scenario) (skipped string, err error) {
	chosen := s.strategies
	if len(chosen) == 0 {
		chosen = []string{strategy}
	}
	if len(s.clocks) > 0 {
		clocks = s.clocks
	}
	header := []string{"", "SCENARIO", "IDS", "ERRORS", "DUPLICATES", "DISORDER", "STALL", "LEAD"}
	var count tally
	done := 0
	for _, name := range chosen {
		strategy, err := strategies.Parse(name) // --strategy has checked its own
		if err != nil {
			return "", err
		}
		for _, clock := range clocks {
			r := results{Subject: title(name, fmt.Sprint(strategy), clock)}
			table := suite{name: r.Subject}
			for _, scenario := range scenarios {
				scenario.Script.Strategy, scenario.Script.Clock = fmt.Sprint(strategy), string(clock) // so that the script in the report repeats the run
				if ctx.Err() != nil {
					break
				}
				subject := subjectOf(strategy, clock, !s.noLease)
				result := generatortest.Shrink(subject, generatortest.Run(subject, scenario)[0])
				skipped = cmp.Or(skipped, result.Skipped)
				r.Results = append(r.Results, result)
				table.rows = append(table.rows, rowOf(result))
			}
			if len(r.Results) == 0 {
				continue
			}
			done += len(r.Results)
			count.add(table)
			if *s.format == command.FormatText {
				table.write(s.Out, header)
			} else if err := json.NewEncoder(s.Out).Encode(r); err != nil {
				return "", err
			}
			if err := s.Out.Flush(); err != nil {
				return "", err
			}
		}
	}
	if *s.format == command.FormatText && done > 0 {
		fmt.Fprintln(s.Out, &count)
	}
	if total := len(chosen) * len(clocks) * len(scenarios); done < total {
		return "", fmt.Errorf("%w; %d of %d runs done", context.Cause(ctx), done, total)
	}
	if count.failed > 0 {
		err = command.ErrReported
	}
	return skipped, err
}

// title names a generator: its strategy as given, the spec of a named strategy, and the clock.
func title(name, spec string, clock generatortest.ClockKind) string {
	if spec != name {
		name += fmt.Sprintf(" (%s)", spec)
	}
	return name + " on " + string(clock)
}

// rowOf returns the row of a scenario.
func rowOf(r generatortest.Result) row {
	one := row{name: strings.TrimSpace(fmt.Sprintf("%-3s %s", r.Fault, r.Name)), note: r.Note}
	switch {
	case r.Skipped != "":
		one.skipped = "does not apply: " + r.Skipped
		return one
	case r.Failed():
		one.broken = r.Lines()
		one.broken[0] = strings.TrimSpace(r.Fault+" "+r.Name) + ": " + one.broken[0]
	}
	one.figures = []string{command.Number(r.Issued), command.Number(r.Errors), command.Number(r.Duplicates), command.Number(r.Disorder), r.LongestStall.String(), r.LargestLead.String()}
	return one
}
