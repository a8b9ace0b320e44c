package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/generator/generatortest"
)

const chaosListHelp = `List the scenarios: the fault, its name, and what happens. 'tickflake chaos' does
not run those with a command in parentheses: they are tests in the sources of
tickflake.

With faults as arguments it prints their scripts for 'tickflake chaos --script';
--scripts prints all scripts. --kernel lists the faults of a real kernel instead,
which have no scripts, and the generators that meet them.

A script is a list of steps, on lines of their own or between semicolons; a # begins
a comment. Settings come first:

  strategy S        as 'tickflake generate --strategy' takes it
  clock C           raw, mono or resync
  begin T           the wall's time at the start: 2026-06-01T12:00:00Z, or end-5ms
                    for a time before the generator's last
  callers N         the number of callers, 1 to 64

Then the steps:

  ids 5000          5000 calls; with "over 2s" they are spread over that time
  batch 100         one call for 100 IDs
  stream 100        100 calls to a stream
  pass 5ms          time passes without calls
  step -1s          the wall jumps; with "at read 2" it does so as the generator
                    reads its clock for the second time from then on, 1 to 1000
  slew 0.5 for 2s   the wall runs at that rate for a while
  freeze 3ms        the clock stands still for a while
  coarse 15.6ms     from now on the clock moves in such steps; 0s ends it
  suspend 1h        the wall goes on, monotonic time does not
  leap              the wall repeats a second
  restart           the process closes its generator, and another starts on its state
  crash             the same, but nothing is closed; with "at read 2" it comes
                    within a call, as the generator reads its clock for the second time
  takeover 10s      the process stops within a call; another starts meanwhile`

// scenarioJSON is the JSON of a scenario.
type scenarioJSON struct {
	Fault  string `json:"fault"`
	Name   string `json:"name"`
	What   string `json:"what"`
	Script string `json:"script,omitempty"`
	Run    string `json:"run,omitempty"` // the command that runs it, if it has no script

	lines string // of the script
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
  tickflake chaos list --kernel
  tickflake chaos list --format json | jq -r .fault`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("kernel") && len(args) > 0 {
				return fmt.Errorf("--kernel lists all faults of the real kernel, and takes no arguments, got %q", args[0])
			}
			for _, arg := range args {
				if e, ok := elsewhereOf(arg); ok {
					chosen = append(chosen, e.Fault)
					continue
				}
				fault, err := knownFault(arg)
				if err != nil {
					return err
				}
				chosen = append(chosen, fault)
			}
			return nil
		},
		ValidArgsFunction: listedCompletions,
	}
	scripts := cmd.Flags().Bool("scripts", false, "print the scripts of all")
	onKernel := cmd.Flags().Bool("kernel", false, "list the faults and the generators of 'tickflake chaos --kernel'")
	cmd.MarkFlagsMutuallyExclusive("scripts", "kernel")
	format := choiceFlag(cmd, "format", "output `FORMAT`", []string{formatTable, formatJSON})
	cmd.RunE = func(*cobra.Command, []string) error {
		list := listed(chosen)
		switch {
		case *onKernel && *format == formatJSON:
			return writeKernelJSON(c.out)
		case *onKernel:
			return writeKernelList(c.out)
		case *format == formatJSON:
			return writeScenariosJSON(c.out, list)
		case *scripts || len(chosen) > 0:
			return writeScripts(c.out, list)
		}
		return writeScenarios(c.out, list)
	}
	return cmd
}

// scenarios returns the scenarios of the faults, or the whole catalogue if there are none.
func scenarios(faults []string) []generatortest.Scenario {
	return slices.DeleteFunc(generatortest.Catalogue(), func(s generatortest.Scenario) bool {
		return len(faults) > 0 && !slices.Contains(faults, s.Fault)
	})
}

// listed returns the same scenarios and those of elsewhere, by their numbers.
func listed(faults []string) []scenarioJSON {
	var list []scenarioJSON
	for _, s := range scenarios(faults) {
		list = append(list, scenarioJSON{Fault: s.Fault, Name: s.Name, What: s.What, Script: s.Script.Line(), lines: s.Script.String()})
	}
	for _, e := range elsewhere {
		if len(faults) == 0 || slices.Contains(faults, e.Fault) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b scenarioJSON) int { return cmp.Compare(a.number(), b.number()) })
	return list
}

// number is the 5 of F5.
func (s scenarioJSON) number() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(s.Fault, "F"))
	return n
}

func writeScenarios(w io.Writer, list []scenarioJSON) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range list {
		note := ""
		if s.Run != "" {
			note = fmt.Sprintf(" (%s)", s.Run)
		}
		fmt.Fprintf(t, "%s\t%s\t%s%s\n", s.Fault, s.Name, s.What, note)
	}
	return t.Flush()
}

func writeScenariosJSON(w io.Writer, list []scenarioJSON) error {
	encoder := json.NewEncoder(w)
	for _, s := range list {
		if err := encoder.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

// writeScripts writes the scripts, each below a comment that names it. A fault without a
// script is the comment alone.
func writeScripts(w *bufio.Writer, list []scenarioJSON) error {
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		text := s.lines
		if s.Run != "" {
			text = "# It is no script; in the sources of tickflake, run: " + s.Run
		}
		if _, err := fmt.Fprintf(w, "# %s %s: %s\n%s\n", s.Fault, s.Name, s.What, text); err != nil {
			return err
		}
	}
	return nil
}
