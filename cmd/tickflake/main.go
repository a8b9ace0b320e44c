// Command tickflake issues 64-bit, time-ordered unique IDs, takes IDs apart,
// explains and plans the layouts of their bits, issues counted numbers, and serves IDs and numbers
// to programs in any language.
//
//	tickflake generate --count 3
//	tickflake decode --layout twitter 1541815603606036480
//	tickflake layout plan --generators 100 --rate 10000 --years 30
//	tickflake sequence next orders
//	tickflake serve
//
// It is the packages generator, sequence and service at a shell: to fill a column of test data, to
// look at an ID from a log, to choose the widths of a layout. "tickflake help" describes every
// command and the exit codes.
package main

import (
	"log/slog"
	"os"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

const rootHelp = `tickflake issues 64-bit unique IDs that sort by time (the Snowflake family),
decodes IDs, explains and plans layouts (what the bits of an ID mean), shows and
releases node numbers, issues the counted numbers of sequences, and serves IDs and
numbers to programs in any language.

Exit codes:
  0        done, or the reader closed the output (as "| head" does); serve: drained
           after SIGINT or SIGTERM
  1        bad input, IDs or numbers that could not be issued or written, or a store
           that failed or forgets writes; serve: requests that were cut off, or a
           node number that was lost
  2        usage error: an unknown command or flag, or a bad value
  130 143  stopped by SIGINT (Ctrl-C) or SIGTERM; the lines written are complete`

func main() {
	slog.SetDefault(logger(os.Stderr)) // for stores.Open
	logging.Disable()                  // the Redis driver's, which repeats the error of the store
	command.Main(newRoot)
}

func newRoot(c *command.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "tickflake",
		Short: "Issue, decode and plan 64-bit time-ordered unique IDs; issue counted numbers",
		Long:  rootHelp,
	}
	logLevel.Set(slog.LevelWarn)
	root.PersistentFlags().TextVar(&logLevel, "log-level", &logLevel, "log from `LEVEL` on, to standard error: debug, info, warn or error (default warn)")
	root.PersistentFlags().Lookup("log-level").DefValue = ""
	root.AddCommand(newGenerate(c), newDecode(c), newLayout(c), newLease(c), newSequence(c), newStore(c), newServe(c))
	return root
}
