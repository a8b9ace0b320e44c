package main

import (
	"context"
	"errors"
	"slices"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// service issues IDs, and the numbers of orders. Both report all metrics to the global providers.
type service struct {
	ids    *oteltickflake.CountedGenerator
	orders *sequence.Sequence
	ends   []func(context.Context) error // run at the end, the last first
}

// open opens the store, claims a node number, and opens a sequence.
func open(ctx context.Context, dir string) (_ *service, err error) {
	s, fleet := &service{}, oteltickflake.WithNamespace("example")
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	store, err := stores.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { return store.Close() })
	reported := oteltickflake.Wrap(store, fleet)

	keeper, err := lease.Claim(ctx, reported)
	if err != nil {
		return nil, err
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		return nil, errors.Join(err, keeper.CloseContext(ctx))
	}
	s.atEnd(gen.CloseContext)
	observed, err := oteltickflake.Observe(gen, fleet)
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { return observed.Unregister() })
	s.ids, err = oteltickflake.CountIDs(gen, fleet) // leave it out unless you want the rate
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { return s.ids.Unregister() })

	s.orders, err = sequence.Open(ctx, reported, "orders", sequence.WithDefinition(sequence.Definition{Start: 1, Max: 9_999_999_999}))
	if err != nil {
		return nil, err
	}
	s.atEnd(s.orders.CloseContext)
	numbered, err := oteltickflake.ObserveSequence(s.orders, fleet)
	if err != nil {
		return nil, err
	}
	s.atEnd(func(context.Context) error { return numbered.Unregister() })
	return s, nil
}

func (s *service) atEnd(f func(context.Context) error) { s.ends = append(s.ends, f) }

// close gives unused numbers back, and ends the reports.
func (s *service) close(ctx context.Context) (err error) {
	for _, f := range slices.Backward(s.ends) {
		err = errors.Join(err, f(ctx))
	}
	return err
}

// issue issues n IDs, and the number of an order.
func (s *service) issue(ctx context.Context, n int) error {
	batch := make([]snowflake.ID, min(n, 1<<16))
	for ; n > 0; n -= len(batch) {
		if _, err := s.ids.NextNContext(ctx, batch[:min(n, len(batch))]); err != nil {
			return err
		}
	}
	_, err := s.orders.Next(ctx)
	return err
}
