package alternatives

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/bench/measure"
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

// list is all ways, in the order of the report.
func list() []*way {
	return slices.Concat([]*way{alone(), {
		name: "PostgreSQL sequence", needs: []place{postgres}, crowd: true,
		note:   "nextval: one request, and a sync of the log every 32nd time; no row is committed",
		schema: "CREATE SEQUENCE ids",
		open:   asks("SELECT nextval('ids')"),
	}, {
		name: postgresRows, needs: []place{postgres},
		note:   "an INSERT of a row that is only a key: one request and one commit",
		schema: "CREATE TABLE keyed (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)",
		open:   asks("INSERT INTO keyed DEFAULT VALUES RETURNING id"),
	}, {
		name: "PostgreSQL row with a tickflake ID", group: report.Ours, needs: []place{postgres},
		note:   "the same INSERT, with the key: one request and one commit",
		schema: "CREATE TABLE given (id bigint PRIMARY KEY)",
		open:   inserts("INSERT INTO given VALUES ($1) RETURNING id"),
	}, {
		name: "PostgreSQL row, tickflake_next() by default", group: report.Ours, needs: []place{postgres},
		note: "an INSERT of a row that is only a key, which the function of “tickflake layout sql” makes: one request and one commit",
		open: byDefault,
	}, {
		name: "segments of 1000 in PostgreSQL", needs: []place{postgres},
		note:   "as Tinyid does it: one commit in 1000 IDs, in the background",
		schema: "CREATE TABLE segments (tag text PRIMARY KEY, last bigint NOT NULL)",
		open:   inSegments(0, "INSERT INTO segments AS s VALUES ('order', $1) ON CONFLICT (tag) DO UPDATE SET last = s.last + excluded.last RETURNING last"),
	}}, ours("PostgreSQL", postgres), []*way{{
		name: "MariaDB sequence", needs: []place{maria}, crowd: true,
		note:   "NEXT VALUE FOR: one request; the server reserves 1000 at a time by default",
		schema: "CREATE SEQUENCE ids",
		open:   asks("SELECT NEXT VALUE FOR ids"),
	}, {
		name: "MariaDB auto-increment", needs: []place{maria},
		note:   "an INSERT of a row that is only a key: one request and one commit",
		schema: "CREATE TABLE keyed (id bigint AUTO_INCREMENT PRIMARY KEY)",
		open:   asks("INSERT INTO keyed () VALUES () RETURNING id"),
	}, {
		name: "two MariaDB ticket servers (Flickr)", needs: []place{maria, secondMaria},
		note:   "REPLACE INTO one and the other in turn, increment 2, InnoDB: one request and one commit; a deadlock is tried again",
		schema: "CREATE TABLE Tickets64 (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, stub char(1) NOT NULL, UNIQUE KEY stub (stub))",
		open:   asks("REPLACE INTO Tickets64 (stub) VALUES ('a') RETURNING id"),
	}, {
		name: "segments like Leaf's in MariaDB", needs: []place{maria},
		note:   "as Leaf does it: from 1000 up to 512,000, the next prefetched",
		schema: "CREATE TABLE segments (tag varchar(128) PRIMARY KEY, last bigint NOT NULL)",
		open:   inSegments(512_000, "INSERT INTO segments VALUES ('order', ?) ON DUPLICATE KEY UPDATE last = last + VALUES(last) RETURNING last"),
	}}, ours("MariaDB", maria), []*way{{
		name: "Redis INCR, as shipped", needs: []place{redisAsShipped}, crowd: true,
		note: "one request; a crash forgets the last numbers, which are then issued again",
		open: incr,
	}, {
		name: "Redis INCR, appendfsync always", needs: []place{redisSynced}, crowd: true,
		note: "one request and one sync",
		open: incr,
	}}, ours("Redis", redisSynced), []*way{{
		name: sequentialNodes, needs: []place{zooKeeper}, crowd: true,
		note: "one request and one sync; the nodes stay, and the numbers end at 2³¹",
		open: makeNodes,
	}}, ours("ZooKeeper", zooKeeper))
}

// opener opens a client, as [way.open] does.
type opener = func(ctx context.Context, on []*servers.Server, number int) (client, error)

// asks sends a statement to the servers in turn for each ID, which it returns.
func asks(statement string) opener {
	return func(_ context.Context, on []*servers.Server, _ int) (client, error) {
		next, end, err := database(on, statement)
		return client{next: func(ctx context.Context) (int64, error) { return next(ctx) }, close: end}, err
	}
}

// inserts sends a statement with an ID of tickflake.
func inserts(statement string) opener {
	return func(ctx context.Context, on []*servers.Server, number int) (client, error) {
		own, err := alone().open(ctx, on, number)
		insert, disconnect, failed := database(on, statement)
		return client{close: func() error { return errors.Join(own.close(), disconnect()) }, next: func(ctx context.Context) (int64, error) {
			id, _ := own.next(ctx) // it waits for its tick
			return insert(ctx, id)
		}}, errors.Join(err, failed)
	}
}

// byDefault makes a table whose default is tickflake_next(), and inserts.
func byDefault(ctx context.Context, on []*servers.Server, number int) (client, error) {
	if number == 0 {
		function, err := program.Tickflake(ctx, false, "layout", "sql", "--node", "1023")
		if err != nil {
			return client{}, err
		}
		db, err := on[0].SQL(nil)
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

// inSegments reserves IDs in a row of a table. The statement adds to the last one and returns it. The segments
// grow up to most, unless it is 0.
func inSegments(most int64, statement string) opener {
	return func(_ context.Context, on []*servers.Server, _ int) (client, error) {
		add, disconnect, err := database(on, statement)
		if err != nil {
			return client{}, err
		}
		next, end := prefetched(func(ctx context.Context, n int64) (int64, error) { return add(ctx, n) }, most)
		return client{next: next, close: func() error { end(); return disconnect() }}, nil
	}
}

// database connects to servers, and returns a function that executes a statement on one after the other and
// returns the number that the statement does. Several servers have numbers of their own.
func database(on []*servers.Server, statement string) (execute func(ctx context.Context, args ...any) (int64, error), disconnect func() error, err error) {
	var all []*sql.DB
	var open measure.Closers
	for i, s := range on {
		var settings map[string]string
		if len(on) > 1 {
			settings = map[string]string{"auto_increment_increment": strconv.Itoa(len(on)), "auto_increment_offset": strconv.Itoa(i + 1)}
		}
		db, err := s.SQL(settings)
		if err != nil {
			return nil, nil, errors.Join(err, open.Close())
		}
		open.Add(db.Close)
		all = append(all, db)
	}
	var turn atomic.Int64 // grows by one with each call, of many goroutines
	return func(ctx context.Context, args ...any) (number int64, err error) {
		db := all[turn.Add(1)%int64(len(all))]
		for {
			err := db.QueryRowContext(ctx, statement, args...).Scan(&number)
			var failed *mysql.MySQLError
			if !errors.As(err, &failed) || failed.Number != deadlock {
				return number, err
			}
		}
	}, open.Close, nil
}

// deadlock is MariaDB's error when two replace one row.
const deadlock = 1213

// incr has Redis count.
func incr(_ context.Context, on []*servers.Server, _ int) (client, error) {
	c, err := on[0].Redis()
	if err != nil {
		return client{}, err
	}
	return client{close: c.Close, next: func(ctx context.Context) (int64, error) { return c.Incr(ctx, "ids").Result() }}, nil
}

// makeNodes makes nodes in ZooKeeper. The end of ctx closes the connection, too: its methods take no context, and
// wait for a server that does not answer.
func makeNodes(ctx context.Context, on []*servers.Server, number int) (client, error) {
	conn, _, err := zk.Connect([]string{on[0].Addr}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
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
