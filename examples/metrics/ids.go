package main

import (
	"context"
	"errors"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// open opens the store, claims a node number, and reports all metrics to the global providers.
// close releases the number and ends the reports.
func open(ctx context.Context, dir string) (ids *oteltickflake.CountedGenerator, close func(context.Context) error, err error) {
	fleet := oteltickflake.WithNamespace("example")
	store, err := stores.Open(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	keeper, err := lease.Claim(ctx, oteltickflake.Wrap(store, fleet))
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		return nil, nil, errors.Join(err, keeper.Close(), store.Close())
	}
	observed, err := oteltickflake.Observe(gen, fleet)
	if err != nil {
		return nil, nil, errors.Join(err, gen.Close(), store.Close())
	}
	kept, err := oteltickflake.ObserveKeeper(keeper, fleet)
	if err != nil {
		return nil, nil, errors.Join(err, gen.Close(), store.Close())
	}
	ids, err = oteltickflake.CountIDs(gen, fleet) // leave it out unless you want the rate
	if err != nil {
		return nil, nil, errors.Join(err, gen.Close(), store.Close())
	}
	return ids, func(ctx context.Context) error {
		return errors.Join(gen.CloseContext(ctx), observed.Unregister(), kept.Unregister(), ids.Unregister(), store.Close())
	}, nil
}

// issue issues n IDs.
func issue(ctx context.Context, ids *oteltickflake.CountedGenerator, n int) error {
	batch := make([]snowflake.ID, min(n, 1<<16))
	for ; n > 0; n -= len(batch) {
		if _, err := ids.NextNContext(ctx, batch[:min(n, len(batch))]); err != nil {
			return err
		}
	}
	return nil
}
