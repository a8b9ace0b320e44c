// Command tickflake issues 64-bit, time-ordered unique IDs, takes IDs apart,
// explains and plans the layouts of their bits, issues counted numbers, serves IDs and numbers
// to programs in any language, and puts its own generator through clock faults.
//
//	tickflake generate --count 3
//	tickflake decode --layout twitter 1541815603606036480
//	tickflake layout plan --nodes 100 --rate 10000 --years 30
//	tickflake sequence next orders
//	tickflake serve
//	tickflake chaos --strategy borrow:1s
//
// It is the packages generator, sequence and service at a shell: to fill a column of test data, to
// look at an ID from a log, to choose the widths of a layout. "tickflake help" describes every
// command and the exit codes.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"github.com/tickflake/tickflake/chaos_test/kernel"
	"github.com/tickflake/tickflake/internal/cli"
)

// bufferSize is the size of the output's buffer and of the longest line of input.
const bufferSize = 64 << 10

func main() {
	kernel.Main()                                        // first: in the virtual machine of 'tickflake chaos --kernel' it never returns
	slog.SetDefault((&console{err: os.Stderr}).logger()) // for stores.Open
	logging.Disable()                                    // the Redis driver's, which repeats the error of the store
	// A write to a closed pipe must fail and not kill the process.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(cli.Context(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// console is where a command reads and writes.
type console struct {
	in     io.Reader
	out    *bufio.Writer // run flushes it
	err    io.Writer
	closed bool // there is no standard output: see lost
	screen bool // standard output is a terminal
}

// lost returns an error if the things that a command is to print would be lost.
func (c *console) lost(things string) error {
	if !c.closed {
		return nil
	}
	return fmt.Errorf("standard output is closed, so the %s would be lost; to discard them, use > %s", things, os.DevNull)
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &console{
		in:     stdin,
		out:    bufio.NewWriterSize(output{stdout}, bufferSize),
		err:    stderr,
		closed: isClosed(stdout),
		screen: isTerminal(stdout),
	}
	started := false
	root := newRoot(c, &started)
	root.SetArgs(args)
	cmd, rest, err := root.Find(args)
	if err != nil {
		rest = nil // ExecuteContextC finds the error again, unless cobra adds the command
	}
	if err = stray(cmd, rest); err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if err != nil && !started {
		// An error before a command runs is one of its arguments.
		err = &usageError{err}
	}
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	return conclude(stderr, cmd, err)
}

// isClosed reports whether the process was started without standard output. The Go runtime
// then opens the null device in its place, for reading too; a shell opens it for writing
// only if the user asks for it.
func isClosed(stdout io.Writer) bool {
	f, ok := stdout.(*os.File)
	if !ok {
		return false
	}
	is, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(is, null) {
		return false
	}
	_, err = f.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}
