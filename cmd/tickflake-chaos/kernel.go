package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/generator/generatortest"
)

const kernelHelp = `Put generators through the faults of 'tickflake-chaos list --kernel', or those given,
on a real Linux kernel in a virtual machine that needs no rights: clocks are really
stepped, slewed and suspended, processes killed, disks cut off. The generators are
tickflake's and those of other projects. Each table is one fault. ✗ is a broken
promise: one of another project does not change the exit code. ! are duplicates that
are documented. STALL is the longest call, less what an idle thread stood still; a
program shows no STALL and no LEAD. JSON is one object. Most faults take about 12
seconds, 4 of them for the boot, and the longest about a minute; all take about 7
minutes on two processors.

It needs Linux on x86-64 and QEMU (apt-get install qemu-system-x86). The kernel is
that of $TICKFLAKE_KERNEL, of the user's cache directory or of this host; if there is
none, Debian's is downloaded into the cache directory with apt-get, which needs no
rights either.

--program tests a program of yours instead. It prints one ID per line, for as long
as it runs; it must be built for Linux on x86-64, and can be in any compiled
language: the machine has no shell. It is started, killed and started again as the
fault says, in a directory of its own. No ID may come twice. With --ordered,
the IDs of each process must ascend too: as numbers if they are, else as text.`

// runFaults is [kernel.Run]. Tests replace it.
var runFaults = kernel.Run

func newKernel(c *command.Console) *cobra.Command {
	var chosen []generatortest.Scenario
	var o kernel.Options
	cmd := &cobra.Command{
		Use:   "kernel [FAULT...] [-- ARG...]",
		Short: "Put generators, or a program of yours, through faults on a real kernel",
		Long:  kernelHelp,
		Example: `  tickflake-chaos kernel step-back-1s
  tickflake-chaos kernel --subject tickflake --format json
  CGO_ENABLED=0 go build -o mine . && tickflake-chaos kernel --program ./mine`,
	}
	takeFaults(cmd, &chosen, onKernel())
	takes := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args, o.Args = args[:dash], args[dash:]
		}
		err := takes(cmd, args)
		switch {
		case err != nil:
			return err
		case o.Program == "" && cmd.Flags().Changed("program"):
			return errors.New("--program: want the path of a program")
		case o.Program == "" && o.Ordered:
			return errors.New("--ordered cannot be used without --program")
		case o.Program == "" && len(o.Args) > 0:
			return fmt.Errorf("%q stands after --, but there is no --program that gets it", o.Args[0])
		}
		return nil
	}
	cmd.Flags().SortFlags = false
	command.Flag(cmd, "subject", "only the `NAME`d generator, or those of tickflake or peer; may be repeated (default all)", &o.Subjects, func(s string) ([]string, error) {
		named := namedSubjects(s)
		if len(named) == 0 {
			return nil, fmt.Errorf("no generator %q; 'tickflake-chaos list --kernel' has the names", s)
		}
		return append(o.Subjects, named...), nil
	})
	cmd.Flags().StringVar(&o.Program, "program", "", "test the program at `PATH`, which prints one ID per line; its arguments stand after --")
	cmd.Flags().BoolVar(&o.Ordered, "ordered", false, "with --program, the IDs of a process must ascend")
	cmd.MarkFlagsMutuallyExclusive("subject", "program")
	format := command.FormatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > len(o.Args) { // else all
			for _, f := range chosen {
				o.Faults = append(o.Faults, f.Fault)
			}
		}
		return runKernel(cmd.Context(), c, o, len(chosen), *format)
	}
	return cmd
}

// namedSubjects returns the generators with a name or of a group.
func namedSubjects(name string) (names []string) {
	for _, s := range kernel.Subjects() {
		if s.Name == name || string(s.Group) == name {
			names = append(names, s.Name)
		}
	}
	return names
}

// runKernel runs the faults, of which there are so many, and reports them.
func runKernel(ctx context.Context, c *command.Console, o kernel.Options, total int, format string) error {
	progress := c.Progress()
	o.Progress = func(fault, text string) { progress(fault + ": " + text) }
	o.Fetch = true
	report, err := runFaults(ctx, o)
	progress("")
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && len(report.Rows)+len(report.Skipped) == 0 {
		return err
	}
	suites := suitesOf(report)
	var count tally
	for _, s := range suites {
		count.add(s)
	}
	if format == command.FormatJSON {
		if err := json.NewEncoder(c.Out).Encode(report); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.Out, "%s, QEMU %s\n\n", report.Kernel, report.QEMU)
		for _, s := range suites {
			s.write(c.Out, []string{"", "GENERATOR", "IDS", "ERRORS", "DUPLICATES", "DISORDER", "STALL", "LEAD", "RECOVERY"})
		}
		fmt.Fprintln(c.Out, &count) // a failed write shows when the output is flushed
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; %d of %d faults done", err, len(suites)-len(report.Skipped), total)
	case count.failed > 0:
		return command.ErrReported
	case len(o.Faults) > 0 && len(report.Skipped) > 0: // it was asked for by its name
		return fmt.Errorf("%s was not run: %s", report.Skipped[0].Fault, report.Skipped[0].Why)
	}
	return nil
}

// suitesOf returns a suite for each fault, with a row for each generator. A fault that was not
// run has one row.
func suitesOf(report kernel.Report) (suites []suite) {
	about := map[string]string{}
	for _, f := range kernel.Faults() {
		about[f.Name] = f.About + "\n"
	}
	at := func(fault string) *suite {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.name == fault })
		if i < 0 {
			i = len(suites)
			suites = append(suites, suite{name: fault, about: about[fault]})
		}
		return &suites[i]
	}
	for _, r := range report.Rows {
		s := at(r.Fault)
		s.rows = append(s.rows, kernelRow(r))
	}
	for _, clock := range report.Clocks {
		s := at(clock.Fault)
		s.about += clockLine(clock) + "\n"
	}
	for _, skip := range report.Skipped {
		s := at(skip.Fault)
		s.rows = append(s.rows, row{name: "all", skipped: "was not run: " + skip.Why})
	}
	return suites
}

func kernelRow(r kernel.Row) row {
	v := r.Verdict
	one := row{name: r.Subject, known: r.Known != "", peer: r.Group == kernel.Peers}
	one.note = strings.Trim(r.Known+"; "+r.Note, "; ")
	recovery := shortTime(v.Recovery)
	if v.Recovery < 0 {
		recovery = "never"
	}
	one.figures = []string{command.Number(v.IDs), command.Number(v.Failed), command.Number(v.Duplicates), command.Number(v.Disorder), shortTime(v.Stall), shortTime(v.Lead), recovery}
	if r.Group == kernel.Program { // it says neither how long a call took nor what its clock showed
		one.figures[4], one.figures[5] = "", ""
	}
	if len(r.Broken) > 0 {
		one.broken = slices.Clone(r.Broken)
		one.broken[0] = fmt.Sprintf("%s, %s: %s", r.Fault, r.Subject, r.Broken[0])
		if v.Error != "" && !strings.Contains(strings.Join(r.Broken, "\n"), v.Error) {
			one.broken = append(one.broken, "first error: "+v.Error)
		}
		for i, text := range one.broken {
			one.broken[i] = command.Visible(text)
		}
	}
	return one
}

// clockLine says how far the clocks moved.
func clockLine(c kernel.Clock) string {
	line := fmt.Sprintf("in %s of the host, CLOCK_REALTIME moved by %s and CLOCK_MONOTONIC by %s", shortTime(c.Host), shortTime(c.Realtime), shortTime(c.Monotonic))
	if shortTime(c.Boottime) != shortTime(c.Monotonic) {
		line += ", CLOCK_BOOTTIME by " + shortTime(c.Boottime)
	}
	if c.Note != "" {
		line += "; " + c.Note
	}
	return line
}

// shortTime rounds a time to three digits or so: to microseconds at least, and at most to tenths of a second.
func shortTime(s generatortest.Seconds) string {
	unit := time.Microsecond
	for unit < 100*time.Millisecond && time.Duration(s).Abs() >= 1000*unit {
		unit *= 10
	}
	return time.Duration(s).Round(unit).String()
}
