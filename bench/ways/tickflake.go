package ways

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
)

const aloneName = "tickflake, alone"

// alone is tickflake with a node number that is given, and no server.
func alone() way {
	return way{
		name: aloneName, group: results.Ours,
		note: "no request; the node numbers are given, so nothing guards them",
		published: rate("CosId SnowflakeId, M1 laptop", 4.096e6) + "; " + rate("Baidu CachedUidGenerator", 6e6) + "; " +
			rate("a Java Snowflake of the tutorials", 260e3) + "; " + rate("what Twitter asked for", 10e3),
		open: func(_ context.Context, _ running, number int) (client, error) {
			g, err := generator.New(generator.WithNode(int64(number)))
			if err != nil {
				return client{}, err
			}
			return client{next: nextOf(g), close: g.Close}, nil
		},
	}
}

// store is a [lease.Store] that can be closed.
type store interface {
	lease.Store
	Close() error
}

func leasedName(server string) string { return "tickflake, lease in " + server }

// leased is tickflake under a lease in a server.
func leased[S store](name string, p place, open func(context.Context, string) (S, error)) way {
	return way{
		name: leasedName(name), group: results.Ours, needs: []place{p},
		note: "no request for an ID; one write every ten seconds",
		open: func(ctx context.Context, r running, _ int) (client, error) {
			s, err := open(ctx, r[p].URL)
			if err != nil {
				return client{}, err
			}
			g, err := claim(ctx, s)
			if err != nil {
				return client{}, errors.Join(err, s.Close())
			}
			return client{next: nextOf(g), close: func() error { return errors.Join(g.Close(), s.Close()) }}, nil
		},
	}
}

func claim(ctx context.Context, s lease.Store) (*generator.Generator, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	keeper, err := lease.Claim(ctx, s, lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	return generator.New(generator.WithLease(keeper))
}

func nextOf(g *generator.Generator) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) {
		id, err := g.Next()
		return int64(id), err
	}
}
