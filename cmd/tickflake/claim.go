package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/strategies"
)

// noFleetCheck is a difference of clocks that is never exceeded. Processes that share
// a directory share a clock; what their cells tell is when they were last used.
const noFleetCheck = 200 * 365 * 24 * time.Hour

// claimed is a generator with a lease, and the store that this is kept in.
type claimed struct {
	*generator.Generator
	closeStore func() error
	timeout    time.Duration
}

// claim claims a node number and returns a generator that issues IDs with it.
func (p *place) claim(ctx context.Context, layout snowflake.Layout, strategy strategies.Strategy, options ...lease.Option) (*claimed, error) {
	ctx, cancel := p.within(ctx)
	defer cancel()
	store, closeStore, err := p.open(ctx, layout, true)
	if err != nil {
		return nil, withoutState(err)
	}
	options = append(options, lease.WithLayout(layout))
	if p.isDirectory() {
		options = append(options, lease.WithFleetCheck(noFleetCheck, false))
	}
	keeper, err := lease.Claim(ctx, store, options...)
	if err != nil {
		_ = closeStore()
		return nil, dialing.explain(p.scheme, p.otherLayout(configError(err)))
	}
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategy))
	if err != nil {
		_ = keeper.Close() // it says so itself if it cannot
		_ = closeStore()
		return nil, configError(err)
	}
	floor, _ := keeper.Granted()
	await(ctx, time.Until(floor)-strategies.BorrowLimit(strategy))
	return &claimed{gen, closeStore, p.timeout}, nil
}

// await waits for a grant to begin, which is up to a window ahead if the last process
// with this node number was killed. When it is further ahead than ctx allows for, the
// clock was set back, and it is the strategy's to say what then.
func await(ctx context.Context, lead time.Duration) {
	deadline, ok := ctx.Deadline()
	if lead <= 0 || !ok || lead > time.Until(deadline) {
		return
	}
	select {
	case <-time.After(lead):
	case <-ctx.Done():
	}
}

// NextNContext waits for a further grant as long as --timeout allows for, if the
// strategy waits for less or, as one that borrows, not at all: a run that issues many
// IDs should not end because the store takes a moment.
func (c *claimed) NextNContext(ctx context.Context, ids []snowflake.ID) (int, error) {
	n, err := c.Generator.NextNContext(ctx, ids)
	if !isA[*generator.GrantError](err) {
		return n, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, c.timeout, &timeoutError{c.timeout})
	defer cancel()
	more, err := c.Generator.NextNContext(bounded, ids[n:n+1])
	if isA[*generator.ContextError](err) && ctx.Err() == nil {
		err = nil // there is a grant; how long to wait for the clock is the strategy's to say
	}
	return n + more, err
}

// Close gives the node number back. If the store does not answer, the lease has said
// so; the IDs are good all the same, so it is no error.
func (c *claimed) Close() {
	// A signal has ended the context of the command, and must not keep the number
	// from the next process.
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	_ = c.CloseContext(ctx)
	_ = c.closeStore()
}

// withoutState adds to an error of the state directory what else can be done.
func withoutState(err error) error {
	if isA[*directory.DirectoryError](err) || isA[*directory.NotSupportedError](err) {
		return fmt.Errorf("%w (--state names another directory, --store another store, and --no-state does without)", err)
	}
	return err
}

// otherLayout adds to the error of a directory with cells of another layout that
// there can be another directory, too.
func (p *place) otherLayout(err error) error {
	var mismatch *lease.LayoutMismatchError
	if errors.As(err, &mismatch) && p.isDirectory() {
		return fmt.Errorf("%w (--namespace), or another directory", err)
	}
	return err
}
