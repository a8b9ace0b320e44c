package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/generator"
)

const generateHelp = `Issue IDs and print one per line, in ascending order.

Node numbers: the IDs of one run are all different. Two runs are told apart by
their node numbers alone; with the same number they issue the same IDs if they
run at the same moment, if one starts in the tick in which the other ended (as in
a shell loop; most ticks last 1ms, some 1s), or if the clock is stepped back between
them. So a run draws its node number at random from the layout's range unless
--node gives one. That makes a collision unlikely, not impossible: until node
numbers come as grants, two runs that draw the same number in the same tick still
issue the same IDs, and of the 1024 numbers of the default layout one pair of
runs in 1024 draws the same. To be sure, give runs different numbers, or ask one
run for all the IDs.

Large counts stream: memory use does not grow with --count. When the output goes
to a file or a pipe and you watch at a terminal, a long run shows its progress.`

const generateExamples = `  tickflake generate
  tickflake generate --count 100000000 --node 7 > ids.txt
  tickflake generate --count 5 --layout sonyflake --format base58
  tickflake generate --layout 41/10/12,epoch=2026-01-01 --format json
  tickflake generate --count 100000 --strategy reject`

// maxBatch is the longest batch; longer ones gain nothing.
const maxBatch = 4096

// flushEvery is how long a finished line may be held back while others follow.
const flushEvery = 100 * time.Millisecond

func newGenerate(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "generate",
		Short:   "Issue IDs, one per line",
		Long:    generateHelp,
		Example: generateExamples,
		Args:    noArgs,
	}
	count, node := int64(1), int64(0)
	cmd.Flags().Func("count", "number `N` of IDs, at least 1 (default 1)", func(s string) (err error) {
		if count, err = wholeNumber(s); err == nil && count < 1 {
			err = fmt.Errorf("want at least 1, got %d", count)
		}
		return err
	})
	cmd.Flags().Func("node", "node number `N`, from 0 to the layout's largest; runs at the same time must not share one (default drawn at random)", func(s string) (err error) {
		node, err = wholeNumber(s)
		return err
	})
	layout := layoutFlag(cmd)
	strategy := strategyFlag(cmd)
	format := choiceFlag(cmd, "format", "`FORM` of the IDs, json being what 'tickflake decode' prints", append(slices.Clone(formNames), formatJSON))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("node") {
			node = rand.Int64N(layout.Capacity().Nodes)
		}
		gen, err := generator.New(generator.WithLayout(*layout), generator.WithNode(node), generator.WithStrategy(*strategy))
		if err != nil {
			return configError(err)
		}
		bar := newBar(c.screen, count, "IDs")
		defer bar.Clear() // for whatever is to be said on that line
		return generate(cmd.Context(), gen, count, c.out, lineOf(gen.Layout(), *format), bar)
	}
	return cmd
}

// lineOf returns how to write an ID in the format.
func lineOf(layout generator.Layout, format string) func(generator.ID) (string, error) {
	if format == formatJSON {
		return func(id generator.ID) (string, error) {
			decoded, err := layout.Decode(id)
			if err != nil {
				return "", err
			}
			object, err := decoded.MarshalJSON()
			return string(object), err
		}
	}
	text := forms[format].format
	return func(id generator.ID) (string, error) { return text(id), nil }
}

// generate issues count IDs and writes a line for each.
func generate(ctx context.Context, gen *generator.Generator, count int64, out *bufio.Writer,
	line func(generator.ID) (string, error), bar *progressbar.ProgressBar,
) error {
	// A batch of no more than a tick's IDs waits for at most one tick, so that
	// the strategy judges it as it would judge a single ID.
	batch := min(maxBatch, gen.Layout().Capacity().IDsPerTick)
	ids := make([]generator.ID, batch)
	var flushed time.Time
	for written := int64(0); written < count; {
		n, err := gen.NextNContext(ctx, ids[:min(batch, count-written)])
		for _, id := range ids[:n] {
			text, err := line(id)
			if err != nil {
				return err
			}
			out.WriteString(text)
			// A writer that failed once fails for good.
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
		written += int64(n)
		_ = bar.Add(n) // a bar that cannot be drawn is no reason to stop
		if err != nil {
			return cutShort(err, out, written, count)
		}
		if now := time.Now(); now.Sub(flushed) >= flushEvery {
			if err := out.Flush(); err != nil {
				return err
			}
			flushed = now
		}
	}
	return nil
}

// cutShort returns the error of a run that ended early, because of err, and what
// became of the lines written before.
func cutShort(err error, out *bufio.Writer, written, count int64) error {
	var interrupted *interruption
	if errors.As(err, &interrupted) {
		err = interrupted
	}
	// After a failed flush nobody knows how many lines came through.
	switch flushErr := out.Flush(); {
	case errors.Is(flushErr, syscall.EPIPE):
		return err
	case flushErr != nil:
		return fmt.Errorf("%w; %w", err, flushErr)
	}
	return fmt.Errorf("%w; %d of %d IDs written", err, written, count)
}
