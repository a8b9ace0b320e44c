package generator

import (
	"context"
	"errors"

	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory" // the store that needs no server
)

// Open opens the store at url, claims a node number in it, and returns a generator whose Close releases the
// number and closes the store. Most services need only this call:
//
//	gen, err := generator.Open(ctx, "ids") // a directory that outlasts the process
//	gen, err := generator.Open(ctx, "etcd://10.0.0.5:2379")
//
// The URL is that of [stores.Open]. For an engine other than the directory, import its package, such as
// github.com/tickflake/tickflake/stores/etcd.
//
// If the clock is not set yet, the store does not answer, or all node numbers are held, Open tries again until
// the deadline of ctx; without a deadline, it fails at once. It returns at most 1 second after ctx ends, and
// without a deadline after at most 10 seconds for the store and two timeouts of the lease. If a later step
// fails, Open releases the number and closes the store, in the background if ctx has ended.
//
// [WithLayout], [WithClock] and [WithNode] apply to the lease as well: WithNode pins the number that is
// claimed. [WithLeaseOptions] passes further options to the lease. [WithLease] cannot be combined with Open.
//
// The error is a [*stores.OptionError], one of [stores.Open], or one of [lease.Claim].
func Open(ctx context.Context, url string, opts ...Option) (*Generator, error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if c.leased {
		return nil, &stores.OptionError{Option: "WithLease", Err: errors.New("Open claims a new lease: call New, or leave the option out")}
	}
	if err := c.validate(ctx); err != nil {
		return nil, err
	}
	clock := c.clock
	if clock == nil {
		clock = monoclock.New()
	}
	if err := lease.CheckOptions(ctx, c.claimOptions(clock)...); err != nil {
		return nil, err
	}
	if c.clock, err = base.Await(ctx, c.clock, c.within, c.layout, c.log); err != nil {
		return nil, err
	}
	if _, err := c.check(); err != nil {
		return nil, err
	}
	store, err := stores.Open(ctx, url, stores.WithLogger(c.log))
	if err != nil {
		return nil, err
	}
	keeper, err := lease.Claim(ctx, store, c.claimOptions(c.clock)...)
	if err != nil {
		return nil, join(err, store.Close())
	}
	c.lease, c.leased, c.leaseOptions = keeper, true, nil
	c.pinned, c.ownLayout, c.ownClock, c.within = false, false, false, base.Within{}
	g, err := newGenerator(c)
	if err != nil {
		return nil, join(err, new(drive.Ending).Wait(ctx, lease.ErrNotReleased, closing(keeper, store)))
	}
	g.store = store
	return g, nil
}

// claimOptions returns the options of the claim: those of the generator that the lease
// shares, and those passed through.
func (c *config) claimOptions(clock monoclock.Interface) []lease.Option {
	options := []lease.Option{lease.WithLayout(c.layout), lease.WithClock(clock), lease.WithLogger(c.log)}
	if c.pinned {
		options = append(options, lease.WithNode(c.node))
	}
	return append(options, c.leaseOptions...)
}
