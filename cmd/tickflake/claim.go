package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// claimed is a generator with a lease, and its store.
type claimed struct {
	*generator.Generator
	store stores.Store
	place *place
}

// claim claims a node number and returns a generator that issues IDs with it.
func (p *place) claim(whole context.Context, layout snowflake.Layout, strategy strategies.Strategy, options ...lease.Option) (_ *claimed, err error) {
	ctx, cancel := p.within(whole)
	defer cancel()
	defer func() { err = p.ended(whole, ctx, err) }()
	store, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	options = append(options, lease.WithLayout(layout))
	if _, local := store.(stores.Locker); local {
		// The processes of a directory share a clock. Their cells only tell how long ago
		// they ran.
		options = append(options, lease.WithFleetCheck(math.MaxInt64, false))
	}
	keeper, err := lease.Claim(ctx, store, options...)
	if err != nil {
		_ = store.Close()
		return nil, configError(err)
	}
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategy))
	if err != nil {
		_ = keeper.Close() // it logs its error
		_ = store.Close()
		return nil, configError(err)
	}
	awaitFloor(ctx, gen)
	return &claimed{gen, store, p}, nil
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

// logger writes the warnings of leases and stores, for standard error.
func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// configError turns an error of [generator.New] or [lease.Claim] into one that names the
// flag instead of the option. An error of a layout that was parsed is no usage error: the
// clock decides whether its time is over.
func configError(err error) error {
	refused, ok := errors.AsType[*stores.OptionError](err)
	if !ok {
		return err
	}
	flag := strings.ToLower(strings.TrimPrefix(refused.Option, "With"))
	err = fmt.Errorf("--%s: %w", flag, refused.Err)
	if flag == "layout" {
		return err
	}
	return cli.Usage(err)
}
