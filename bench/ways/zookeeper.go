package ways

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/bench/results"
	zookeeperstore "github.com/tickflake/tickflake/stores/zookeeper"
)

func zooKeeperWays() []way {
	needs := []place{zooKeeper}
	const counter, parent = "/counter", "/ids"
	return []way{{
		name: "ZooKeeper sequential node per ID", group: results.Peers, needs: needs,
		note:      "one request and one sync; the nodes stay, and the numbers end at 2³¹",
		published: total(10_000, 9443*time.Millisecond),
		setUp:     makeNode(parent, ""),
		open: openZooKeeper(func(conn *zk.Conn) func(context.Context) (int64, error) {
			return func(context.Context) (int64, error) {
				path, err := conn.Create(parent+"/", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
				if err != nil {
					return 0, err
				}
				return strconv.ParseInt(strings.TrimPrefix(path, parent+"/"), 10, 64)
			}
		}),
	}, {
		name: "ZooKeeper segments of 1000", group: results.Peers, needs: needs,
		note:      "two requests and one sync in 1000 IDs: a node is read, and set if it still has the same version",
		published: total(10_000, 553*time.Millisecond),
		setUp:     makeNode(counter, "0"),
		open: openZooKeeper(func(conn *zk.Conn) func(context.Context) (int64, error) {
			return newSegments(func(ctx context.Context, n int64) (int64, error) {
				return addTo(ctx, conn, counter, n)
			}).Next
		}),
	}, leased("ZooKeeper", zooKeeper, zookeeperstore.Open)}
}

// addTo adds n to the number that a node holds, and returns the sum.
func addTo(ctx context.Context, conn *zk.Conn, path string, n int64) (int64, error) {
	for {
		text, stat, err := conn.Get(path)
		if err != nil {
			return 0, err
		}
		last, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return 0, err
		}
		last += n
		_, err = conn.Set(path, strconv.AppendInt(nil, last, 10), stat.Version)
		if errors.Is(err, zk.ErrBadVersion) && ctx.Err() == nil {
			continue // another client was faster
		}
		return last, err
	}
}

func openZooKeeper(next func(*zk.Conn) func(context.Context) (int64, error)) func(context.Context, running, int) (client, error) {
	return func(ctx context.Context, r running, _ int) (client, error) {
		conn, disconnect, err := connect(ctx, r)
		if err != nil {
			return client{}, err
		}
		return client{next: next(conn), close: disconnect}, nil
	}
}

func makeNode(path, value string) func(context.Context, running) error {
	return func(ctx context.Context, r running) error {
		conn, disconnect, err := connect(ctx, r)
		if err != nil {
			return err
		}
		_, err = conn.Create(path, []byte(value), 0, zk.WorldACL(zk.PermAll))
		return errors.Join(err, disconnect())
	}
}

// connect returns a connection, and what closes it. It is also closed when ctx ends,
// since its methods take none, and wait for a server that does not answer.
func connect(ctx context.Context, r running) (conn *zk.Conn, disconnect func() error, err error) {
	conn, _, err = zk.Connect([]string{r[zooKeeper].Addr}, 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, nil, err
	}
	forget := context.AfterFunc(ctx, conn.Close)
	return conn, func() error {
		forget()
		conn.Close()
		return nil
	}, nil
}

// silent is a zk.Logger.
type silent struct{}

func (silent) Printf(string, ...any) {}
