package databases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

const aloneName = "tickflake, alone"

// alone is tickflake with a fixed node number, and no server.
func alone() *way {
	return &way{
		name: aloneName, group: report.Ours, ticks: true,
		note: "no request; the node numbers are fixed, so nothing guards them",
		open: func(_ context.Context, _ *servers.Server, number int) (client, error) {
			return ids(generator.New(generator.WithNode(int64(number))))
		},
	}
}

func ids(g *generator.Generator, err error) (client, error) {
	if err != nil {
		return client{}, err
	}
	return client{close: g.Close, next: func(context.Context) (int64, error) {
		id, err := g.Next()
		return int64(id), err
	}}, nil
}

// openTimeout bounds how long a lease or a sequence may take to open.
const openTimeout = 10 * time.Second

// ours is tickflake in a server: under a lease, and its sequences.
func ours(server string, on *servers.Server) []*way {
	leased := &way{
		name: "tickflake, lease in " + server, group: report.Ours, on: on, ticks: true,
		note: "no request for an ID; one write every ten seconds",
		open: func(ctx context.Context, on *servers.Server, _ int) (client, error) {
			ctx, cancel := context.WithTimeout(ctx, openTimeout)
			defer cancel()
			return ids(generator.Open(ctx, on.URL, generator.WithLogger(slog.New(slog.DiscardHandler))))
		},
	}
	return []*way{leased,
		counted(server, on, sequence.Segmented, "no request for a number: segments for ten seconds, up to 1,000,000, the next prefetched"),
		counted(server, on, sequence.Ordered, "a number is written within the call that gets it; one write serves all calls of a client that wait")}
}

func sequenceName(server string, m sequence.Mode) string {
	return fmt.Sprintf("tickflake sequence in %s, %s", server, m)
}

// counted is a sequence of tickflake in a server.
func counted(server string, on *servers.Server, m sequence.Mode, note string) *way {
	return &way{name: sequenceName(server, m), group: report.Ours, on: on, note: note, crowd: m == sequence.Ordered,
		open: func(ctx context.Context, on *servers.Server, _ int) (client, error) {
			ctx, cancel := context.WithTimeout(ctx, openTimeout)
			defer cancel()
			store, err := stores.Open(ctx, on.URL)
			if err != nil {
				return client{}, err
			}
			s, err := sequence.Open(ctx, store, string(m), sequence.WithLogger(slog.New(slog.DiscardHandler)),
				sequence.WithDefinition(sequence.Definition{Mode: m}))
			if err != nil {
				return client{}, errors.Join(err, store.Close())
			}
			return client{next: s.Next, close: func() error { return errors.Join(s.Close(), store.Close()) }}, nil
		}}
}
