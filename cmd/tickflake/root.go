package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `tickflake issues 64-bit unique IDs that sort by time (the Snowflake family),
decodes IDs, explains and plans layouts (what the bits of an ID mean), shows and
releases node numbers, issues the counted numbers of sequences, serves IDs and
numbers to programs in any language, and runs its generator under clock faults.

Exit codes:
  0        done, or the reader closed the output (as "| head" does); serve: drained
           after SIGINT or SIGTERM
  1        bad input, IDs or numbers that could not be issued or written, a store
           that failed or forgets writes, or a promise that chaos found broken;
           serve: a drain that was cut short, or a node number that was lost
  2        usage error: an unknown command or flag, or a bad value
  130 143  stopped by SIGINT (Ctrl-C) or SIGTERM; the lines written are complete`

const rootExamples = `  tickflake generate --count 3
  tickflake decode --layout twitter 1541815603606036480
  tickflake layout list
  tickflake sequence next orders
  tickflake serve
  tickflake chaos --strategy borrow:1s`

// newRoot returns the command tree. It sets *started when a command, whose line
// was parsed without an error, begins to run.
func newRoot(c *console, started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:           "tickflake",
		Short:         "Issue, decode and plan 64-bit time-ordered unique IDs; issue counted numbers",
		Long:          rootHelp,
		Example:       rootExamples,
		Version:       version(),
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newGenerate(c), newDecode(c), newLayout(c), newLease(c), newSequence(c), newServe(c), newChaos(c), newMan())
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it was just added
	help.Args = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		return stray(cmd, rest)
	}
	root.InitDefaultCompletionCmd()
	prepare(root, started)
	return root
}

// stray returns an error if the rest of a line that [cobra.Command.Find] read begins with a
// word that is no subcommand of cmd. Cobra itself would speak of a flag after it, or show the
// help of cmd.
func stray(cmd *cobra.Command, rest []string) error {
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return cobra.NoArgs(cmd, rest)
	}
	return nil
}

// prepare makes every command of the tree set *started when it runs, and a command that
// only has subcommands print its help.
func prepare(cmd *cobra.Command, started *bool) {
	runE := cmd.RunE
	if cmd.HasSubCommands() && !cmd.Runnable() {
		runE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if cmd.HasSubCommands() && cmd.HasParent() && cmd.Args == nil { // for the root, cobra does it and suggests names
		cmd.Args = cobra.NoArgs
	}
	if runE != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return runE(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub, started)
	}
}

func version() string {
	return fmt.Sprintf("%s (%s, %s/%s)", moduleVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(unknown)"
}
