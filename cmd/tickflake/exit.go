package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// errReported ends a run that has printed its failures one by one.
var errReported = errors.New("some input was bad")

// errReaderGone ends a run whose reader, such as head, has read enough. It is the error of
// [output] alone: the connection to a store can break with the same EPIPE.
var errReaderGone = errors.New("the output is read no more")

// output is standard output.
type output struct{ io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errReaderGone
	}
	return n, err
}

// usageError is a command line that has to be changed before it can work.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// conclude prints err, if there is something to say, and returns the exit code.
func conclude(stderr io.Writer, cmd *cobra.Command, err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case isA[cli.Interruption](err):
		complain(stderr, err)
		return cli.Code(err)
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errReaderGone):
		return exitDone
	case errors.As(err, &usage):
		complain(stderr, err)
		fmt.Fprintf(stderr, "see '%s --help'\n", cmd.CommandPath())
		return exitUsage
	}
	complain(stderr, err)
	return exitFailed
}

// complain writes an error. It may quote text that another process wrote to a store.
func complain(stderr io.Writer, err error) {
	lines := strings.Split(textOf(err), "\n")
	for i, line := range lines {
		lines[i] = visible(strings.ReplaceAll(line, "\t", "  "))
	}
	fmt.Fprintf(stderr, "tickflake: %s\n", strings.Join(lines, "\n"))
}

// textOf returns the text of an error. Drivers repeat the end of --timeout anywhere in
// their errors; here it comes first, and once.
func textOf(err error) string {
	text := err.Error()
	timeout, ok := errors.AsType[*timeoutError](err)
	if !ok {
		return text
	}
	for _, said := range []string{timeout.Error(), context.DeadlineExceeded.Error()} {
		text = strings.ReplaceAll(strings.ReplaceAll(text, said+": ", ""), ": "+said, "")
	}
	if text == timeout.Error() {
		return text
	}
	return timeout.Error() + ": " + text
}

// configError turns an error of [generator.New] or [lease.Claim] into one that names the
// flag instead of the option. An error of a layout that was parsed is no usage error: the
// clock decides whether its time is over.
func configError(err error) error {
	var config *generator.ConfigError
	var claim *lease.OptionError
	option := ""
	switch {
	case errors.As(err, &config):
		option, err = config.Option, config.Err
	case errors.As(err, &claim):
		option, err = claim.Option, claim.Err
	default:
		return err
	}
	flag := strings.ToLower(strings.TrimPrefix(option, "With"))
	err = fmt.Errorf("--%s: %w", flag, err)
	if flag == "layout" {
		return err
	}
	return &usageError{err}
}
