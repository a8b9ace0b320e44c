package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

const chaosHelp = `Run tickflake's generator under clock faults and check its promises.

Without --script it runs the catalogue of 'tickflake chaos list' in virtual time,
on a layout of 16 IDs per tick, so that ticks run out. Each line of the table is
one scenario: ✓ all promises kept, ✗ a promise broken, - does not apply. STALL is
the longest call, LEAD the furthest that an ID was ahead of its clock. The
promises are: no ID twice; each ID above all IDs that were returned before its
call began; no stall and no lead beyond what the strategy allows; the right error.
Violations are listed below the table, each with the script that repeats it.

The generator has a lease in a store in memory: grants of 3 seconds, and one node
number for all processes of a script. With --no-lease the generator has a fixed node
number and keeps no state, so scenarios with restarts do not apply.

--script runs a script: the output of 'tickflake chaos list F5', or the one in a
report. A script names its strategy and clock (default and raw if it does not);
--strategy and --clock override them. A script that does not apply is a failure.

JSON is one object per generator, on a line of its own; times are in nanoseconds.
JUnit is one test suite per generator and one test case per scenario.

The exit code is 1 if a promise was broken.

` + chaosKernelHelp

const chaosExamples = `  tickflake chaos
  tickflake chaos --strategy borrow:1s,wait:5s --strategy reject --clock all
  tickflake chaos --strategy all --clock all --format junit > chaos.xml
  tickflake chaos --fault F5 --fault F9 --clock raw
  tickflake chaos --fault F11,F12,F13 --strategy all --clock all
  tickflake chaos list F5 > f5.txt; tickflake chaos --script f5.txt --strategy wait
  echo 'strategy reject; ids 20; step -1s; ids 5' | tickflake chaos --script -
  tickflake chaos --kernel --fault step-back-1s
  tickflake chaos --kernel --subject tickflake --format junit > kernel.xml
  CGO_ENABLED=0 go build -o mine . && tickflake chaos --kernel --program ./mine`

const (
	formatTable = "table"
	formatJUnit = "junit"

	// all is the value that stands for every other value of a flag.
	all = "all"
)

// presetStrategies are the strategies of --strategy all: the rows of the table in docs/strategy.md.
var presetStrategies = []string{
	"reject", "wait:5ms", "wait", "borrow:1s", "borrow:1s,wait:5s", "default", "twitter", "leaf", "last-timestamp-plus-one",
}

// chaos is the command. Tests replace its subjects.
type chaos struct {
	*console
	// subject has a lease, unleased has not.
	subject, unleased func(strategies.Strategy, generatortest.ClockKind) generatortest.Subject[snowflake.ID]

	format     *string
	strategies []namedStrategy // as given
	clocks     []generatortest.ClockKind
	faults     []string // as given; then, by resolve, those of the catalogue
	script     string
	noLease    bool

	bench    bench
	kernel   bool
	subjects []string // names and groups
	program  string
	args     []string // of program
	ordered  bool
}

// namedStrategy is a strategy and its name on the command line. It does not embed the
// strategy: that would hide the strategy's other methods from type assertions.
type namedStrategy struct {
	name     string
	strategy strategies.Strategy
}

func newChaos(c *console) *cobra.Command { return realChaos(c).command() }

// realChaos returns the command for the real generator.
func realChaos(c *console) *chaos {
	return &chaos{
		console: c,
		subject: func(s strategies.Strategy, clock generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
			return leasetest.Leased{Strategy: s, Clock: clock}.Subject()
		},
		unleased: func(s strategies.Strategy, clock generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
			return generatortest.Tickflake(s, clock)
		},
		bench: realBench(),
	}
}

func (k *chaos) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "chaos [flags] [-- ARG...]",
		Short:   "Run the generator under clock faults",
		Long:    chaosHelp,
		Example: chaosExamples,
		Args:    k.arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case k.kernel:
				return k.onKernel(cmd.Context())
			case cmd.Flags().Changed("script"):
				return k.replay(cmd.Context())
			}
			return k.catalogue(cmd.Context())
		},
	}
	cmd.Flags().SortFlags = false
	k.strategyFlag(cmd)
	k.clockFlag(cmd)
	k.faultFlag(cmd)
	cmd.Flags().BoolVar(&k.noLease, "no-lease", false, "use a fixed node number and keep no state across restarts")
	cmd.Flags().StringVar(&k.script, "script", "", "replay the script in `FILE`, - for standard input")
	cmd.MarkFlagsMutuallyExclusive("script", "fault")
	k.kernelFlags(cmd)
	k.format = choiceFlag(cmd, "format", "output `FORMAT`", []string{formatTable, formatJSON, formatJUnit})
	cmd.AddCommand(newChaosList(k.console))
	return cmd
}

func (k *chaos) strategyFlag(cmd *cobra.Command) {
	cmd.Flags().Func("strategy", "`SPEC` of a strategy, as 'tickflake generate' takes it, or all for the "+
		fmt.Sprint(len(presetStrategies))+" best known; may be repeated (default \"default\")",
		func(s string) error {
			names := []string{s}
			if s == all {
				names = presetStrategies
			}
			for _, name := range names {
				strategy, err := strategies.Parse(name)
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(k.strategies, func(n namedStrategy) bool { return n.name == name }) {
					k.strategies = append(k.strategies, namedStrategy{name, strategy})
				}
			}
			return nil
		})
	completeFlag(cmd, "strategy", append(strategyCompletions(), cobra.CompletionWithDesc(all, "the "+fmt.Sprint(len(presetStrategies))+" best known")))
}

func (k *chaos) clockFlag(cmd *cobra.Command) {
	cmd.Flags().Func("clock", "`CLOCK` that the generator reads: raw (the wall), mono (monotonic time, which no step reaches), "+
		"resync (mono that catches up after a suspend) or all; may be repeated (default raw and mono)",
		func(s string) error {
			kinds := generatortest.ClockKinds
			if s != all {
				kind, err := generatortest.ParseClockKind(s)
				if err != nil {
					return fmt.Errorf("want raw, mono, resync or all, got %q", s)
				}
				kinds = []generatortest.ClockKind{kind}
			}
			for _, kind := range kinds {
				if !slices.Contains(k.clocks, kind) {
					k.clocks = append(k.clocks, kind)
				}
			}
			return nil
		})
	completeFlag(cmd, "clock", []cobra.Completion{
		cobra.CompletionWithDesc("raw", "the wall clock"),
		cobra.CompletionWithDesc("mono", "monotonic time, which no step reaches"),
		cobra.CompletionWithDesc("resync", "mono that catches up after a suspend"),
		all,
	})
}

func (k *chaos) faultFlag(cmd *cobra.Command) {
	cmd.Flags().Func("fault", "only the scenarios of `FAULT`, such as F5, leap-second or F5,F9; may be repeated (default all)", func(s string) error {
		k.faults = append(k.faults, strings.Split(s, ",")...)
		return nil
	})
	if err := cmd.RegisterFlagCompletionFunc("fault", k.faultCompletions); err != nil {
		panic(err) // no such flag
	}
}

// chosen returns the strategies and clocks of the flags, or else the given defaults.
func (k *chaos) chosen(strategy namedStrategy, clocks ...generatortest.ClockKind) ([]namedStrategy, []generatortest.ClockKind) {
	chosen := k.strategies
	if len(chosen) == 0 {
		chosen = []namedStrategy{strategy}
	}
	if len(k.clocks) > 0 {
		clocks = k.clocks
	}
	return chosen, clocks
}

// title names a generator: its strategy as given, the spec of a named strategy, and the
// clock.
func (k *chaos) title(s namedStrategy, clock generatortest.ClockKind) string {
	text := s.name
	if spec := fmt.Sprint(s.strategy); spec != s.name {
		text += fmt.Sprintf(" (%s)", spec)
	}
	text += " on " + string(clock)
	if k.noLease {
		text += ", no lease"
	}
	return text
}
