package migrate_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func Example_autoIncrement() {
	ctx := context.Background()

	last := snowflake.ID(2147483647) // SELECT max(id) FROM orders
	clock, err := migrate.StartAfter(ctx, snowflake.Default(), last)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.Open(ctx, "order-ids", generator.WithClock(clock))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id > last)
	// Output: true
}

// frontEndOrder is an order for a front end that takes the ID for a number.
type frontEndOrder struct {
	ID   int64  `json:"id"` // not snowflake.ID, which is a string in JSON
	Item string `json:"item"`
}

func Example_javaScript() {
	ctx := context.Background()
	last := snowflake.ID(2147483647)

	layout := snowflake.JavaScript()
	clock, err := migrate.StartAfter(ctx, layout, last)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.Open(ctx, "short-order-ids", generator.WithLayout(layout), generator.WithClock(clock))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(frontEndOrder{ID: id.Int64(), Item: "pen"})
	if err != nil {
		log.Fatal(err)
	}

	var read map[string]any // numbers are float64, as in JavaScript
	if err := json.Unmarshal(text, &read); err != nil {
		log.Fatal(err)
	}
	fmt.Println(int64(read["id"].(float64)) == id.Int64())
	// Output: true
}

// insertOrder takes the place of an INSERT that left the ID to the database.
func insertOrder(ctx context.Context, db *sql.DB, gen *generator.Generator, item string) (snowflake.ID, error) {
	id, err := gen.Next()
	if err != nil {
		return 0, err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO orders (id, item) VALUES ($1, $2)", id, item)
	return id, err
}

// Whatever a database has counted to, IDs begin above it soon after the epoch.
func TestCountedIDsAreSmall(t *testing.T) {
	for _, c := range []struct {
		layout snowflake.Layout
		last   int64
		after  time.Duration
	}{
		{snowflake.Default(), 1<<31 - 1, 512 * time.Millisecond},
		{snowflake.JavaScript(), 1<<31 - 1, 10*time.Minute + 55360*time.Millisecond},
		{snowflake.Default(), 1 << 40, 5 * time.Minute},
		{snowflake.JavaScript(), 1 << 40, 94 * time.Hour},
	} {
		lowest, err := c.layout.Min(c.layout.Epoch.Add(c.after))
		require.NoError(t, err)
		assert.Greater(t, lowest.Int64(), c.last, c.layout.Name)
		if c.last < 1<<31 { // and not a tick earlier
			lowest, err = c.layout.Min(c.layout.Epoch.Add(c.after - c.layout.Tick))
			require.NoError(t, err)
			assert.LessOrEqual(t, lowest.Int64(), c.last, c.layout.Name)
		}
		_, err = migrate.StartAfter(t.Context(), c.layout, snowflake.ID(c.last))
		assert.NoError(t, err)
	}
	last, err := snowflake.JavaScript().Max(snowflake.JavaScript().End().Add(-time.Second))
	require.NoError(t, err)
	assert.LessOrEqual(t, last.Int64(), int64(1<<53-1))
}

func ids(t *testing.T, db *sql.DB) (all []int64) {
	t.Helper()
	rows, err := db.Query("SELECT id FROM orders ORDER BY id")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		require.NoError(t, rows.Scan(&id))
		all = append(all, id)
	}
	require.NoError(t, rows.Err())
	return all
}

func TestPostgreSQL(t *testing.T) {
	db, gen := postgreSQL(t), openAfter(t, snowflake.Default(), 0)
	counted := func() (id int64) {
		t.Helper()
		require.NoError(t, db.QueryRow("INSERT INTO orders (item) VALUES ('ink') RETURNING id").Scan(&id))
		return id
	}
	execute(t, db, "postgres/before.sql")
	_, err := db.Exec("ALTER TABLE orders ALTER COLUMN id RESTART WITH 4709")
	require.NoError(t, err)
	require.EqualValues(t, 4709, counted())
	_, err = db.Exec("INSERT INTO order_lines VALUES (4709, 3)")
	require.NoError(t, err)

	// Too wide, and not the writer's to give.
	_, err = db.Exec("INSERT INTO orders (id, item) OVERRIDING SYSTEM VALUE VALUES (2147483648, 'pen')")
	require.ErrorContains(t, err, "out of range")
	execute(t, db, "postgres/widen.sql")
	_, err = insertOrder(t.Context(), db, gen, "pen")
	require.ErrorContains(t, err, "non-DEFAULT value")
	execute(t, db, "postgres/open.sql")
	var id int64
	err = db.QueryRow("INSERT INTO orders (item) VALUES ('ink') RETURNING id").Scan(&id)
	require.ErrorContains(t, err, "cached plan must not change result type") // and not again
	first, err := insertOrder(t.Context(), db, gen, "pen")
	require.NoError(t, err)

	// Side by side: the database goes on counting where it was, and the IDs are larger.
	assert.EqualValues(t, 4710, counted())
	second, err := insertOrder(t.Context(), db, gen, "pen")
	require.NoError(t, err)
	assert.EqualValues(t, 4711, counted())
	assert.Equal(t, []int64{4709, 4710, 4711, first.Int64(), second.Int64()}, ids(t, db))
	_, err = db.Exec("INSERT INTO order_lines VALUES ($1, 5)", second)
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO order_lines VALUES ($1, 5)", second+1)
	require.ErrorContains(t, err, "foreign key")

	// Done, and back.
	execute(t, db, "postgres/done.sql")
	_, err = db.Exec("INSERT INTO orders (item) VALUES ('ink')")
	require.ErrorContains(t, err, "null value", "an old writer goes unnoticed")
	execute(t, db, "postgres/back.sql")
	assert.EqualValues(t, 4712, counted())
	assert.Len(t, ids(t, db), 6)
}

// A serial column is one with a default, and not an identity.
func TestPostgreSQLSerial(t *testing.T) {
	db, gen := postgreSQL(t), openAfter(t, snowflake.Default(), 0)
	counted := func() (id int64, err error) {
		err = db.QueryRow("INSERT INTO orders (item) VALUES ('ink') RETURNING id").Scan(&id)
		return id, err
	}
	execute(t, db, "postgres/serial_before.sql")
	_, err := db.Exec("ALTER SEQUENCE orders_id_seq RESTART WITH 4711")
	require.NoError(t, err)
	execute(t, db, "postgres/widen.sql")
	first, err := insertOrder(t.Context(), db, gen, "pen") // with nothing to open
	require.NoError(t, err)
	id, err := counted()
	require.NoError(t, err)
	require.EqualValues(t, 4711, id)
	for _, statement := range []string{"SET GENERATED BY DEFAULT", "DROP IDENTITY"} { // are for the others
		_, err = db.Exec("ALTER TABLE orders ALTER COLUMN id " + statement)
		require.ErrorContains(t, err, "not an identity column", statement)
	}

	execute(t, db, "postgres/serial_done.sql")
	_, err = counted()
	require.ErrorContains(t, err, "null value", "an old writer goes unnoticed")
	second, err := insertOrder(t.Context(), db, gen, "pen")
	require.NoError(t, err)
	execute(t, db, "postgres/serial_back.sql")
	id, err = counted()
	require.NoError(t, err)
	assert.EqualValues(t, 4712, id)
	assert.Equal(t, []int64{4711, 4712, first.Int64(), second.Int64()}, ids(t, db))
}

func TestMariaDB(t *testing.T) {
	db, gen := mariaDB(t), openAfter(t, snowflake.Default(), 0)
	counted := func() int64 {
		t.Helper()
		result, err := db.Exec("INSERT INTO orders (item) VALUES ('ink')")
		require.NoError(t, err)
		id, err := result.LastInsertId()
		require.NoError(t, err)
		return id
	}
	insert := func(id snowflake.ID) error {
		_, err := db.Exec("INSERT INTO orders (id, item) VALUES (?, 'pen')", id)
		return err
	}
	next := func() snowflake.ID {
		t.Helper()
		id, err := gen.Next()
		require.NoError(t, err)
		return id
	}
	execute(t, db, "mysql/before.sql")
	require.EqualValues(t, 1, counted())
	_, err := db.Exec("INSERT INTO order_lines VALUES (1, 3)")
	require.NoError(t, err)

	require.ErrorContains(t, insert(next()), "Out of range")
	execute(t, db, "mysql/widen.sql")
	_, err = db.Exec("ALTER TABLE orders AUTO_INCREMENT = 2")
	require.NoError(t, err)
	require.EqualValues(t, 2, counted())
	first := next()
	require.NoError(t, insert(first))

	// Side by side: the database goes on counting from the new ID. What it counts to is an
	// ID that might still be issued, and the primary key is what keeps the two apart.
	require.Equal(t, first.Int64()+1, counted())
	require.ErrorContains(t, insert(first+1), "Duplicate")
	second := next()
	for second <= first+1 {
		second = next()
	}
	require.NoError(t, insert(second))
	assert.Equal(t, []int64{1, 2, first.Int64(), first.Int64() + 1, second.Int64()}, ids(t, db))
	_, err = db.Exec("INSERT INTO order_lines VALUES (?, 5)", second)
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO order_lines VALUES (?, 5)", second+1)
	require.ErrorContains(t, err, "foreign key")

	// Done, and back: the count goes on above all IDs.
	execute(t, db, "mysql/done.sql")
	_, err = db.Exec("INSERT INTO orders (item) VALUES ('ink')")
	require.ErrorContains(t, err, "default value", "an old writer goes unnoticed")
	execute(t, db, "mysql/back.sql")
	assert.Equal(t, second.Int64()+1, counted())
	all := ids(t, db)
	assert.True(t, slices.IsSorted(all))
	assert.Len(t, all, 6)
}
