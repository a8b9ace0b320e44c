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
	"github.com/tickflake/tickflake/lease"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitSignal plus its number is the code by which shells report a signal.
	exitSignal = 128
)

// errReported ends a run that has printed its failures one by one.
var errReported = errors.New("some input was bad")

// usageError is a command line that has to be changed before it can work.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// interruption is the end of a run that a signal stopped.
type interruption struct{ signal syscall.Signal }

func (e *interruption) Error() string {
	if e.signal == syscall.SIGINT {
		return "interrupted"
	}
	return e.signal.String()
}

// conclude prints err, if there is something to say, and returns the exit code.
func conclude(stderr io.Writer, cmd *cobra.Command, err error) int {
	var interrupted *interruption
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &interrupted):
		complain(stderr, err)
		return exitSignal + int(interrupted.signal)
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, syscall.EPIPE):
		// The reader, such as head, has read enough.
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
