package ways

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

const aloneName = "tickflake, alone"

// alone is tickflake with a fixed node number, and no server.
func alone() way {
	return way{
		name: aloneName, group: results.Ours,
		note:      "no request; the node numbers are fixed, so nothing guards them",
		published: "CosId SnowflakeId: 4,096,000/s; Baidu CachedUidGenerator: 6,000,000/s",
		open: func(_ context.Context, _ []*servers.Server, number int) (client, error) {
			g, err := generator.New(generator.WithNode(int64(number)))
			if err != nil {
				return client{}, err
			}
			return client{next: nextOf(g), close: g.Close}, nil
		},
	}
}

// leased is tickflake under a lease in a server.
func leased(server string, p place) way {
	return way{
		name: "tickflake, lease in " + server, group: results.Ours, needs: []place{p},
		note: "no request for an ID; one write every ten seconds",
		open: func(ctx context.Context, on []*servers.Server, _ int) (client, error) {
			opening, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			g, err := generator.Open(opening, on[0].URL, generator.WithLeaseOptions(lease.WithLogger(slog.New(slog.DiscardHandler))))
			if err != nil {
				return client{}, err
			}
			return client{next: nextOf(g), close: g.Close}, nil
		},
	}
}

// mode is that of a sequence of tickflake.
type mode = sequence.Mode

const (
	segmented = sequence.Segmented
	ordered   = sequence.Ordered
)

// sequenceServers are the servers in which sequences are measured.
var sequenceServers = []string{"PostgreSQL", "MariaDB", "Redis", "ZooKeeper"}

func sequenceName(server string, m mode) string {
	return fmt.Sprintf("tickflake sequence in %s, %s", server, m)
}

// counted is a sequence of tickflake in a server.
func counted(server string, p place, m mode) way {
	w := way{name: sequenceName(server, m), group: results.Ours, needs: []place{p}}
	if m == ordered {
		w.crowd = true
		w.note = "a number is written within the call that gets it; one write serves all calls of a client that wait"
	} else {
		w.note = "no request for a number: segments for ten seconds, up to 1,000,000, the next prefetched"
	}
	w.open = func(ctx context.Context, on []*servers.Server, _ int) (client, error) {
		opening, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		store, err := stores.Open(opening, on[0].URL)
		if err != nil {
			return client{}, err
		}
		s, err := sequence.Open(opening, store, m.String(), sequence.WithLogger(slog.New(slog.DiscardHandler)),
			sequence.WithDefinition(sequence.Definition{Mode: m, Start: 1}))
		if err != nil {
			return client{}, errors.Join(err, store.Close())
		}
		return client{next: s.Next, close: func() error { return errors.Join(s.Close(), store.Close()) }}, nil
	}
	return w
}

func nextOf(g *generator.Generator) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) {
		id, err := g.Next()
		return int64(id), err
	}
}

// syncFloor is the least that it takes to make a number durable.
func syncFloor() way {
	return way{
		name: "write 4 kB to the disk and sync it", group: results.Floor,
		note: "no ID: what a durable server does before it answers",
		open: func(context.Context, []*servers.Server, int) (client, error) {
			dir, err := servers.Dir()
			if err != nil {
				return client{}, err
			}
			file, err := os.Create(filepath.Join(dir, "block"))
			if err != nil {
				return client{}, errors.Join(err, os.RemoveAll(dir))
			}
			block := make([]byte, 4096)
			return client{
				next: func(context.Context) (int64, error) {
					if _, err := file.WriteAt(block, 0); err != nil {
						return 0, err
					}
					return 0, file.Sync()
				},
				close: func() error { return errors.Join(file.Close(), os.RemoveAll(dir)) },
			}, nil
		},
	}
}
