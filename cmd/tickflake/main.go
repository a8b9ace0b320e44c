// Command tickflake issues 64-bit, time-ordered unique IDs, takes IDs apart,
// explains and plans the layouts of their bits, and puts its own generator through
// clock faults.
//
//	tickflake generate --count 3
//	tickflake decode --layout twitter 1541815603606036480
//	tickflake layout plan --nodes 100 --rate 10000 --years 30
//	tickflake chaos --strategy borrow:1s
//
// It is the library's generator package at a shell: to fill a column of test
// data, to look at an ID from a log, to settle on widths before the first ID is
// issued. "tickflake help" describes every command and the exit codes.
package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// bufferSize is that of the output and of the longest line of input. It is far
// longer than a line can sensibly be, and large enough that system calls do not
// count.
const bufferSize = 64 << 10

func main() {
	// A write to a closed pipe shall fail, not kill the process.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(notifyContext(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// notifyContext returns a context that the first SIGINT or SIGTERM ends, with an
// *interruption as the cause. The second one kills the process, in case it is
// stuck in a write that nobody reads.
func notifyContext() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		// Shells start background jobs with SIGINT ignored, and it stays so.
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		s := <-signals
		signal.Stop(signals)
		cancel(&interruption{signal: s.(syscall.Signal)})
	}()
	return ctx
}

// console is where a command reads and writes.
type console struct {
	in  io.Reader
	out *bufio.Writer // run flushes it
	err io.Writer
	// screen is the terminal to show progress on; nil if nobody watches.
	screen *os.File
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &console{
		in:     stdin,
		out:    bufio.NewWriterSize(stdout, bufferSize),
		err:    stderr,
		screen: progressScreen(stdout, stderr),
	}
	started := false
	root := newRoot(c, &started)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !started {
		// Whatever fails before a command runs is the fault of its arguments.
		err = &usageError{err: err}
	}
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	return conclude(stderr, cmd, err)
}
