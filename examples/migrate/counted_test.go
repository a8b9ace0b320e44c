package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

func Example_counted() {
	ctx := context.Background()
	store, err := stores.Open(ctx, "order-numbers") // or the URL of a server
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	first, last := int64(10_000), int64(1_009_999)

	if err := sequence.Create(ctx, store, "orders", sequence.Definition{Start: first, Max: last}); err != nil {
		log.Fatal(err)
	}

	orders, err := sequence.Open(ctx, store, "orders")
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close() // gives the numbers back that it has reserved

	number, err := orders.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(number)

	largest := int64(1_020_345) // that the old counter has given out

	_, after, err := sequence.Set(ctx, store, "orders", sequence.Change{Next: largest + 1, Max: math.MaxInt64})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(after.Next)
	// Output:
	// 10000
	// 1020346
}

// counter is an old system that counts.
type counter struct {
	start   func() func(context.Context) (int64, error) // an old process, by its next number
	take    func() sequence.Definition                  // the numbers that the guide takes
	largest func() int64                                // that was given out, or may have been
}

// switchOver follows the guide while two old processes give out numbers, and checks that no
// number is given out twice.
func switchOver(t *testing.T, old counter) {
	ctx := t.Context()
	store, err := stores.Open(ctx, t.TempDir())
	require.NoError(t, err)
	defer func() { _ = store.Close() }()

	seen := numbers{by: map[int64]string{}}
	issue := func(by string, next func(context.Context) (int64, error), n int) error {
		for range n {
			number, err := next(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", by, err)
			}
			if err := seen.add(number, by); err != nil {
				return err
			}
		}
		return nil
	}
	processes := []func(context.Context) (int64, error){old.start(), old.start()}
	for _, next := range processes {
		require.NoError(t, issue("old", next, 50))
	}

	var group errgroup.Group
	for _, next := range processes {
		group.Go(func() error { return issue("old", next, 100) })
	}
	definition := old.take()
	require.NoError(t, sequence.Create(ctx, store, "orders", definition))
	orders, err := sequence.Open(ctx, store, "orders")
	require.NoError(t, err)
	defer func() { require.NoError(t, orders.Close()) }()
	group.Go(func() error { return issue("new", orders.Next, 1000) })
	require.NoError(t, group.Wait())
	for _, next := range processes {
		require.NoError(t, issue("old", next, 50))
	}
	for number, by := range seen.by {
		mine := number >= definition.Start && number <= definition.Max
		require.Equal(t, by == "new", mine, "%d of %s; the new numbers are %s", number, by, definition)
	}

	largest := old.largest()
	for number := range seen.by {
		require.LessOrEqual(t, number, largest, "a counter that the guide reads too low")
	}
	_, after, err := sequence.Set(ctx, store, "orders", sequence.Change{Next: largest + 1, Max: math.MaxInt64})
	require.NoError(t, err)
	assert.Greater(t, after.Next, largest)
	var number int64
	for number <= largest { // after the numbers that were reserved before
		number, err = orders.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, seen.add(number, "new"))
	}
	assert.Equal(t, after.Next, number)
}

// numbers tells who gave out a number.
type numbers struct {
	sync.Mutex
	by map[int64]string
}

func (n *numbers) add(number int64, by string) error {
	n.Lock()
	defer n.Unlock()
	if first, twice := n.by[number]; twice {
		return fmt.Errorf("%d was given out twice: by %s and by %s", number, first, by)
	}
	n.by[number] = by
	return nil
}

// query runs the statements of a file on one connection, and returns the number that it shows.
func query(t *testing.T, db *sql.DB, file string) (shown int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "sql", file))
	require.NoError(t, err)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	for statement := range strings.SplitSeq(string(text), ";\n") {
		switch {
		case strings.HasPrefix(statement, "SELECT"):
			require.NoError(t, conn.QueryRowContext(t.Context(), statement).Scan(&shown), statement)
		case statement != "":
			_, err := conn.ExecContext(t.Context(), statement)
			require.NoError(t, err, statement)
		}
	}
	return shown
}

func upTo(last int64) sequence.Definition {
	return sequence.Definition{Start: last - 999_999, Max: last}
}

func TestCountedFromPostgreSQL(t *testing.T) {
	t.Parallel()
	db := postgreSQL(t)
	execute(t, db, "postgres/before.sql")
	switchOver(t, counter{
		start: shared(func(ctx context.Context) (id int64, err error) {
			err = db.QueryRowContext(ctx, "INSERT INTO orders (item) VALUES ('ink') RETURNING id").Scan(&id)
			return id, err
		}),
		take:    func() sequence.Definition { return upTo(query(t, db, "postgres/take.sql")) },
		largest: func() int64 { return query(t, db, "postgres/counter.sql") },
	})
}

func TestCountedFromMariaDB(t *testing.T) {
	t.Parallel()
	db := mariaDB(t)
	execute(t, db, "mysql/before.sql")
	switchOver(t, counter{
		start: shared(func(ctx context.Context) (int64, error) {
			result, err := db.ExecContext(ctx, "INSERT INTO orders (item) VALUES ('ink')")
			if err != nil {
				return 0, err
			}
			return result.LastInsertId()
		}),
		take: func() sequence.Definition {
			require.Less(t, query(t, db, "mysql/take.sql"), int64(10_000))
			definition := sequence.Definition{Start: 10_000, Max: 1_009_999}
			_, err := db.Exec("INSERT INTO orders (id, item) VALUES (?, 'pen')", definition.Max)
			require.NoError(t, err) // and the counter of the table stays where it is
			_, err = db.Exec("DELETE FROM orders WHERE id = ?", definition.Max)
			require.NoError(t, err)
			return definition
		},
		largest: func() int64 { return query(t, db, "mysql/counter.sql") },
	})
}

func takeFromRedis(ctx context.Context, client *redis.Client) (int64, error) {
	last, err := client.IncrBy(ctx, "orders", 1_000_000).Result()
	return last, err
}

func largestOfRedis(ctx context.Context, client *redis.Client) (int64, error) {
	largest, err := client.Get(ctx, "orders").Int64()
	return largest, err
}

func endRedis(ctx context.Context, client *redis.Client) error {
	err := client.Set(ctx, "orders", "moved to a sequence", 0).Err()
	return err
}

func TestCountedFromRedis(t *testing.T) {
	t.Parallel()
	client, err := servers.For(t, servers.Redis).Redis()
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	ctx := t.Context()
	switchOver(t, counter{
		start: shared(func(ctx context.Context) (int64, error) { return client.Incr(ctx, "orders").Result() }),
		take: func() sequence.Definition {
			last, err := takeFromRedis(ctx, client)
			require.NoError(t, err)
			return upTo(last)
		},
		largest: func() int64 {
			largest, err := largestOfRedis(ctx, client)
			require.NoError(t, err)
			return largest
		},
	})
	require.NoError(t, endRedis(ctx, client))
	require.ErrorContains(t, client.Incr(ctx, "orders").Err(), "not an integer", "a forgotten process")
}

// shared starts processes that keep nothing in memory.
func shared(next func(context.Context) (int64, error)) func() func(context.Context) (int64, error) {
	return func() func(context.Context) (int64, error) { return next }
}

// segments gives out the numbers of segments that claim returns, as Leaf and Tinyid do.
func segments(claim func(context.Context) (next, last int64, err error), by int64) func(context.Context) (int64, error) {
	next, last := int64(1), int64(0)
	return func(ctx context.Context) (_ int64, err error) {
		if next > last {
			if next, last, err = claim(ctx); err != nil {
				return 0, err
			}
		}
		next += by
		return next - by, nil
	}
}

func TestCountedFromLeaf(t *testing.T) {
	t.Parallel()
	db := mariaDB(t)
	execute(t, db, "leaf/before.sql")
	claim := func(ctx context.Context) (next, last int64, err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, 0, err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err = tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'orders'"); err != nil {
			return 0, 0, err
		}
		var step int64
		err = tx.QueryRowContext(ctx, "SELECT max_id, step FROM leaf_alloc WHERE biz_tag = 'orders'").Scan(&last, &step)
		return last - step, last - 1, errors.Join(err, tx.Commit())
	}
	switchOver(t, counter{
		start:   func() func(context.Context) (int64, error) { return segments(claim, 1) },
		take:    func() sequence.Definition { return upTo(query(t, db, "leaf/take.sql") - 1) },
		largest: func() int64 { return query(t, db, "leaf/counter.sql") - 1 },
	})
	execute(t, db, "leaf/end.sql")
	_, _, err := claim(t.Context())
	require.ErrorIs(t, err, sql.ErrNoRows, "a forgotten process")
}

func TestCountedFromTinyid(t *testing.T) {
	t.Parallel()
	db := mariaDB(t)
	execute(t, db, "tinyid/before.sql")
	for _, delta := range []int64{1, 2} {
		remainder := delta - 1
		claim := func(ctx context.Context) (next, last int64, err error) {
			for {
				var step, version int64
				if err := db.QueryRowContext(ctx, "SELECT max_id, step, version FROM tiny_id_info WHERE biz_type = 'orders'").Scan(&last, &step, &version); err != nil {
					return 0, 0, err
				}
				result, err := db.ExecContext(ctx, "UPDATE tiny_id_info SET max_id = ?, version = version + 1 WHERE biz_type = 'orders' AND max_id = ? AND version = ?", last+step, last, version)
				if err != nil {
					return 0, 0, err
				}
				if changed, err := result.RowsAffected(); err != nil || changed == 1 {
					next = last + 1
					for next%delta != remainder {
						next++
					}
					return next, last + step, err
				}
			}
		}
		switchOver(t, counter{
			start: func() func(context.Context) (int64, error) { return segments(claim, delta) },
			take: func() sequence.Definition {
				last := query(t, db, "tinyid/take.sql")
				return migrate.FromTinyid(last-999_999, last, delta, remainder)
			},
			largest: func() int64 { return query(t, db, "tinyid/counter.sql") },
		})
		if delta == 2 {
			execute(t, db, "tinyid/end.sql")
			_, _, err := claim(t.Context())
			require.ErrorIs(t, err, sql.ErrNoRows, "a forgotten process")
		}
	}
}

func TestFromTinyid(t *testing.T) {
	for _, c := range []struct{ first, delta, remainder, want int64 }{
		{101, 1, 0, 101}, {100, 2, 0, 100}, {100, 2, 1, 101}, {101, 2, 0, 102}, {7, 5, 1, 11}, {0, 3, 2, 2},
	} {
		got := migrate.FromTinyid(c.first, 1000, c.delta, c.remainder)
		assert.Equal(t, c.want, got.First(), "%+v", c)
		assert.Equal(t, c.delta, got.Stride.By(), "%+v", c)
	}
}
