package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `tickflake issues 64-bit unique IDs that sort by time (the Snowflake family),
takes IDs apart, explains and plans layouts: what the bits of an ID mean, and
puts its own generator through clock faults.

Exit codes:
  0        all done, or the reader of the output wanted no more (as "| head")
  1        some input was bad, IDs could not be issued or written, or chaos found
           that the generator broke a promise
  2        usage error: unknown command or flag, or a bad value of one
  130 143  stopped by SIGINT (Ctrl-C) or SIGTERM; the lines written are complete`

const rootExamples = `  tickflake generate --count 3
  tickflake decode --layout twitter 1541815603606036480
  tickflake layout list
  tickflake chaos --strategy borrow:1s`

// usageTemplate differs from cobra's own in that it shows a command that only
// holds others as one that needs one of them, and wraps what flags say.
const usageTemplate = `Usage:
  {{if not (index .Annotations "group")}}{{.UseLine}}{{end}}
{{- if .HasAvailableSubCommands}}{{if not (index .Annotations "group")}}
  {{end}}{{.CommandPath}} COMMAND{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if .HasAvailableSubCommands}}

Commands:
{{- range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}
`

// newRoot returns the command tree. It sets *started when a command, whose line
// was parsed without an error, begins to run.
func newRoot(c *console, started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:           "tickflake",
		Short:         "Issue, decode and plan 64-bit time-ordered unique IDs",
		Long:          rootHelp,
		Example:       rootExamples,
		Version:       version(),
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newGenerate(c), newDecode(c), newLayout(c), newLease(c), newChaos(c))
	root.SetHelpCommand(newHelp())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	prepare(root, started)
	return root
}

// annotationGroup marks, for the template, a command that only holds others.
const annotationGroup = "group"

// prepare walks the tree for what all commands have in common.
func prepare(cmd *cobra.Command, started *bool) {
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Annotations = map[string]string{annotationGroup: "yes"}
		cmd.Args = cobra.ArbitraryArgs // or cobra words the error of a wrong one
		cmd.RunE = runGroup
	}
	if runE := cmd.RunE; runE != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return runE(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub, started)
	}
}

// runGroup runs a command that only holds others.
func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(parent *cobra.Command, name string) error {
	parent.SuggestionsMinimumDistance = 2
	hint := ""
	if similar := parent.SuggestionsFor(name); len(similar) > 0 {
		hint = fmt.Sprintf("; did you mean %s?", strings.Join(similar, " or "))
	}
	return &usageError{fmt.Errorf("unknown command %q for %q%s", name, parent.CommandPath(), hint), parent}
}

// newHelp returns the help command. Cobra's own exits with 0 when asked about a
// command that does not exist.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(about, rest[0])
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []cobra.Completion
			for _, sub := range about.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func version() string {
	module := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
	}
	return fmt.Sprintf("%s (%s, %s/%s)", module, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
