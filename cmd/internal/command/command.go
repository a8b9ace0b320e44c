// Package command has the code that tickflake and tickflake-chaos share at a shell: where a
// command reads and writes, its flags, its errors and exit codes, and tables.
//
// You need these names: [Main] carries out the command line on a [Console], and [Print] writes a
// list as a table or as JSON.
package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tickflake/tickflake/internal/cli"
)

// BufferSize is the size of the output's buffer in bytes.
const BufferSize = 64 << 10

// ErrReported ends a command that has printed its failures one by one.
var ErrReported = errors.New("some input was bad")

// ErrReaderGone ends a command whose reader, such as head, has read enough. It is the error of
// [Console.Out] alone: the connection to a store can break with the same EPIPE.
var ErrReaderGone = errors.New("the output is read no more")

// Main is the main function of a program: it runs the command that newRoot makes, and exits.
func Main(newRoot func(*Console) *cobra.Command) {
	// A write to a closed pipe must fail and not kill the process.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(Run(cli.Context(), newRoot, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Run carries out one command line of the command that newRoot makes, and returns the exit code
// of [cli.Code]. An error that a command has before it runs is one of [cli.Usage].
func Run(ctx context.Context, newRoot func(*Console) *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &Console{In: stdin, Out: bufio.NewWriterSize(output{stdout}, BufferSize), Err: stderr}
	root := newRoot(c)
	c.name = root.Name()
	started := false
	prepare(root, c, &started)
	root.SetArgs(args)
	cmd, rest, err := root.Find(args)
	if err != nil {
		rest = nil // ExecuteContextC finds the error again, unless cobra adds the command
	}
	if err = stray(cmd, rest); err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if err != nil && !started {
		err = cli.Usage(err)
	}
	return c.conclude(cmd, cmp.Or(err, c.Out.Flush()))
}

// prepare makes a tree of commands speak in the way of these programs, and set *started when
// a command, whose line is without an error, begins to run.
func prepare(root *cobra.Command, c *Console, started *bool) {
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SilenceErrors, root.SilenceUsage = true, true // Run prints them
	root.Version = fmt.Sprintf("%s (%s, %s/%s)", moduleVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		// Cobra checks them after this function.
		err := cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
		*started = err == nil
		return err
	}
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it was just added
	help.Args = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		return cmp.Or(err, stray(cmd, rest))
	}
	root.InitDefaultCompletionCmd()
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

// flagError names the flag in the way of all other errors.
func flagError(_ *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return err
}

func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(unknown)"
}

// Console is where a command reads and writes.
type Console struct {
	In  io.Reader
	Out *bufio.Writer // Run flushes it
	Err io.Writer

	name string // of the program
}

// Complain writes an error. It may quote text that another process wrote to a store.
func (c *Console) Complain(err error) {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = Visible(strings.ReplaceAll(line, "\t", "  "))
	}
	fmt.Fprintf(c.Err, "%s: %s\n", c.name, strings.Join(lines, "\n"))
}

// Report writes the output and then the errors, if there are any. It returns [ErrReported] then.
func (c *Console) Report(bad ...error) error {
	if err := c.Out.Flush(); err != nil || len(bad) == 0 {
		return err
	}
	for _, err := range bad {
		c.Complain(err)
	}
	return ErrReported
}

// conclude prints err, if there is something to say, and returns the exit code.
func (c *Console) conclude(cmd *cobra.Command, err error) int {
	code := cli.Code(err)
	switch _, exit := errors.AsType[cli.Exit](err); {
	case exit:
	case code > cli.Misuse: // a signal, whatever came of it
		c.Complain(err)
	case errors.Is(err, ErrReported):
	case errors.Is(err, ErrReaderGone):
		return cli.Done
	case err != nil:
		c.Complain(err)
		if code == cli.Misuse {
			fmt.Fprintf(c.Err, "see '%s --help'\n", cmd.CommandPath())
		}
	}
	return code
}

// output is standard output.
type output struct{ io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = ErrReaderGone
	}
	return n, err
}

// Visible replaces control characters, which text from other hosts can hold.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
