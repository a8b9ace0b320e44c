package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/snowflake"
)

const generateHelp = `Issue IDs and print one per line, in ascending order.

No two runs issue the same ID: not at the same time, not one after the other, not
after a crash, and not if the clock is set back between them. Each run claims a
node number in a store, and releases it at its end. The number of a run that was
killed is free at once in a directory, and one window after its grant has ended in a
store that hosts share.

With --node the run claims that number and waits for it up to --timeout. In a
directory it fails while another run holds the number. In a store that hosts share
it takes the number over, and the other run ends when its grant has ended.

` + nodeStoresHelp + `

Memory use does not grow with --count.

` + generateAtHelp

const generateExamples = `  tickflake generate
  tickflake generate --count 100000000 > ids.txt
  tickflake generate --count 5 --layout sonyflake --format base58
  tickflake generate --layout 41/10/12,epoch=2026-01-01 --format json
  tickflake generate --store 'etcd://10.0.0.1:2379?namespace=orders' --node 7
  tickflake generate --count 100000 --strategy reject
  tickflake generate --at 2019-03-04T10:20:30.456Z
  cut -d, -f2 rows.csv | tickflake generate --at - --times unix > ids.txt`

const (
	maxBatch = 4096 // IDs per call
	// flushEvery is the longest time that a line stays in the buffer while others follow.
	flushEvery = 100 * time.Millisecond
)

func newGenerate(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "generate",
		Short:   "Issue IDs, one per line",
		Long:    generateHelp,
		Example: generateExamples,
		Args:    cobra.NoArgs,
	}
	count := int64(1)
	command.Flag(cmd, "count", "issue `N` IDs, at least 1 (default 1)", &count, atLeast("1", wholeNumber))
	g := newIssuing(cmd)
	old := oldRowsFlags(cmd)
	format := command.ChoiceFlag(cmd, "format", "print IDs in the `FORM`, json being what 'tickflake decode' prints", append(slices.Clone(formNames), command.FormatJSON)...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		line := func(id snowflake.ID) (string, error) {
			decoded, err := g.layout.Decode(id)
			if err != nil {
				return "", err
			}
			object, err := decoded.MarshalJSON()
			return string(object), err
		}
		if form, ok := forms[*format]; ok {
			line = func(id snowflake.ID) (string, error) { return form.format(id), nil }
		}
		if cmd.Flags().Changed("at") { // an empty one is no instant
			return old.run(ctx, c, g.claiming, cmd.Flags().Changed("layout") || g.url == "", line)
		}
		if cmd.Flags().Changed("times") || cmd.Flags().Changed("unit") {
			return cli.Usage(errors.New("--times and --unit need --at"))
		}
		gen, err := g.claim(ctx, logger(c.Err))
		if err != nil {
			return err
		}
		defer gen.Close()
		// A batch of at most one tick's IDs waits for at most one tick, so the strategy
		// decides about it as about a single ID.
		batch := min(maxBatch, g.layout.Capacity().IDsPerTick)
		return printLines(ctx, c.Out, "IDs", count, batch, gen.NextNContext, line)
	}
	return cmd
}

// printLines takes count things, up to batch at a time, and writes a line for each.
func printLines[T any](ctx context.Context, out *bufio.Writer, things string, count, batch int64, take func(context.Context, []T) (int, error), line func(T) (string, error)) error {
	some := make([]T, batch)
	var flushed time.Time
	for written := int64(0); written < count; {
		err, n := context.Cause(ctx), 0 // a number of the window does not ask ctx
		if err == nil {
			n, err = take(ctx, some[:min(batch, count-written)])
		}
		for _, one := range some[:n] {
			text, err := line(one)
			if err != nil {
				return err
			}
			out.WriteString(text)
			// A bufio.Writer that failed once fails for good.
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
		written += int64(n)
		if err != nil {
			return cutShort(err, out, things, written, count)
		}
		if now := time.Now(); now.Sub(flushed) >= flushEvery {
			if err := out.Flush(); err != nil {
				return err
			}
			flushed = now
		}
	}
	return out.Flush() // before a store is told, which may take a moment
}

// cutShort returns the error of a run that ended early because of err, with the number of
// lines that were written before: IDs or numbers.
func cutShort(err error, out *bufio.Writer, things string, written, count int64) error {
	if signal, ok := errors.AsType[cli.Interruption](err); ok {
		err = signal
	}
	// After a failed flush, the number of lines that were written is unknown.
	switch flushErr := out.Flush(); {
	case errors.Is(flushErr, command.ErrReaderGone):
		return err
	case flushErr != nil:
		return fmt.Errorf("%w; %w", err, flushErr)
	}
	return fmt.Errorf("%w; %d of %d %s written", err, written, count, things)
}
