package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// site says which node numbers a store has, behind its name, or "" for those of the whole layout. Without an answer
// it says nothing: the claim read the cell, and nothing depends on the text.
func site(ctx context.Context, store stores.Store) string {
	f, err := lease.ReadFleet(ctx, store)
	if err != nil || f.From == 0 && f.To+1 >= f.Layout.Capacity().Nodes {
		return ""
	}
	return fmt.Sprintf(", node numbers %d to %d", f.From, f.To)
}

// claimed is a generator with a lease, and its store.
type claimed struct {
	*generator.Generator
	store stores.Store
	place *place
}

// claiming are the flags of a command that claims a node number.
type claiming struct {
	*place
	layout  *snowflake.Layout
	node    int64         // -1: any
	window  time.Duration // 0: that of the store
	vmclock *string
	*clockFlags
	check *string
}

// The values of --fleet-check.
const (
	checkWarns  = "warn"
	checkStrict = "strict"
)

// issuing are the flags of a command that claims a node number to issue IDs.
type issuing struct {
	*claiming
	strategy *strategies.Strategy
	start    strategies.SequenceStart
	resync   time.Duration // 0: never
}

// resyncFrom is how far the wall clock is ahead when the clock of the IDs catches up.
const resyncFrom = time.Second

// newIssuing adds the flags.
func newIssuing(cmd *cobra.Command) *issuing {
	i := &issuing{strategy: strategyFlag(cmd)}
	command.Flag(cmd, "sequence-start", "begin a tick's sequence by `SPEC`: zero, or random:N, below N, so that the few IDs of slow callers spread over N shards by id % N (default zero)", &i.start, strategies.ParseSequenceStart)
	i.claiming = newClaiming(cmd)
	command.Flag(cmd, "resync", fmt.Sprintf("if the wall clock is ahead by more than %s, and at most `DURATION`, as after a step or a suspend, let the times of the IDs catch up (default never)", resyncFrom), &i.resync, func(text string) (time.Duration, error) {
		d, err := duration(text)
		if err == nil && d <= resyncFrom {
			err = fmt.Errorf("want more than %s, got %s", resyncFrom, d)
		}
		return d, err
	})
	return i
}

// newClaiming adds the flags.
func newClaiming(cmd *cobra.Command) *claiming {
	i := &claiming{node: -1}
	i.place = placeFlags(cmd, keptNodes, func() string { return layoutDirectory(*i.layout) })
	i.makes = true
	i.layout = layoutFlag(cmd)
	command.Flag(cmd, "node", "claim node number `N`, from 0 to the layout's largest, or any (default any that is free)", &i.node, func(text string) (int64, error) {
		if text == "any" {
			return -1, nil
		}
		n, err := wholeNumber(text)
		if err == nil && n < 0 {
			err = fmt.Errorf("want any, or a number from 0 on, got %s", text)
		}
		return n, err
	})
	durationFlag(cmd, "window", fmt.Sprintf("claim a grant of `DURATION`: after a kill, the next run with the same --node may have to wait for so long (default %s in a directory, %s elsewhere, at least 6 ticks)", lease.DefaultLocalWindow, lease.DefaultWindow), &i.window)
	i.clockFlags = newClockFlags(cmd)
	i.vmclock = cmd.Flags().String("vmclock", "auto", "notice a copy of this machine's memory by `DEVICE`, off, or auto, the first /dev/vmclock* if there is one")
	i.check = command.ChoiceFlag(cmd, "fleet-check", "if a node number that the claim meets was granted for times far ahead of this clock, do as `MODE` says; strict does not start", checkWarns, checkStrict)
	return i
}

// claim claims a node number and returns a generator that issues IDs with it.
func (i *issuing) claim(whole context.Context, log *slog.Logger) (_ *claimed, err error) {
	if _, err := seam.StartBound(i.start, 1<<i.layout.SequenceBits); err != nil {
		return nil, cli.Usage(fmt.Errorf("--sequence-start: %w", err))
	}
	if err := i.awaitClock(whole, log); err != nil {
		return nil, err
	}
	ctx, cancel := i.within(whole)
	defer cancel()
	defer func() { err = i.ended(whole, ctx, err) }()
	var clock []lease.Option
	if i.resync > 0 {
		// A clock that is given is not made anew once the wall clock is set, so that is waited for here.
		if _, err := base.Await(ctx, nil, base.Within{}, *i.layout, log); err != nil {
			return nil, err
		}
		clock = append(clock, lease.WithClock(monoclock.New(monoclock.WithResync(resyncFrom, i.resync))))
	}
	keeper, store, err := i.keeper(ctx, log, clock...)
	if err != nil {
		return nil, err
	}
	gen, err := generator.New(generator.WithStrategy(*i.strategy), generator.WithSequenceStart(i.start), generator.WithLease(keeper))
	if err != nil {
		_ = keeper.Close() // it logs its error
		_ = store.Close()
		return nil, err
	}
	awaitFloor(ctx, gen)
	return &claimed{gen, store, i.place}, nil
}

// keeper opens the store, and claims a node number.
func (i *claiming) keeper(ctx context.Context, log *slog.Logger, options ...lease.Option) (*lease.Keeper, stores.Store, error) {
	// Before a directory is made for a layout that cannot serve. One whose clock is not set yet may.
	now := time.Now()
	if err := i.layout.ValidateAt(now); errors.Is(err, snowflake.ErrLayout) {
		if err = fmt.Errorf("--layout: %w", err); now.Before(i.layout.Epoch) {
			err = cli.Usage(err)
		}
		return nil, nil, err
	}
	options = append(options, lease.WithLogger(log), lease.WithLayout(*i.layout), lease.WithVMClock(*i.vmclock))
	if i.node >= 0 {
		options = append(options, lease.WithNode(i.node))
	}
	if i.window > 0 {
		options = append(options, lease.WithWindow(i.window))
	}
	if *i.check == checkStrict {
		options = append(options, lease.WithStrictFleetCheck())
	}
	if err := lease.CheckOptions(ctx, options...); err != nil {
		return nil, nil, err
	}
	store, err := i.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	keeper, err := lease.Claim(ctx, store, options...)
	if err != nil {
		_ = store.Close()
		return nil, nil, err
	}
	return keeper, store, nil
}

// awaitFloor waits for the grant to begin: up to a window ahead of the clock if the last
// process with this node number was killed. A grant beyond ctx means that the clock was
// set back, and then the strategy decides.
func awaitFloor(ctx context.Context, gen *generator.Generator) {
	var ahead *generator.LeadError
	for errors.As(gen.Ready(0), &ahead) {
		wait := ahead.Lead - ahead.Limit // above zero: Ready has refused a longer lead than Limit
		if deadline, ok := ctx.Deadline(); !ok || wait > time.Until(deadline) {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// NextNContext waits up to --timeout for a further grant, also with a strategy that waits
// less: a long run must not end because the store takes a moment.
func (c *claimed) NextNContext(ctx context.Context, ids []snowflake.ID) (int, error) {
	n, err := c.Generator.NextNContext(ctx, ids)
	if !errors.Is(err, generator.ErrNotGranted) {
		return n, err
	}
	bounded, cancel := c.place.within(ctx)
	defer cancel()
	more, err := c.Generator.NextNContext(bounded, ids[n:n+1])
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, generator.ErrNotGranted) && ctx.Err() == nil {
		err = nil // there is a grant, so the strategy decides how long to wait for the clock
	}
	return n + more, c.place.ended(ctx, bounded, err)
}

// Close releases the node number. An error of the store is no error of the command: the
// IDs are unique even so, and the lease has logged it.
func (c *claimed) Close() {
	// A signal has ended the context of the command and must not prevent the release.
	ctx, cancel := c.place.within(context.Background())
	defer cancel()
	_ = c.CloseContext(ctx)
	_ = c.store.Close()
}

// logLevel is --log-level, for all commands but serve, which has its own.
var logLevel slog.LevelVar

// logger writes what leases and stores say, for standard error.
func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: &logLevel}))
}
