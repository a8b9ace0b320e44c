package migrate_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func Example_autoIncrement() {
	ctx := context.Background()

	last := snowflake.ID(2147483647) // SELECT max(id) FROM orders
	gen, err := generator.Open(ctx, "order-ids", generator.WithFloor(last))
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
	gen, err := generator.Open(ctx, "short-order-ids", generator.WithLayout(layout), generator.WithFloor(last))
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

// writers insert orders with an ID that the database counts, and with one of a generator.
type writers struct {
	counted func() (int64, error)
	insert  func(*generator.Generator) (snowflake.ID, error)
}

// stages runs the SQL files of the guide in its order. An insert with an ID works from the file
// open on, and the database counts on beside it until done, after which an old writer fails.
func stages(t *testing.T, db *sql.DB, w writers, before, widen, open, done, back string) {
	gen, err := generator.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, gen.Close()) })
	count := func() int64 {
		t.Helper()
		id, err := w.counted()
		require.NoError(t, err)
		return id
	}
	execute(t, db, before)
	want := []int64{count()}
	execute(t, db, widen)
	if open != "" {
		_, err := w.insert(gen)
		require.ErrorContains(t, err, "non-DEFAULT value")
		execute(t, db, open)
	}
	if _, err := w.counted(); err != nil {
		require.ErrorContains(t, err, "cached plan must not change result type") // and not again
	}
	for range 2 {
		id, err := w.insert(gen)
		require.NoError(t, err)
		want = append(want, id.Int64(), count())
	}
	execute(t, db, done)
	_, err = w.counted()
	require.Error(t, err, "an old writer goes unnoticed")
	execute(t, db, back)
	assert.NotContains(t, want, count())
	for _, id := range want {
		var n int
		require.NoError(t, db.QueryRow(fmt.Sprint("SELECT COUNT(*) FROM orders WHERE id = ", id)).Scan(&n))
		assert.Equal(t, 1, n, id)
	}
}

func TestPostgreSQL(t *testing.T) {
	onPostgreSQL := func(db *sql.DB) writers {
		return writers{
			counted: func() (id int64, err error) {
				err = db.QueryRow("INSERT INTO orders (item) VALUES ('ink') RETURNING id").Scan(&id)
				return id, err
			},
			insert: func(gen *generator.Generator) (snowflake.ID, error) { return insertOrder(t.Context(), db, gen, "pen") },
		}
	}
	db := postgreSQL(t)
	stages(t, db, onPostgreSQL(db), "postgres/before.sql", "postgres/widen.sql", "postgres/open.sql", "postgres/done.sql", "postgres/back.sql")
	db = postgreSQL(t) // a serial column is one with a default, and not an identity
	stages(t, db, onPostgreSQL(db), "postgres/serial_before.sql", "postgres/widen.sql", "", "postgres/serial_done.sql", "postgres/serial_back.sql")
}

func TestMariaDB(t *testing.T) {
	db := mariaDB(t)
	w := writers{
		counted: func() (int64, error) {
			result, err := db.Exec("INSERT INTO orders (item) VALUES ('ink')")
			if err != nil {
				return 0, err
			}
			return result.LastInsertId()
		},
		insert: func(gen *generator.Generator) (snowflake.ID, error) {
			for {
				id, err := gen.Next()
				if err == nil {
					_, err = db.Exec("INSERT INTO orders (id, item) VALUES (?, 'pen')", id)
				}
				// It counts on from our ID, so the primary key is what keeps the two apart.
				if err == nil || !strings.Contains(err.Error(), "Duplicate") {
					return id, err
				}
			}
		},
	}
	stages(t, db, w, "mysql/before.sql", "mysql/widen.sql", "", "mysql/done.sql", "mysql/back.sql")
}
