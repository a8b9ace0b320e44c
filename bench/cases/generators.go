package cases

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

// fixed makes a generator with a fixed node number.
func fixed(layout snowflake.Layout, opts ...generator.Option) opener {
	return func(context.Context) (*generator.Generator, error) {
		return generator.New(append(opts, generator.WithLayout(layout), generator.WithNode(0))...)
	}
}

// leased makes a generator with a lease in a store in memory, which is extended while the
// generator issues.
func leased(layout snowflake.Layout) opener {
	return func(ctx context.Context) (*generator.Generator, error) {
		keeper, err := lease.Claim(ctx, storetest.NewMemory(), lease.WithLayout(layout),
			lease.WithWindow(time.Second), lease.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		g, err := generator.New(generator.WithLease(keeper))
		if err != nil {
			return nil, errors.Join(err, keeper.Close())
		}
		return g, nil
	}
}
