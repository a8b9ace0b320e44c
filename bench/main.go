// Command bench measures what an ID costs, on this machine: beside the least that it
// could cost, beside other generators, and beside other ways to make an ID. It writes
// a report as HTML, as Markdown and as JSON.
//
//	go run ./bench                          # about 3 minutes; writes bench/report/index.html
//	go run ./bench --quick                  # under half a minute, to see how it looks
//	go run ./bench --only cost,latency      # some of the sections
//	go run ./bench compare A.json B.json    # before and after
//	go run ./bench --update-readme          # puts the results into the README and docs/results.md
//
// Its first Ctrl-C ends the measurements and writes what there is; the second one ends
// it at once. "go run ./bench --help" has the exit codes.
//
// Single figures on a shared machine mean little. So within a section all cases run in
// one process, side by side, in random order, again and again, and what matters is how
// one stands to another. Package measure does that; packages speed, scorecard, spread,
// ways and indexes have the sections; package results has what comes of them, and
// shows it.
//
// The cases of the report are ordinary Go benchmarks too:
//
//	go test ./bench -run '^$' -bench . -count 10 | tee new.txt   # for benchstat
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tickflake/tickflake/bench/peers"
)

func main() {
	peers.Serve() // some peers run in processes of their own, which are this program
	os.Exit(execute(notifyContext(), program{sections: sections(), out: os.Stdout, err: os.Stderr}, os.Args[1:]))
}

// notifyContext returns a context that the first SIGINT or SIGTERM ends, with an
// *interruption as the cause. The second one kills the process.
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
		cancel(&interruption{s.(syscall.Signal)})
	}()
	return ctx
}

// interruption is the end of a run that a signal stopped.
type interruption struct{ signal syscall.Signal }

func (e *interruption) Error() string { return e.signal.String() }
