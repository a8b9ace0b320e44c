package databases

import (
	"context"
	"errors"
	"io"
	"log"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	_ "github.com/tickflake/tickflake/stores/mysql" // the engines of the leases
	_ "github.com/tickflake/tickflake/stores/postgres"
	_ "github.com/tickflake/tickflake/stores/redis"
	_ "github.com/tickflake/tickflake/stores/zookeeper"
)

// Names of ways in targets.
const (
	postgresRows    = "PostgreSQL auto-increment"
	sequentialNodes = "ZooKeeper sequential node per ID"
)

var wanted = []servers.Wanted{{Kind: servers.PostgreSQL}, {Kind: servers.MariaDB}, {Kind: servers.Redis},
	{Kind: servers.Redis, Settings: []string{"--appendonly", "yes", "--appendfsync", "always"}}, {Kind: servers.ZooKeeper}}

// list is all ways, in the order of the report, on those servers.
func list(on []*servers.Server) []*way {
	postgres, maria, redisAsShipped, redisSynced, zooKeeper := on[0], on[1], on[2], on[3], on[4]
	return slices.Concat([]*way{alone(), {
		name: "PostgreSQL sequence", on: postgres, crowd: true,
		note:   "nextval: one request, and a sync of the log every 32nd time; no row is committed",
		schema: "CREATE SEQUENCE ids",
		open:   asks("SELECT nextval('ids')"),
	}, {
		name: postgresRows, on: postgres,
		note:   "an INSERT of a row that is only a key: one request and one commit",
		schema: "CREATE TABLE keyed (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)",
		open:   asks("INSERT INTO keyed DEFAULT VALUES RETURNING id"),
	}, {
		name: "PostgreSQL row with a tickflake ID", group: report.Ours, on: postgres,
		note:   "the same INSERT, with the key: one request and one commit",
		schema: "CREATE TABLE given (id bigint PRIMARY KEY)",
		open:   inserts("INSERT INTO given VALUES ($1) RETURNING id"),
	}, {
		name: "PostgreSQL row, tickflake_next() by default", group: report.Ours, on: postgres,
		note: "an INSERT of a row that is only a key, which the function of “tickflake layout sql” makes: one request and one commit",
		open: byDefault,
	}, {
		name: "segments of 1000 in PostgreSQL", on: postgres,
		note:   "as Tinyid and Leaf do it, but the next segment is not prefetched: one commit in 1000 IDs",
		schema: "CREATE TABLE segments (tag text PRIMARY KEY, last bigint NOT NULL)",
		open:   inSegments("INSERT INTO segments AS s VALUES ('order', $1) ON CONFLICT (tag) DO UPDATE SET last = s.last + excluded.last RETURNING last"),
	}}, ours("PostgreSQL", postgres), []*way{{
		name: "MariaDB sequence", on: maria, crowd: true,
		note:   "NEXT VALUE FOR: one request; the server reserves 1000 at a time by default",
		schema: "CREATE SEQUENCE ids",
		open:   asks("SELECT NEXT VALUE FOR ids"),
	}, {
		name: "MariaDB auto-increment", on: maria,
		note:   "an INSERT of a row that is only a key: one request and one commit",
		schema: "CREATE TABLE keyed (id bigint AUTO_INCREMENT PRIMARY KEY)",
		open:   asks("INSERT INTO keyed () VALUES () RETURNING id"),
	}}, ours("MariaDB", maria), []*way{{
		name: "Redis INCR, as shipped", on: redisAsShipped, crowd: true,
		note: "one request; a crash forgets the last numbers, which are then issued again",
		open: incr,
	}, {
		name: "Redis INCR, appendfsync always", on: redisSynced, crowd: true,
		note: "one request and one sync",
		open: incr,
	}}, ours("Redis", redisSynced), []*way{{
		name: sequentialNodes, on: zooKeeper, crowd: true,
		note: "one request and one sync; the nodes stay, and the numbers end at 2³¹",
		open: makeNodes,
	}}, ours("ZooKeeper", zooKeeper))
}

// opener opens a client, as [way.open] does.
type opener = func(ctx context.Context, on *servers.Server, number int) (client, error)

// asks sends a statement to the server for each ID, which it returns.
func asks(statement string) opener {
	return func(_ context.Context, on *servers.Server, _ int) (client, error) {
		next, end, err := database(on, statement)
		return client{next: func(ctx context.Context) (int64, error) { return next(ctx) }, close: end}, err
	}
}

// inserts sends a statement with an ID of tickflake.
func inserts(statement string) opener {
	return func(ctx context.Context, on *servers.Server, number int) (client, error) {
		own, err := alone().open(ctx, on, number)
		insert, disconnect, failed := database(on, statement)
		return client{close: func() error { return errors.Join(own.close(), disconnect()) }, next: func(ctx context.Context) (int64, error) {
			id, _ := own.next(ctx) // it waits for its tick
			return insert(ctx, id)
		}}, errors.Join(err, failed)
	}
}

// byDefault makes a table whose default is tickflake_next(), and inserts.
func byDefault(ctx context.Context, on *servers.Server, number int) (client, error) {
	if number == 0 {
		function, err := program.Tickflake(ctx, false, "layout", "sql", "--node", "1023")
		if err != nil {
			return client{}, err
		}
		db, err := on.SQL(nil)
		if err != nil {
			return client{}, err
		}
		_, err = db.ExecContext(ctx, function+"CREATE TABLE defaulted (id bigint PRIMARY KEY DEFAULT tickflake_next())")
		if err = errors.Join(err, db.Close()); err != nil {
			return client{}, err
		}
	}
	return asks("INSERT INTO defaulted DEFAULT VALUES RETURNING id")(ctx, on, number)
}

// inSegments reserves a segment of numbers in a row of a table, for one goroutine. The statement adds to the last one and
// returns it.
func inSegments(statement string) opener {
	const segment = 1000
	return func(_ context.Context, on *servers.Server, _ int) (client, error) {
		reserve, disconnect, err := database(on, statement)
		var number, last int64
		return client{close: disconnect, next: func(ctx context.Context) (_ int64, err error) {
			if number++; number > last {
				last, err = reserve(ctx, segment)
				number = last - segment + 1
			}
			return number, err
		}}, err
	}
}

// database connects to a server, and returns a function that executes a statement and returns the number that the
// statement does.
func database(on *servers.Server, statement string) (execute func(ctx context.Context, args ...any) (int64, error), disconnect func() error, err error) {
	db, err := on.SQL(nil)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, args ...any) (number int64, err error) {
		err = db.QueryRowContext(ctx, statement, args...).Scan(&number)
		return number, err
	}, db.Close, nil
}

// incr has Redis count.
func incr(_ context.Context, on *servers.Server, _ int) (client, error) {
	c, err := on.Redis()
	if err != nil {
		return client{}, err
	}
	return client{close: c.Close, next: func(ctx context.Context) (int64, error) { return c.Incr(ctx, "ids").Result() }}, nil
}

// makeNodes makes nodes in ZooKeeper. The end of ctx closes the connection, too: its methods take no context, and
// wait for a server that does not answer.
func makeNodes(ctx context.Context, on *servers.Server, number int) (client, error) {
	conn, _, err := zk.Connect([]string{on.Addr}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return client{}, err
	}
	context.AfterFunc(ctx, conn.Close) // which may be called twice
	if number == 0 {
		_, err = conn.Create("/ids", nil, 0, zk.WorldACL(zk.PermAll))
	}
	return client{close: func() error { conn.Close(); return nil }, next: func(context.Context) (int64, error) {
		path, err := conn.Create("/ids/", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimPrefix(path, "/ids/"), 10, 64)
	}}, err
}
