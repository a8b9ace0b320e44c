package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/internal/simulation"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

const chaosHelp = `Put tickflake's own generator through clock faults, and say what became of it.

Without --script and --seeds it runs the catalogue of 'tickflake chaos list' in
virtual time, on a layout of 16 IDs per tick, so that ticks run out. Each line of
the table is one scenario: ✓ kept all promises, ✗ broke one, - does not apply.
STALL is the longest that a call took, LEAD the furthest that an ID was ahead of
its clock. The promises are: no ID twice, each ID above all that were returned
before its call began, no stall and no lead beyond what the strategy allows, and
the right error. What was broken is listed below the table, with the script that
shows it.

The generator is under a lease, which keeps in memory what a process leaves to the
next: 3 seconds at a time are granted, and the processes of a script share a node
number. With --no-lease its node number is given by hand, it keeps nothing, and the
scenarios in which processes end do not apply.

--script replays a script, which is what 'tickflake chaos list F5' prints and what
a failure ends with. It says itself which strategy and clock it is for (default
and raw if it does not); --strategy and --clock, if given, take their place. A
script that cannot be run counts as a failure.

--seeds searches for races. Each seed makes a program of a few callers and some
faults, and runs it step by step: who comes next at each access to shared memory
and each reading of the clock is drawn from the seed. So a seed always does the
same, and the lowest one that fails is printed with its script. A script with a
line "seed N" is run in this way too.

JSON is one object per generator, on a line of its own; times are in nanoseconds.
JUnit is one test suite per generator and one test case per scenario.

The exit code is 1 if a promise was broken.`

const chaosExamples = `  tickflake chaos
  tickflake chaos --strategy borrow:1s,wait:5s --strategy reject --clock all
  tickflake chaos --strategy all --clock all --format junit > chaos.xml
  tickflake chaos --fault F5 --fault F9 --clock raw
  tickflake chaos --fault F11,F12,F13 --strategy all --clock all
  tickflake chaos list F5 > f5.txt; tickflake chaos --script f5.txt --strategy wait
  echo 'strategy reject; ids 20; step -1s; ids 5' | tickflake chaos --script -
  tickflake chaos --seeds 100000
  tickflake chaos --seeds 1 --from 17 --trace`

const (
	formatTable = "table"
	formatJUnit = "junit"

	// all stands for every value of a flag.
	all = "all"
	// maxParallel is more than any machine can use.
	maxParallel = 4096
)

// presetStrategies are what --strategy all stands for: the rows of the README's
// table.
var presetStrategies = []string{
	"reject", "wait:5ms", "wait", "borrow:1s", "borrow:1s,wait:5s", "default", "twitter", "leaf", "last-timestamp-plus-one",
}

// chaos is the command. What it puts to the test can be replaced in tests.
type chaos struct {
	*console
	// subject is under a lease, and unleased is not.
	subject, unleased func(strategies.Strategy, generatortest.ClockKind) generatortest.Subject[snowflake.ID]

	program func(seed uint64) simulation.Config
	// simulate runs a script with a seed and with steps.
	simulate func(simulation.Config) simulation.Result

	format                *string
	strategies            []namedStrategy // as given
	clocks                []generatortest.ClockKind
	faults                []string
	script                string
	seeds, from, parallel int64
	trace, noLease        bool
}

// namedStrategy is a strategy and what the command line calls it. It is none
// itself: as one, it would hide what else a strategy can do than decide.
type namedStrategy struct {
	name     string
	strategy strategies.Strategy
}

func newChaos(c *console) *cobra.Command { return realChaos(c).command() }

// realChaos puts the real generator to the test.
func realChaos(c *console) *chaos {
	return &chaos{
		console: c,
		subject: func(s strategies.Strategy, clock generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
			return leasetest.Leased{Strategy: s, Clock: clock}.Subject()
		},
		unleased: func(s strategies.Strategy, clock generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
			return generatortest.Tickflake(s, clock)
		},
		program:  simulation.Random,
		simulate: simulation.Run,
	}
}

func (k *chaos) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "chaos",
		Short:   "Put the generator through clock faults",
		Long:    chaosHelp,
		Example: chaosExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := k.check(cmd); err != nil {
				return &usageError{err: err}
			}
			switch {
			case cmd.Flags().Changed("script"):
				return k.replay(cmd.Context())
			case cmd.Flags().Changed("seeds"):
				return k.search(cmd.Context())
			}
			return k.catalogue(cmd.Context())
		},
	}
	cmd.Flags().SortFlags = false
	k.strategyFlag(cmd)
	k.clockFlag(cmd)
	k.faultFlag(cmd)
	cmd.Flags().BoolVar(&k.noLease, "no-lease", false, "give the node number by hand, so that nothing survives a restart")
	cmd.Flags().StringVar(&k.script, "script", "", "replay the script in `FILE`, - for standard input")
	k.seedFlags(cmd)
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
		for name := range strings.SplitSeq(s, ",") {
			fault, err := knownFault(name)
			if err != nil {
				return err
			}
			k.faults = append(k.faults, fault)
		}
		return nil
	})
	completeFlag(cmd, "fault", faultCompletions())
}

func (k *chaos) seedFlags(cmd *cobra.Command) {
	k.from, k.parallel = 1, int64(runtime.GOMAXPROCS(0))
	number := func(value *int64, name, usage string, most int64) {
		cmd.Flags().Func(name, usage, func(s string) error {
			n, err := wholeNumber(s)
			switch {
			case err != nil:
				return err
			case n < 1:
				return fmt.Errorf("want at least 1, got %d", n)
			case most > 0 && n > most:
				return fmt.Errorf("want at most %d, got %d", most, n)
			}
			*value = n
			return nil
		})
	}
	number(&k.seeds, "seeds", "simulate the programs of `N` seeds", 0)
	number(&k.from, "from", "the first seed `S` (default 1)", 0)
	number(&k.parallel, "parallel", "simulate `P` at once; the result does not depend on it (default the number of CPUs)", maxParallel)
	cmd.Flags().BoolVar(&k.trace, "trace", false, "print each step of the simulation, of one seed or of a script with a seed")
}

// check returns an error if some of the flags given do not go together.
func (k *chaos) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	clash := func(flag string, others ...string) error {
		for _, other := range others {
			if given(flag) && given(other) {
				return fmt.Errorf("--%s does not go with --%s", other, flag)
			}
		}
		return nil
	}
	if err := clash("script", "fault", "seeds", "from", "parallel"); err != nil {
		return err
	}
	if err := clash("seeds", "strategy", "clock", "fault", "no-lease"); err != nil {
		return err
	}
	for _, flag := range []string{"from", "parallel"} {
		if given(flag) && !given("seeds") {
			return fmt.Errorf("--%s needs --seeds", flag)
		}
	}
	switch {
	case !k.trace:
	case !given("script") && k.seeds != 1:
		return fmt.Errorf("--trace needs --seeds 1, or a --script with a seed")
	case *k.format != formatTable:
		return fmt.Errorf("--trace does not go with --format %s", *k.format)
	}
	return nil
}

// chosen returns the strategies and clocks to run: those given, or else these.
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

// title names a generator for people: as its strategy was given, and what that
// means if it was a name.
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
