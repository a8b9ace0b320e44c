package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
)

const listHelp = `List the faults in virtual time: the number, the name, and what happens. Those with
a command in parentheses are tests in the sources of tickflake. --kernel lists the
faults on a real kernel instead, and the generators that meet them.

With faults as arguments it prints their scripts for 'tickflake-chaos script'.

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
	var chosen []fault
	cmd := &cobra.Command{
		Use:   "list [FAULT...]",
		Short: "List the faults, or print their scripts",
		Long:  listHelp,
		Example: `  tickflake-chaos list
  tickflake-chaos list F5 > f5.txt; tickflake-chaos script f5.txt
  tickflake-chaos list --kernel`,
	}
	takeFaults(cmd, &chosen, catalogue())
	onReal := cmd.Flags().Bool("kernel", false, "list the faults and the generators of 'tickflake-chaos kernel'")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return writeScripts(c.Out, chosen)
		}
		all := catalogue()
		if *onReal {
			all = onKernel()
		}
		var rows [][]string
		for _, f := range all {
			if f.run != "" {
				f.What += " (" + f.run + ")"
			}
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

// writeScripts writes the scripts, each below a comment that names it. A fault without a
// script is the comment alone.
func writeScripts(w io.Writer, chosen []fault) error {
	for i, f := range chosen {
		if i > 0 {
			fmt.Fprintln(w)
		}
		text := f.Script.String()
		if f.run != "" {
			text = "# It is no script; in the sources of tickflake, run: " + f.run
		}
		if _, err := fmt.Fprintf(w, "# %s %s: %s\n%s\n", f.Fault, f.Name, f.What, text); err != nil {
			return err
		}
	}
	return nil
}
