package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/generator/generatortest"
)

const chaosListHelp = `List the scenarios that 'tickflake chaos' runs: the fault, its name, and what
happens.

With faults as arguments it prints their scripts, each of which 'tickflake chaos
--script' takes; --scripts prints those of all. A script is a text of steps, on
lines of their own or between semicolons; a # begins a comment. It begins with its
settings, if it has any:

  strategy S        as 'tickflake generate --strategy' takes it
  clock C           raw, mono or resync
  begin T           the wall's time at the start: 2026-06-01T12:00:00Z, or end-5ms
                    for a time before the generator's last
  callers N         how many ask for IDs, 1 to 64
  seed N            simulate the callers, and draw from this who comes next; without
                    any steps, they are drawn from the seed too

and goes on with its steps:

  ids 5000          so many calls; with "over 2s" they are spread over that time
  batch 100         one call for so many IDs
  stream 100        so many calls to a stream
  pass 5ms          time passes, and nobody calls
  step -1s          the wall jumps; with "at read 2" it does so as the generator
                    reads its clock for the second time from then on, 1 to 1000
  slew 0.5 for 2s   the wall runs at that rate for a while
  freeze 3ms        the clock stands still for a while
  coarse 15.6ms     from now on the clock moves in such steps; 0s ends it
  suspend 1h        the wall goes on, monotonic time does not
  leap              the wall repeats a second
  restart           the process ends in good order, and another starts on its state
  crash             the same, but nothing is closed
  takeover 10s      another starts while the process stops in the middle of a call`

// scenarioJSON is a scenario as programs see it.
type scenarioJSON struct {
	Fault  string `json:"fault"`
	Name   string `json:"name"`
	What   string `json:"what"`
	Script string `json:"script"`
}

func newChaosList(c *console) *cobra.Command {
	var chosen []string
	cmd := &cobra.Command{
		Use:   "list [FAULT...]",
		Short: "List the scenarios, or print their scripts",
		Long:  chaosListHelp,
		Example: `  tickflake chaos list
  tickflake chaos list F5 > f5.txt; tickflake chaos --script f5.txt
  tickflake chaos list --scripts
  tickflake chaos list --format json | jq -r .fault`,
		Args: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				fault, err := knownFault(arg)
				if err != nil {
					return err
				}
				chosen = append(chosen, fault)
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(faultCompletions(), cobra.ShellCompDirectiveNoFileComp),
	}
	scripts := cmd.Flags().Bool("scripts", false, "print the scripts of all")
	format := choiceFlag(cmd, "format", "output `FORMAT`", []string{formatTable, formatJSON})
	cmd.RunE = func(*cobra.Command, []string) error {
		list := scenarios(chosen)
		switch {
		case *format == formatJSON:
			return writeScenariosJSON(c.out, list)
		case *scripts || len(chosen) > 0:
			return writeScripts(c.out, list)
		}
		return writeScenarios(c.out, list)
	}
	return cmd
}

// scenarios returns those of the catalogue with one of the faults, or all if
// there are none.
func scenarios(faults []string) []generatortest.Scenario {
	return slices.DeleteFunc(generatortest.Catalogue(), func(s generatortest.Scenario) bool {
		return len(faults) > 0 && !slices.Contains(faults, s.Fault)
	})
}

func writeScenarios(w io.Writer, list []generatortest.Scenario) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Fault, s.Name, s.What)
	}
	return t.Flush()
}

func writeScenariosJSON(w io.Writer, list []generatortest.Scenario) error {
	encoder := json.NewEncoder(w)
	for _, s := range list {
		if err := encoder.Encode(scenarioJSON{s.Fault, s.Name, s.What, s.Script.Line()}); err != nil {
			return err
		}
	}
	return nil
}

// writeScripts writes the scripts, each below a comment that says what it is.
func writeScripts(w *bufio.Writer, list []generatortest.Scenario) error {
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "# %s %s: %s\n%s\n", s.Fault, s.Name, s.What, s.Script); err != nil {
			return err
		}
	}
	return nil
}
