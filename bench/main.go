// Command bench measures what an ID costs on this machine, beside the least that it can
// cost, beside other generators, and beside other ways to make an ID. It writes a report
// as HTML, as Markdown and as JSON.
//
//	go run ./bench                          # about 14 minutes; writes bench/report/index.html
//	go run ./bench --quick                  # about half a minute, to see how it looks
//	go run ./bench --only cost,latency      # some of the sections
//	go run -tags example ./bench --quick    # with a generator of yours: see package yours
//	go run ./bench --publish                # also writes docs/results.md and the README's table
//	go run ./bench render report.json       # writes a report again, without measuring
//
// Figures of a shared machine mean little alone. So the cases of a section run side by
// side in one process, in random order, in many rounds, and their ratios count: of two batches
// that follow each other, in the rounds that nothing disturbed. A run from which the
// hypervisor took 2% of the processors' time decides no target. Package measure does that;
// packages speed, scorecard, realkernel, spread, ways, wire and indexes have the sections;
// package results is the model of a report, and package page renders it.
//
// The cases of the report are Go benchmarks too:
//
//	go test ./bench -run '^$' -bench . -count 10 | tee new.txt   # for benchstat
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/bench/indexes"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/realkernel"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/scorecard"
	"github.com/tickflake/tickflake/bench/speed"
	"github.com/tickflake/tickflake/bench/spread"
	"github.com/tickflake/tickflake/bench/ways"
	"github.com/tickflake/tickflake/bench/wire"
	"github.com/tickflake/tickflake/chaos_test/kernel"
	"github.com/tickflake/tickflake/internal/cli"
)

func main() {
	realkernel.AddYours()
	kernel.Main() // in the virtual machine, this program is process 1
	peers.Serve() // some peers run in processes of their own, which are this program
	wire.Serve()  // so does the service
	os.Exit(execute(cli.Context(), program{sections: sections(), out: os.Stdout, err: os.Stderr}, os.Args[1:]))
}

// sections are those of the report, in its order.
func sections() []measure.Section {
	return slices.Concat(speed.Sections(), scorecard.Sections(), realkernel.Sections(), spread.Sections(), ways.Sections(), wire.Sections(), indexes.Sections())
}

const help = `bench measures what an ID costs on this machine, beside the least that it can
cost, beside other generators, and beside other ways to make an ID. It takes about
fourteen minutes, writes a report, and prints a summary of it.

Run it on a machine that has nothing else to do. A section that needs a server, such
as PostgreSQL, or QEMU, is skipped if none is installed, and says so.

Ctrl-C stops the measurements and writes the report with what there is; a second
Ctrl-C ends at once.

Exit codes:
  0        all done; the report shows a target that was missed
  1        a section failed, or a file could not be read or written
  2        usage error: unknown command or flag, or a bad value of one
  130 143  stopped by SIGINT (Ctrl-C) or SIGTERM; the report has what there was

"go run" itself exits with 1 for all but the first, and prints the code.`

// program is the sections and the streams of a command line.
type program struct {
	sections []measure.Section
	out, err io.Writer
}

// options are the values of the flags.
type options struct {
	quick   bool
	only    []string
	seed    uint32
	out     string
	publish bool
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, p program, args []string) int {
	started := false
	root := p.command(&started)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !started {
		err = cli.Usage(err) // an error before a command runs is one of its arguments
	}
	code := cli.Code(err)
	if err != nil {
		fmt.Fprintf(p.err, "bench: %v\n", err)
	}
	if code == cli.Misuse {
		fmt.Fprintln(p.err, "see 'go run ./bench --help'")
	}
	return code
}

// command returns the command tree. It sets *started when a command begins to run, whose
// line was parsed without an error.
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
				return cli.Usage(errors.New("--only: it names no section; leave it out to run all"))
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
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&o.out, "out", "", "directory to write to (default: bench/report of the repository)")
	flags.BoolVar(&o.publish, "publish", false, "also write docs/results.md and the table of the README, if the run is complete and less than 2% of the processors' time was stolen")
	root.Flags().SortFlags = false
	root.Flags().BoolVar(&o.quick, "quick", false, "take about half a minute; the figures are rough")
	root.Flags().StringSliceVar(&o.only, "only", nil, "run only these sections: "+strings.Join(p.ids(), ", "))
	root.Flags().Uint32Var(&o.seed, "seed", 0, "seed of the random order of the cases (default: another one each time)")
	root.AddCommand(&cobra.Command{
		Use:   "render REPORT.json",
		Short: "Write the pages of a report.json again, without measuring",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			*started = true
			report, err := results.ReadFile(args[0])
			if err != nil {
				return err
			}
			to, err := p.prepare(o)
			if err != nil {
				return err
			}
			return p.deliver(report, to)
		},
	})
	return root
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
			return nil, cli.Usage(fmt.Errorf("--only: no section %q; there are %s", id, strings.Join(p.ids(), ", ")))
		}
	}
	if len(o.only) == 0 {
		return p.sections, nil
	}
	return slices.DeleteFunc(slices.Clone(p.sections), func(s measure.Section) bool { return !slices.Contains(o.only, s.ID) }), nil
}

// line is the command line that repeats a run with these options.
func (o options) line() string {
	words := []string{"go run ./bench"}
	if o.quick {
		words = append(words, "--quick")
	}
	if len(o.only) > 0 {
		words = append(words, "--only "+strings.Join(o.only, ","))
	}
	return strings.Join(append(words, fmt.Sprintf("--seed %d", o.seed)), " ")
}
