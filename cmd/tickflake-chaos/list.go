package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/generator/generatortest"
)

const listHelp = `List the faults in virtual time: the number, the name, and what happens. Those of
docs/faults.md that take more than one generator, or its disk, are tests in the
sources of tickflake. --kernel lists the faults on a real kernel instead, and the
generators that meet them.

With faults as arguments it prints their scripts for 'tickflake-chaos run --script'.

A script is a list of steps, on lines of their own or between semicolons; a # begins
a comment. Settings come first:

  strategy S   clock raw|mono|resync   begin T   callers N

Then the steps, where D is a time such as 5ms, and what stands in brackets may be
left out:

  ids N [over D]   batch N   stream N   pass D   restart   crash [at read N]
  step D [at read N]   slew R for D   freeze D   coarse D   suspend D   leap
  takeover D

The doc of Script in package generator/generatortest says what each does.`

func newList(c *command.Console) *cobra.Command {
	var chosen []generatortest.Scenario
	cmd := &cobra.Command{
		Use:   "list [FAULT...]",
		Short: "List the faults, or print their scripts",
		Long:  listHelp,
		Example: `  tickflake-chaos list
  tickflake-chaos list F5 > f5.txt; tickflake-chaos run --script f5.txt
  tickflake-chaos list --kernel`,
	}
	takeFaults(cmd, &chosen, generatortest.Catalogue())
	onReal := cmd.Flags().Bool("kernel", false, "list the faults and the generators of 'tickflake-chaos kernel'")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			for i, f := range chosen {
				if i > 0 {
					fmt.Fprintln(c.Out)
				}
				fmt.Fprintf(c.Out, "# %s %s: %s\n%s\n", f.Fault, f.Name, f.What, f.Script)
			}
			return nil // a failed write shows when the output is flushed
		}
		if *onReal {
			chosen = onKernel()
		}
		var rows [][]string
		for _, f := range chosen {
			rows = append(rows, []string{f.Fault, f.Name, f.What})
		}
		if *onReal {
			rows = append(rows, nil)
			for _, s := range kernel.Subjects() {
				rows = append(rows, []string{s.Name, string(s.Group), s.How})
			}
		}
		return command.Table(c.Out, nil, rows)
	}
	return cmd
}

// onKernel returns the faults on a real kernel: each by its name, and with its kind.
func onKernel() (all []generatortest.Scenario) {
	for _, f := range kernel.Faults() {
		all = append(all, generatortest.Scenario{Fault: f.Name, Name: string(f.Kind), What: f.About})
	}
	return all
}

// takeFaults makes the arguments of a command faults of all, by their numbers or names: all if there is no argument.
func takeFaults(cmd *cobra.Command, into *[]generatortest.Scenario, all []generatortest.Scenario) {
	is := func(f generatortest.Scenario, name string) bool {
		return strings.EqualFold(f.Fault, name) || strings.EqualFold(f.Name, name)
	}
	cmd.Args = func(_ *cobra.Command, names []string) error {
		for _, name := range names {
			if !slices.ContainsFunc(all, func(f generatortest.Scenario) bool { return is(f, name) }) {
				return fmt.Errorf("no fault %q for this command; 'tickflake-chaos list' and 'tickflake-chaos list --kernel' have the names", name)
			}
		}
		*into = slices.DeleteFunc(slices.Clone(all), func(f generatortest.Scenario) bool {
			return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return is(f, name) })
		})
		return nil
	}
}
