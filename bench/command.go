package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitSignal plus the number of a signal is what shells report for it.
	exitSignal = 128
)

const help = `bench measures what an ID costs on this machine, beside the least that it could
cost, beside other generators, and beside other ways to make an ID. It takes about
three minutes, writes a report, and prints a summary of it.

Run it on a machine that has nothing else to do. Sections that need a server, such
as PostgreSQL, are skipped where it is not installed, and say so.

Ctrl-C stops the measurements and writes the report with what there is; a second
Ctrl-C ends at once.

Exit codes:
  0        all done; a target that was missed is shown in the report
  1        a section failed, or something could not be read or written
  2        usage error: unknown command or flag, or a bad value of one
  130 143  stopped by SIGINT (Ctrl-C) or SIGTERM; the report has what there was
"go run" itself exits with 1 for all but the first, and prints the code.`

// program is what a command line works with.
type program struct {
	sections []measure.Section
	out, err io.Writer
}

// usageError is a command line that has to be changed before it can work.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// options are what the flags say.
type options struct {
	quick  bool
	only   []string
	seed   uint32
	out    string
	readme bool
}

// execute carries out one command line and returns the exit code.
func execute(ctx context.Context, p program, args []string) int {
	started := false
	root := p.command(&started)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var interrupted *interruption
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &interrupted):
		fmt.Fprintf(p.err, "bench: %v: the report is incomplete\n", err)
		return exitSignal + int(interrupted.signal)
	case errors.As(err, &usage) || !started:
		// Whatever fails before a command runs is the fault of its arguments.
		fmt.Fprintf(p.err, "bench: %v\nsee 'go run ./bench --help'\n", err)
		return exitUsage
	}
	fmt.Fprintf(p.err, "bench: %v\n", err)
	return exitFailed
}

// command returns the command tree. It sets *started when a command, whose line was
// parsed without an error, begins to run.
func (p program) command(started *bool) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "bench",
		Short: "Measure what an ID costs, and write a report",
		Long:  help,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			*started = true
			if cmd.Flags().Changed("only") && len(o.only) == 0 {
				return usageError{errors.New("--only: it names no section; leave it out to run all")}
			}
			if !cmd.Flags().Changed("seed") {
				o.seed = rand.Uint32()
			}
			return p.run(cmd.Context(), o)
		},
		SilenceErrors:     true, // execute prints them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(p.out)
	root.SetErr(p.err)
	flags := root.Flags()
	flags.SortFlags = false
	flags.BoolVar(&o.quick, "quick", false, "take under half a minute; the figures are rough")
	flags.StringSliceVar(&o.only, "only", nil, "run only these sections: "+strings.Join(p.ids(), ", "))
	flags.Uint32Var(&o.seed, "seed", 0, "seed of the random order of the cases (default: another one each time)")
	flags.StringVar(&o.out, "out", "", "directory to write to (default: bench/report of the repository)")
	flags.BoolVar(&o.readme, "update-readme", false, "also put the results into README.md and docs/results.md")
	root.AddCommand(&cobra.Command{
		Use:   "compare BEFORE.json AFTER.json",
		Short: "Show what changed from one report.json to another",
		Long: "compare shows the cells that both reports have: medians, the change in percent where it is\n" +
			"significant (p < 0.05 by the Mann-Whitney U test; otherwise ~), and geometric means.",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			*started = true
			return p.compare(args[0], args[1])
		},
	})
	return root
}

func (p program) compare(before, after string) error {
	a, err := results.ReadFile(before)
	if err != nil {
		return err
	}
	b, err := results.ReadFile(after)
	if err != nil {
		return err
	}
	return results.Compare(a, b).Write(p.out)
}

// ids are those of all sections.
func (p program) ids() []string {
	var ids []string
	for _, s := range p.sections {
		ids = append(ids, s.ID)
	}
	return ids
}

// chosen are the sections that the flags ask for, in the order of the report.
func (p program) chosen(o options) ([]measure.Section, error) {
	for _, id := range o.only {
		if !slices.Contains(p.ids(), id) {
			return nil, usageError{fmt.Errorf("--only: no section %q; there are %s", id, strings.Join(p.ids(), ", "))}
		}
	}
	if len(o.only) == 0 {
		return p.sections, nil
	}
	return slices.DeleteFunc(slices.Clone(p.sections), func(s measure.Section) bool { return !slices.Contains(o.only, s.ID) }), nil
}

// line is the command line that does the same again, with the sections given or with
// those of the options.
func (o options) line(only ...string) string {
	words := []string{"go run ./bench"}
	if o.quick {
		words = append(words, "--quick")
	}
	if len(only) == 0 {
		only = o.only
	}
	if len(only) > 0 {
		words = append(words, "--only "+strings.Join(only, ","))
	}
	return strings.Join(append(words, fmt.Sprintf("--seed %d", o.seed)), " ")
}
