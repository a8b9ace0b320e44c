// Command bench measures what an ID costs on this machine, beside the least that it can
// cost, beside other generators, and beside other ways to make an ID. It writes a page of Markdown
// for people, and all samples as text for benchstat.
//
//	go run ./bench                          # about 18 minutes; writes bench/out/report.md
//	go run ./bench --quick                  # about half a minute, to see how it looks
//	go run ./bench --only cost,latency      # some of the sections
//	go run ./bench --publish                # also writes docs/results.md and the README's table
//	benchstat old/report.txt new/report.txt # compares two runs
//
// Figures of a shared machine mean little alone. So the cases of a section run side by
// side in one process, in random order, in many rounds, and their ratios count: of two batches
// that follow each other. A section from which
// the hypervisor took 2% of the processors' time decides no target. Package measure does that;
// packages speed, faults, bits, databases and service have the sections; package
// report is the model of a report, and renders it. It builds on Unix, since package program does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/bits"
	"github.com/tickflake/tickflake/bench/databases"
	"github.com/tickflake/tickflake/bench/faults"
	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/service"
	"github.com/tickflake/tickflake/bench/speed"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/internal/cli"
)

func main() {
	kernel.Main() // in the virtual machine, this program is process 1
	os.Exit(execute(cli.Context(), command{sections: sections(), out: os.Stdout, err: os.Stderr}, os.Args[1:]))
}

// sections are those of the report, in its order.
func sections() []measure.Section {
	return slices.Concat(speed.Sections(), faults.Sections(), bits.Sections(), databases.Sections(), service.Sections())
}

const help = `bench measures what an ID costs on this machine, beside the least that it can
cost, beside other generators, and beside other ways to make an ID. It takes about
%.0f minutes, writes a report, and prints a summary of it.

Run it on a machine that has nothing else to do. A section that needs a server, such
as PostgreSQL, or QEMU, is skipped if none is installed, and says so.

Ctrl-C stops the measurements and writes the report with what there is; a second
Ctrl-C ends at once.

Exit codes:
  0        all done; the report shows a target that was missed
  1        a section failed, or a file could not be read or written
  2        usage error: unknown flag, or a bad value of one
  130 143  stopped by SIGINT (Ctrl-C) or SIGTERM; the report has what there was

"go run" itself exits with 1 for all but the first, and prints the code.`

// command is the sections and the streams of a command line, and the values of its flags.
type command struct {
	sections []measure.Section
	out, err io.Writer

	quick, publish bool
	only           []string
	folder         string
	line           string // the command line
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, p command, args []string) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(p.err)
	flags.Usage = func() {
		full := time.Duration(0)
		for _, s := range p.sections {
			full += s.Full
		}
		fmt.Fprintf(p.err, help+"\n\nFlags:\n", full.Minutes())
		flags.PrintDefaults()
	}
	flags.BoolVar(&p.quick, "quick", false, "take about half a minute; the figures are rough")
	only := flags.String("only", "", "run only these `SECTIONS`, with commas: "+strings.Join(p.ids(), ", "))
	flags.StringVar(&p.folder, "out", filepath.Join(root, "bench", "out"), "`DIRECTORY` to write to")
	flags.BoolVar(&p.publish, "publish", false, "also write docs/results.md and the table of the README, if no section was skipped or lost 2% of the processors' time to a hypervisor")
	err := flags.Parse(args)
	p.line = strings.Join(append([]string{"go run ./bench"}, args...), " ")
	switch {
	case errors.Is(err, flag.ErrHelp):
		return cli.Done
	case err != nil: // it is printed
		return cli.Misuse
	case flags.NArg() > 0:
		err = cli.Usage(fmt.Errorf("%q is no flag; see 'go run ./bench --help'", flags.Arg(0)))
	default:
		p.only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
		err = p.run(ctx)
	}
	if err != nil {
		fmt.Fprintf(p.err, "bench: %v\n", err)
	}
	return cli.Code(err)
}

// ids are those of all sections.
func (p command) ids() (ids []string) {
	for _, s := range p.sections {
		ids = append(ids, s.ID)
	}
	return ids
}

// run measures, and delivers the report.
func (p command) run(ctx context.Context) error {
	for _, id := range p.only {
		if !slices.Contains(p.ids(), id) {
			return cli.Usage(fmt.Errorf("--only: no section %q; there are %s", id, strings.Join(p.ids(), ", ")))
		}
	}
	if p.publish && (p.quick || len(p.only) > 0) {
		return cli.Usage(errors.New("--publish: it needs all sections of a full run, without --quick and --only"))
	}
	if err := os.MkdirAll(p.folder, 0o755); err != nil { // before the measurements, which take minutes
		return err
	}
	defer func() { _ = program.Clean() }()
	r := p.measure(ctx, commit())
	err := p.deliver(r)
	if ctx.Err() != nil {
		return fmt.Errorf("%w: the report is incomplete", errors.Join(context.Cause(ctx), err))
	}
	failed := 0
	for _, s := range r.Sections {
		if s.Failed {
			failed++
		}
	}
	if failed > 0 {
		err = errors.Join(fmt.Errorf("%d of %d sections failed", failed, len(r.Sections)), err)
	}
	return err
}
