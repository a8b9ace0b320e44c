package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

const generateHelp = `Issue IDs and print one per line, in ascending order.

No two runs issue the same ID: not at the same time, not one after the other,
not after a crash, and not if the clock is set back between them. For that, each
run claims a node number together with a range of time, which it notes in a store
before it issues an ID, and which no other run ever gets. Runs at the same time
get different node numbers. A run that ends, by a signal too, gives its number
back; that of a run that was killed is free as soon as the time that it was
granted is over, and, in a store that hosts share, one window more.

With --node the run takes that number, and waits for it up to --timeout. On one
host it fails while another run has it. In a store that hosts share it takes the
number over, and the other run ends when it has used up its grant.

With --no-state nothing is noted. The node number is then drawn at random unless
--node gives one, and two runs with the same number issue the same IDs if they run at
the same moment, if one starts in the tick in which the other ended, or if the clock
is set back between them.

` + storesHelp + `

Memory use does not grow with --count.`

const generateExamples = `  tickflake generate
  tickflake generate --count 100000000 > ids.txt
  tickflake generate --count 5 --layout sonyflake --format base58
  tickflake generate --layout 41/10/12,epoch=2026-01-01 --format json
  tickflake generate --store etcd://10.0.0.1:2379 --namespace orders --node 7
  tickflake generate --count 100000 --strategy reject`

// noStateWarning says what is not guaranteed without a store.
const noStateWarning = "--no-state: nothing keeps other runs, now or later, from issuing the same IDs; give each run a --node of its own, and never set the clock back"

// maxBatch is the longest batch; longer ones gain nothing.
const maxBatch = 4096

// flushEvery is how long a finished line may be held back while others follow.
const flushEvery = 100 * time.Millisecond

// issue is the command generate, with its flags.
type issue struct {
	*console
	place    *place
	noState  bool
	count    int64
	node     int64 // if given
	window   time.Duration
	layout   *snowflake.Layout
	strategy *strategies.Strategy
	format   *string
}

func newGenerate(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "generate",
		Short:   "Issue IDs, one per line",
		Long:    generateHelp,
		Example: generateExamples,
		Args:    noArgs,
	}
	g := &issue{console: c, count: 1}
	cmd.Flags().Func("count", "number `N` of IDs, at least 1 (default 1)", func(s string) (err error) {
		if g.count, err = wholeNumber(s); err == nil && g.count < 1 {
			err = fmt.Errorf("want at least 1, got %d", g.count)
		}
		return err
	})
	cmd.Flags().Func("node", "node number `N`, from 0 to the layout's largest (default any that is free)", func(s string) (err error) {
		g.node, err = wholeNumber(s)
		return err
	})
	g.place = placeFlags(cmd)
	cmd.Flags().BoolVar(&g.noState, "no-state", false, "keep no state: IDs may repeat those of other runs")
	durationFlag(cmd, "window", fmt.Sprintf("`DURATION` to be granted at once: a run that was killed leaves up to so much of its node number's time unused, and one with --node may have to wait for it (default %s in a directory, %s elsewhere, at least 6 ticks)", lease.DefaultLocalWindow, lease.DefaultWindow), &g.window)
	g.layout = layoutFlag(cmd)
	g.strategy = strategyFlag(cmd)
	g.format = choiceFlag(cmd, "format", "`FORM` of the IDs, json being what 'tickflake decode' prints", append(slices.Clone(formNames), formatJSON))
	for _, other := range []string{"store", "state", "namespace", "window", "timeout"} {
		cmd.MarkFlagsMutuallyExclusive("no-state", other)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return g.run(cmd) }
	return cmd
}

func (g *issue) run(cmd *cobra.Command) error {
	if g.closed {
		return errors.New("standard output is closed, so the IDs would be lost; to discard them, use > " + os.DevNull)
	}
	if !g.noState {
		if err := g.place.check(); err != nil {
			return err
		}
	}
	pinned := cmd.Flags().Changed("node")
	if !pinned {
		g.node = rand.Int64N(g.layout.Capacity().Nodes)
	}
	// This one is good enough without state, and otherwise shows that the options are
	// right before anything is claimed with them.
	gen, err := generator.New(generator.WithLayout(*g.layout), generator.WithNode(g.node), generator.WithStrategy(*g.strategy))
	if err != nil {
		return configError(err)
	}
	var ids issuer = gen
	if g.noState {
		newWarnings(g.console).Warn(noStateWarning)
	} else {
		options := []lease.Option{lease.WithLogger(newWarnings(g.console))}
		if pinned {
			options = append(options, lease.WithNode(lease.NodeNumber(g.node)))
		}
		if g.window > 0 {
			options = append(options, lease.WithWindow(g.window))
		}
		leased, err := g.place.claim(cmd.Context(), *g.layout, *g.strategy, options...)
		switch {
		case isA[*interruption](err):
			return cutShort(err, g.out, 0, g.count)
		case err != nil:
			return err
		}
		defer leased.Close()
		ids = leased
	}
	return generate(cmd.Context(), ids, g.count, g.out, lineOf(*g.layout, *g.format))
}

// lineOf returns how to write an ID in the format.
func lineOf(layout snowflake.Layout, format string) func(snowflake.ID) (string, error) {
	if format == formatJSON {
		return func(id snowflake.ID) (string, error) {
			decoded, err := layout.Decode(id)
			if err != nil {
				return "", err
			}
			object, err := decoded.MarshalJSON()
			return string(object), err
		}
	}
	text := forms[format].format
	return func(id snowflake.ID) (string, error) { return text(id), nil }
}

// issuer is what generate needs of a generator.
type issuer interface {
	Layout() snowflake.Layout
	NextNContext(ctx context.Context, ids []snowflake.ID) (int, error)
}

// generate issues count IDs and writes a line for each.
func generate(ctx context.Context, gen issuer, count int64, out *bufio.Writer, line func(snowflake.ID) (string, error)) error {
	// A batch of no more than a tick's IDs waits for at most one tick, so that
	// the strategy judges it as it would judge a single ID.
	batch := min(maxBatch, gen.Layout().Capacity().IDsPerTick)
	ids := make([]snowflake.ID, batch)
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
