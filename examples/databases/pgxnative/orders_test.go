package pgxnative_test

import (
	"database/sql"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/pgxnative"
	"github.com/tickflake/tickflake/examples/internal/testdb"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func TestOrders(t *testing.T) {
	url := testdb.PostgreSQL(t)
	open := func(params string) *pgxpool.Pool {
		db, err := pgxnative.Open(t.Context(), url+params)
		require.NoError(t, err)
		t.Cleanup(db.Close)
		return db
	}
	db, gen := open(""), testdb.IDs(t)
	_, err := db.Exec(t.Context(), pgxnative.Schema)
	require.NoError(t, err)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) { orders(t, open("&default_query_exec_mode="+mode), gen) })
	}
	t.Run("time range", func(t *testing.T) { timeRange(t, db) })
}

func orders(t *testing.T, db *pgxpool.Pool, gen *generator.Generator) {
	ctx := t.Context()
	id, err := pgxnative.Insert(ctx, db, gen, "ada")
	require.NoError(t, err)
	ids, err := pgxnative.InsertBatch(ctx, db, gen, []string{"bob", "cyd"})
	require.NoError(t, err)
	more, err := pgxnative.Import(ctx, db, gen, []string{"dan", "eve"})
	require.NoError(t, err)
	ids = append(append([]snowflake.ID{id}, ids...), more...)
	_, err = db.Exec(ctx, "UPDATE orders SET replaces = $1 WHERE id = $2", &ids[0], ids[1])
	require.NoError(t, err)

	got, err := pgxnative.Get(ctx, db, ids...)
	require.NoError(t, err)
	assert.Equal(t, []pgxnative.Order{{ids[0], "ada", nil}, {ids[1], "bob", &ids[0]},
		{ids[2], "cyd", nil}, {ids[3], "dan", nil}, {ids[4], "eve", nil}}, got)

	var null sql.Null[snowflake.ID]
	require.NoError(t, db.QueryRow(ctx, "SELECT replaces FROM orders WHERE id = $1", ids[0]).Scan(&null))
	assert.False(t, null.Valid)
	require.NoError(t, db.QueryRow(ctx, "SELECT replaces FROM orders WHERE id = $1", ids[1]).Scan(&null))
	assert.Equal(t, sql.Null[snowflake.ID]{V: ids[0], Valid: true}, null)
	var plain snowflake.ID
	err = db.QueryRow(ctx, "SELECT replaces FROM orders WHERE id = $1", ids[0]).Scan(&plain)
	assert.ErrorIs(t, err, snowflake.ErrType, "NULL is no ID")

	_, err = db.Exec(ctx, "INSERT INTO orders (id, customer) VALUES ($1, '')", snowflake.ID(-5))
	assert.ErrorIs(t, err, snowflake.ErrRange)
	_, err = db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer"},
		pgx.CopyFromRows([][]any{{snowflake.ID(-5), ""}}))
	assert.ErrorContains(t, err, snowflake.ErrRange.Error())
}

func timeRange(t *testing.T, db *pgxpool.Pool) {
	ctx := t.Context()
	_, err := db.Exec(ctx, "TRUNCATE orders")
	require.NoError(t, err)
	inside, outside := testdb.Around(t, testdb.Day)
	month := testdb.Month(t)
	ids := append(append(inside, outside...), month...)
	_, err = db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) { return []any{ids[i], "ada"}, nil }))
	require.NoError(t, err)
	_, err = db.Exec(ctx, "ANALYZE orders")
	require.NoError(t, err)

	layout, next := snowflake.Default(), testdb.Day.AddDate(0, 0, 1)
	got, err := pgxnative.Between(ctx, db, layout, testdb.Day, next)
	require.NoError(t, err)
	assert.Len(t, got, len(inside)+24*testdb.PerHour)
	for i, order := range got {
		decoded, err := layout.Decode(order.ID)
		require.NoError(t, err)
		require.False(t, decoded.Time.Before(testdb.Day) || !decoded.Time.Before(next), "%v", decoded)
		require.True(t, i == 0 || got[i-1].ID < order.ID)
	}
	for _, id := range inside {
		assert.Contains(t, got, pgxnative.Order{ID: id, Customer: "ada"})
	}
	_, err = pgxnative.Between(ctx, db, layout, next, testdb.Day)
	assert.ErrorIs(t, err, snowflake.ErrRange, "an empty range")
	hour, err := pgxnative.Between(ctx, db, layout, testdb.Day.Add(time.Hour), testdb.Day.Add(2*time.Hour))
	require.NoError(t, err)
	assert.Len(t, hour, testdb.PerHour)

	lo, hi, err := layout.Between(testdb.Day, next)
	require.NoError(t, err)
	node := plan(t, db, "SELECT * FROM orders WHERE id BETWEEN $1 AND $2 ORDER BY id", lo, hi)
	assert.Equal(t, "orders_pkey", node.Index, "%+v", node)
	assert.Contains(t, node.Type, "Index")
	assert.Contains(t, node.Cond, "id >= ")
	assert.Contains(t, node.Cond, "id <= ")
	// The plan without the index, so that the check above means something.
	node = plan(t, db, "SELECT * FROM orders WHERE id + 0 BETWEEN $1 AND $2", lo, hi)
	assert.Equal(t, "Seq Scan", node.Type)
	assert.Empty(t, node.Index)
}

// node is the part of a plan that reads the table.
type node struct {
	Type  string `json:"Node Type"`
	Index string `json:"Index Name"`
	Cond  string `json:"Index Cond"`
	Plans []node
}

func plan(t *testing.T, db *pgxpool.Pool, query string, args ...any) node {
	var text []byte
	require.NoError(t, db.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+query, args...).Scan(&text))
	var plans []struct{ Plan node }
	require.NoError(t, json.Unmarshal(text, &plans), "%s", text)
	n := plans[0].Plan
	for len(n.Plans) > 0 {
		n = n.Plans[0]
	}
	return n
}
