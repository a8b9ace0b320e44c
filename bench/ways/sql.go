package ways

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/go-sql-driver/mysql"

	"github.com/tickflake/tickflake/bench/results"
	mysqlstore "github.com/tickflake/tickflake/stores/mysql"
	postgresstore "github.com/tickflake/tickflake/stores/postgres"
)

func postgresWays() []way {
	needs := []place{postgres}
	return []way{{
		name: "PostgreSQL sequence", group: results.Peers, needs: needs,
		note:  "nextval: one request, and a sync of the log every 32nd time",
		setUp: statements(postgres, "CREATE SEQUENCE ids"),
		open:  perID(postgres, query("SELECT nextval('ids')")),
	}, {
		name: "PostgreSQL auto-increment", group: results.Peers, needs: needs,
		note:  "an INSERT of a row with nothing but its key, and the key back: one request and one commit",
		setUp: statements(postgres, "CREATE TABLE keyed (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)"),
		open:  perID(postgres, query("INSERT INTO keyed DEFAULT VALUES RETURNING id")),
	}, {
		name: "PostgreSQL segments of 1000, the next prefetched", group: results.Peers, needs: needs,
		note:      "as Tinyid does it: one commit in 1000 IDs, in the background",
		published: rate("CosId SegmentChainId, M1 laptop", 127e6),
		setUp: statements(postgres, "CREATE TABLE segments (tag text PRIMARY KEY, last bigint NOT NULL)",
			"INSERT INTO segments VALUES ('order', 0)"),
		open: inSegments(postgres, 0, func(ctx context.Context, db *sql.DB, n int64) (last int64, err error) {
			const update = "UPDATE segments SET last = last + $1 WHERE tag = 'order' RETURNING last"
			return last, db.QueryRowContext(ctx, update, n).Scan(&last)
		}),
	}, leased("PostgreSQL", postgres, postgresstore.Open)}
}

func mariaWays() []way {
	needs := []place{maria}
	table := func(name string) []string {
		return []string{"CREATE TABLE " + name + " (tag varchar(128) PRIMARY KEY, last bigint NOT NULL)",
			"INSERT INTO " + name + " VALUES ('order', 0)"}
	}
	return []way{{
		name: "MariaDB sequence", group: results.Peers, needs: needs,
		note:  "NEXT VALUE FOR: one request; the server reserves 1000 at a time, as it does by default",
		setUp: statements(maria, "CREATE SEQUENCE ids"),
		open:  perID(maria, query("SELECT NEXT VALUE FOR ids")),
	}, {
		name: "MariaDB auto-increment", group: results.Peers, needs: needs,
		note:  "an INSERT of a row with nothing but its key, and the key back: one request and one commit",
		setUp: statements(maria, "CREATE TABLE keyed (id bigint AUTO_INCREMENT PRIMARY KEY)"),
		open:  perID(maria, insert("INSERT INTO keyed () VALUES ()")),
	}, {
		name: "two MariaDB ticket servers (Flickr)", group: results.Peers, needs: []place{maria, secondMaria},
		note:  "REPLACE INTO on the one and the other in turn, increment 2, offsets 1 and 2, InnoDB: one request and one commit; a deadlock is tried again",
		setUp: setUpTickets,
		open:  openTickets,
	}, {
		name: "MariaDB segments of 1000, the next prefetched", group: results.Peers, needs: needs,
		note:      "as Tinyid does it: one transaction in 1000 IDs, in the background",
		published: rate("CosId SegmentChainId, M1 laptop", 127e6),
		setUp:     statements(maria, table("segments")...),
		open:      inSegments(maria, 0, update("segments")),
	}, {
		name: "MariaDB segments, doubled while used up quickly", group: results.Peers, needs: needs,
		note:      "as Leaf does it: from 1000 up to 512,000, the next prefetched",
		published: rate("CosId SegmentChainId, M1 laptop", 127e6),
		setUp:     statements(maria, table("growing")...),
		open:      inSegments(maria, 1_000_000, update("growing")),
	}, leased("MariaDB", maria, mysqlstore.Open)}
}

// statements returns a setUp of SQL statements.
func statements(p place, all ...string) func(context.Context, running) error {
	return func(ctx context.Context, r running) error {
		db, err := r[p].SQL(nil)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		for _, statement := range all {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}
}

// perID returns an open of clients that ask the server for each ID.
func perID(p place, next func(context.Context, *sql.DB) (int64, error)) func(context.Context, running, int) (client, error) {
	return func(_ context.Context, r running, _ int) (client, error) {
		db, err := r[p].SQL(nil)
		if err != nil {
			return client{}, err
		}
		return client{
			next:  func(ctx context.Context) (int64, error) { return next(ctx, db) },
			close: db.Close,
		}, nil
	}
}

// query returns what a query selects.
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

// inSegments returns an open of clients that reserve IDs in a table. The segments grow
// up to most, unless it is 0.
func inSegments(p place, most int64, fetch func(ctx context.Context, db *sql.DB, n int64) (last int64, err error)) func(context.Context, running, int) (client, error) {
	return func(_ context.Context, r running, _ int) (client, error) {
		db, err := r[p].SQL(nil)
		if err != nil {
			return client{}, err
		}
		s := newPrefetched(func(ctx context.Context, n int64) (int64, error) { return fetch(ctx, db, n) }, most)
		return client{next: s.Next, close: func() error {
			s.Close()
			return db.Close()
		}}, nil
	}
}

// update reserves IDs in a row of the table, in a transaction.
func update(table string) func(context.Context, *sql.DB, int64) (int64, error) {
	return func(ctx context.Context, db *sql.DB, n int64) (last int64, err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer func() { _ = tx.Rollback() }() // which does nothing after a commit
		if _, err := tx.ExecContext(ctx, "UPDATE "+table+" SET last = last + ? WHERE tag = 'order'", n); err != nil {
			return 0, err
		}
		if err := tx.QueryRowContext(ctx, "SELECT last FROM "+table+" WHERE tag = 'order'").Scan(&last); err != nil {
			return 0, err
		}
		return last, tx.Commit()
	}
}

var ticketServers = []place{maria, secondMaria}

func setUpTickets(ctx context.Context, r running) error {
	for _, p := range ticketServers {
		make := statements(p, "CREATE TABLE Tickets64 (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, stub char(1) NOT NULL, UNIQUE KEY stub (stub))")
		if err := make(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// openTickets returns a client that asks the two servers in turn.
func openTickets(_ context.Context, r running, _ int) (client, error) {
	var dbs []*sql.DB
	closeAll := func() error {
		var errs []error
		for _, db := range dbs {
			errs = append(errs, db.Close())
		}
		return errors.Join(errs...)
	}
	for i, p := range ticketServers {
		offset := []string{"1", "2"}[i]
		db, err := r[p].SQL(map[string]string{"auto_increment_increment": "2", "auto_increment_offset": offset})
		if err != nil {
			return client{}, errors.Join(err, closeAll())
		}
		dbs = append(dbs, db)
	}
	replace := insert("REPLACE INTO Tickets64 (stub) VALUES ('a')")
	var mu sync.Mutex
	turn := 0
	return client{close: closeAll, next: func(ctx context.Context) (int64, error) {
		mu.Lock()
		defer mu.Unlock()
		turn++
		for {
			id, err := replace(ctx, dbs[turn%len(dbs)])
			var failed *mysql.MySQLError
			const deadlock = 1213 // InnoDB's, when two replace one row
			if errors.As(err, &failed) && failed.Number == deadlock {
				continue
			}
			return id, err
		}
	}}, nil
}
