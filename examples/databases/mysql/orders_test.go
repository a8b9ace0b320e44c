package mysql_test

import (
	"database/sql"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/mysql"
	"github.com/tickflake/tickflake/examples/internal/testdb"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func TestOrders(t *testing.T) {
	dsn, gen := testdb.MariaDB(t), testdb.IDs(t)
	db := testdb.Open(t, "mysql", dsn)
	_, err := db.Exec(mysql.Schema)
	require.NoError(t, err)
	t.Run("prepared", func(t *testing.T) { orders(t, db, gen) })
	t.Run("interpolated", func(t *testing.T) { orders(t, testdb.Open(t, "mysql", dsn+"&interpolateParams=true"), gen) })
	t.Run("unsigned", func(t *testing.T) { unsigned(t, db, gen) })
	t.Run("time range", func(t *testing.T) { timeRange(t, db) })
}

func orders(t *testing.T, db *sql.DB, gen *generator.Generator) {
	ctx := t.Context()
	first := mysql.Order{Customer: "ada"}
	require.NoError(t, mysql.Insert(ctx, db, gen, &first))
	second := mysql.Order{Customer: "ada", Replaces: sql.Null[snowflake.ID]{V: first.ID, Valid: true}}
	require.NoError(t, mysql.Insert(ctx, db, gen, &second))
	ids, err := mysql.Import(ctx, db, gen, []string{"bob", "cyd"})
	require.NoError(t, err)

	layout := gen.Layout()
	got, err := mysql.Between(ctx, db, layout, layout.Epoch, layout.End())
	require.NoError(t, err)
	assert.Equal(t, []mysql.Order{first, second, {ID: ids[0], Customer: "bob"}, {ID: ids[1], Customer: "cyd"}}, got[len(got)-4:])

	second.Replaces.V, err = gen.Next() // which no order has
	require.NoError(t, err)
	var refused *driver.MySQLError
	require.ErrorAs(t, mysql.Insert(ctx, db, gen, &second), &refused, "there is no such order")
	assert.EqualValues(t, 1452, refused.Number)
	second.Replaces.V = -5
	err = mysql.Insert(ctx, db, gen, &second)
	assert.ErrorIs(t, err, snowflake.ErrRange, "no negative ID gets in")
	var plain snowflake.ID
	err = db.QueryRow("SELECT replaces FROM orders WHERE id = ?", first.ID).Scan(&plain)
	assert.ErrorIs(t, err, snowflake.ErrType, "NULL is no ID")
}

// MySQL before 9.0 ignores a REFERENCES in the definition of a column. (MariaDB does not, so a
// test on it would not show that.)
func TestForeignKeyIsOneOnMySQLToo(t *testing.T) {
	for line := range strings.Lines(mysql.Schema) {
		if strings.Contains(line, "REFERENCES") {
			assert.Regexp(t, `^\s*FOREIGN KEY `, line)
		}
	}
	assert.Contains(t, mysql.Schema, "REFERENCES")
}

// A column of type BIGINT UNSIGNED works, too.
func unsigned(t *testing.T, db *sql.DB, gen *generator.Generator) {
	_, err := db.Exec("CREATE TABLE old (id BIGINT UNSIGNED NOT NULL PRIMARY KEY)")
	require.NoError(t, err)
	id, err := gen.Next()
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO old VALUES (?), (18446744073709551615)", id)
	require.NoError(t, err)
	for _, query := range []string{"SELECT id FROM old WHERE id <= ?", "SELECT MIN(id) FROM old WHERE ? > 0"} {
		var got snowflake.ID
		require.NoError(t, db.QueryRow(query, id).Scan(&got))
		assert.Equal(t, id, got)
		err = db.QueryRow("SELECT id FROM old WHERE id > ?", id).Scan(&got)
		assert.ErrorIs(t, err, snowflake.ErrRange, "which is no ID")
	}
}

func timeRange(t *testing.T, db *sql.DB) {
	ctx := t.Context()
	_, err := db.Exec("DROP TABLE orders")
	require.NoError(t, err)
	_, err = db.Exec(mysql.Schema)
	require.NoError(t, err)
	inside, outside := testdb.Around(t, testdb.Day)
	ids := append(append(inside, outside...), testdb.Month(t)...)
	tx, err := db.Begin()
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	insert, err := tx.Prepare("INSERT INTO orders (id, customer) VALUES (?, 'ada')")
	require.NoError(t, err)
	for _, id := range ids {
		_, err = insert.Exec(id)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
	var ignored, result string
	require.NoError(t, db.QueryRow("ANALYZE TABLE orders").Scan(&ignored, &ignored, &ignored, &result))

	layout, next := snowflake.Default(), testdb.Day.AddDate(0, 0, 1)
	got, err := mysql.Between(ctx, db, layout, testdb.Day, next)
	require.NoError(t, err)
	assert.Len(t, got, len(inside)+24*testdb.PerHour)
	for i, order := range got {
		decoded, err := layout.Decode(order.ID)
		require.NoError(t, err)
		require.False(t, decoded.Time.Before(testdb.Day) || !decoded.Time.Before(next), "%v", decoded)
		require.True(t, i == 0 || got[i-1].ID < order.ID)
	}
	for _, id := range inside {
		assert.Contains(t, got, mysql.Order{ID: id, Customer: "ada"})
	}

	lo, hi, err := layout.Between(testdb.Day, next)
	require.NoError(t, err)
	read := plan(t, db, "SELECT * FROM orders WHERE id BETWEEN ? AND ? ORDER BY id", lo, hi)
	assert.Equal(t, access{Type: "range", Key: "PRIMARY"}, read)
	// The plan without the index, so that the check above means something.
	read = plan(t, db, "SELECT * FROM orders WHERE id + 0 BETWEEN ? AND ?", lo, hi)
	assert.Equal(t, access{Type: "ALL"}, read)
}

// access says how a plan reads the table.
type access struct{ Type, Key string }

func plan(t *testing.T, db *sql.DB, query string, args ...any) access {
	var read access
	var key sql.NullString
	var ignored any
	require.NoError(t, db.QueryRow("EXPLAIN "+query, args...).Scan(&ignored, &ignored, &ignored,
		&read.Type, &ignored, &key, &ignored, &ignored, &ignored, &ignored))
	read.Key = key.String
	return read
}
