package alternatives

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/integration/servers"
	_ "github.com/tickflake/tickflake/stores/mysql" // the engines of the leases
	_ "github.com/tickflake/tickflake/stores/postgres"
	_ "github.com/tickflake/tickflake/stores/redis"
	_ "github.com/tickflake/tickflake/stores/zookeeper"
)

// Names of ways in targets.
const (
	postgresSequence = "PostgreSQL sequence"
	sequentialNodes  = "ZooKeeper sequential node per ID"
)

// list is all ways, in the order of the report.
func list() (all []*way) {
	maria, postgres := []place{maria}, []place{postgres}
	add := func(ways ...*way) {
		for _, w := range ways {
			if w.group == "" {
				w.group = report.Peers
			}
			all = append(all, w)
		}
	}
	add(alone(), &way{
		name: postgresSequence, needs: postgres, crowd: true,
		note:  "nextval: one request, and a sync of the log every 32nd time",
		setUp: statements("CREATE SEQUENCE ids"),
		open:  sqlClient(query("SELECT nextval('ids')")),
	}, &way{
		name: "PostgreSQL auto-increment", needs: postgres,
		note:  "an INSERT of a row that is only a key: one request and one commit",
		setUp: statements("CREATE TABLE keyed (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)"),
		open:  sqlClient(query("INSERT INTO keyed DEFAULT VALUES RETURNING id")),
	}, &way{
		name: "PostgreSQL segments of 1000, the next prefetched", needs: postgres,
		note: "as Tinyid does it: one commit in 1000 IDs, in the background",
		setUp: statements("CREATE TABLE segments (tag text PRIMARY KEY, last bigint NOT NULL)",
			"INSERT INTO segments VALUES ('order', 0)"),
		open: inSegments(0, func(ctx context.Context, db *sql.DB, n int64) (last int64, err error) {
			const update = "UPDATE segments SET last = last + $1 WHERE tag = 'order' RETURNING last"
			return last, db.QueryRowContext(ctx, update, n).Scan(&last)
		}),
	})
	add(ours("PostgreSQL", postgres[0])...)
	add(&way{
		name: "MariaDB sequence", needs: maria, crowd: true,
		note:  "NEXT VALUE FOR: one request; the server reserves 1000 at a time by default",
		setUp: statements("CREATE SEQUENCE ids"),
		open:  sqlClient(query("SELECT NEXT VALUE FOR ids")),
	}, &way{
		name: "MariaDB auto-increment", needs: maria,
		note:  "an INSERT of a row that is only a key: one request and one commit",
		setUp: statements("CREATE TABLE keyed (id bigint AUTO_INCREMENT PRIMARY KEY)"),
		open:  sqlClient(insert("INSERT INTO keyed () VALUES ()")),
	}, &way{
		name: "two MariaDB ticket servers (Flickr)", needs: []place{maria[0], secondMaria},
		note:  "REPLACE INTO one and the other in turn, increment 2, InnoDB: one request and one commit; a deadlock is tried again",
		setUp: statements("CREATE TABLE Tickets64 (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, stub char(1) NOT NULL, UNIQUE KEY stub (stub))"),
		open:  openTickets,
	}, &way{
		name: "MariaDB segments, doubled while used up quickly", needs: maria,
		note:  "as Leaf does it: from 1000 up to 512,000, the next prefetched",
		setUp: statements("CREATE TABLE segments (tag varchar(128) PRIMARY KEY, last bigint NOT NULL)", "INSERT INTO segments VALUES ('order', 0)"),
		open:  inSegments(512_000, update),
	})
	add(ours("MariaDB", maria[0])...)
	add(&way{
		name: "Redis INCR, as shipped", needs: []place{redisAsShipped}, crowd: true,
		note: "one request; a crash forgets the last numbers, which are then issued again",
		open: incr,
	}, &way{
		name: "Redis INCR, appendfsync always", needs: []place{redisSynced}, crowd: true,
		note: "one request and one sync",
		open: incr,
	})
	add(ours("Redis", redisSynced)...)
	add(&way{
		name: sequentialNodes, needs: []place{zooKeeper}, crowd: true,
		note: "one request and one sync; the nodes stay, and the numbers end at 2³¹",
		setUp: func(ctx context.Context, on []*servers.Server) error {
			conn, disconnect, err := connect(ctx, on[0])
			if err != nil {
				return err
			}
			_, err = conn.Create("/ids", nil, 0, zk.WorldACL(zk.PermAll))
			return errors.Join(err, disconnect())
		},
		open: func(ctx context.Context, on []*servers.Server, _ int) (client, error) {
			conn, disconnect, err := connect(ctx, on[0])
			return client{close: disconnect, next: func(context.Context) (int64, error) {
				path, err := conn.Create("/ids/", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
				if err != nil {
					return 0, err
				}
				return strconv.ParseInt(strings.TrimPrefix(path, "/ids/"), 10, 64)
			}}, err
		},
	})
	add(ours("ZooKeeper", zooKeeper)...)
	return all
}

// statements returns a setUp of SQL statements, on each server of the way.
func statements(all ...string) func(context.Context, []*servers.Server) error {
	return func(ctx context.Context, on []*servers.Server) error {
		for _, s := range on {
			db, err := s.SQL(nil)
			if err != nil {
				return err
			}
			for _, statement := range all {
				if _, err := db.ExecContext(ctx, statement); err != nil {
					return errors.Join(err, db.Close())
				}
			}
			if err := db.Close(); err != nil {
				return err
			}
		}
		return nil
	}
}

// opener opens a client, as [way.open] does.
type opener = func(ctx context.Context, on []*servers.Server, number int) (client, error)

// sqlClient asks the server for each ID.
func sqlClient(next func(context.Context, *sql.DB) (int64, error)) opener {
	return func(_ context.Context, on []*servers.Server, _ int) (client, error) {
		db, err := on[0].SQL(nil)
		if err != nil {
			return client{}, err
		}
		return client{
			next:  func(ctx context.Context) (int64, error) { return next(ctx, db) },
			close: db.Close,
		}, nil
	}
}

// query returns the number that a query selects.
func query(text string) func(context.Context, *sql.DB) (int64, error) {
	return func(ctx context.Context, db *sql.DB) (id int64, err error) {
		return id, db.QueryRowContext(ctx, text).Scan(&id)
	}
}

// insert returns the key that the server gave to a new row.
func insert(text string) func(context.Context, *sql.DB) (int64, error) {
	return func(ctx context.Context, db *sql.DB) (int64, error) {
		done, err := db.ExecContext(ctx, text)
		if err != nil {
			return 0, err
		}
		return done.LastInsertId()
	}
}

// inSegments reserves IDs in a table. The segments grow up to most, unless it is 0.
func inSegments(most int64, fetch func(ctx context.Context, db *sql.DB, n int64) (last int64, err error)) opener {
	return func(_ context.Context, on []*servers.Server, _ int) (client, error) {
		db, err := on[0].SQL(nil)
		if err != nil {
			return client{}, err
		}
		next, end := prefetched(func(ctx context.Context, n int64) (int64, error) { return fetch(ctx, db, n) }, most)
		return client{next: next, close: func() error {
			end()
			return db.Close()
		}}, nil
	}
}

// update reserves IDs in a row of the table, in a transaction.
func update(ctx context.Context, db *sql.DB, n int64) (last int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit, it does nothing
	if _, err := tx.ExecContext(ctx, "UPDATE segments SET last = last + ? WHERE tag = 'order'", n); err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, "SELECT last FROM segments WHERE tag = 'order'").Scan(&last); err != nil {
		return 0, err
	}
	return last, tx.Commit()
}

// openTickets returns a client that asks the two servers in turn.
func openTickets(_ context.Context, on []*servers.Server, _ int) (client, error) {
	var dbs []*sql.DB
	var open measure.Closers
	for i, s := range on {
		db, err := s.SQL(map[string]string{"auto_increment_increment": strconv.Itoa(len(on)), "auto_increment_offset": strconv.Itoa(i + 1)})
		if err != nil {
			return client{}, errors.Join(err, open.Close())
		}
		open.Add(db.Close)
		dbs = append(dbs, db)
	}
	replace := insert("REPLACE INTO Tickets64 (stub) VALUES ('a')")
	turn := 0
	return client{close: open.Close, next: func(ctx context.Context) (int64, error) {
		turn++
		for {
			id, err := replace(ctx, dbs[turn%len(dbs)])
			var failed *mysql.MySQLError
			const deadlock = 1213 // of InnoDB, when two replace one row
			if errors.As(err, &failed) && failed.Number == deadlock {
				continue
			}
			return id, err
		}
	}}, nil
}

// incr has Redis count.
func incr(_ context.Context, on []*servers.Server, _ int) (client, error) {
	c, err := on[0].Redis()
	if err != nil {
		return client{}, err
	}
	return client{close: c.Close, next: func(ctx context.Context) (int64, error) { return c.Incr(ctx, "ids").Result() }}, nil
}

// connect returns a connection, and a function that closes it. The end of ctx closes it
// too: its methods take no context, and wait for a server that does not answer.
func connect(ctx context.Context, s *servers.Server) (conn *zk.Conn, disconnect func() error, err error) {
	conn, _, err = zk.Connect([]string{s.Addr}, 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
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
