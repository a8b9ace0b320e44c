package pgxnative_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/pgxnative"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func TestOrders(t *testing.T) {
	url := exampletest.PostgreSQL(t)
	open := func(params string) *pgxpool.Pool {
		db, err := pgxnative.Open(t.Context(), url+params)
		require.NoError(t, err)
		t.Cleanup(db.Close)
		return db
	}
	db, gen := open(""), exampletest.IDs(t)
	_, err := db.Exec(t.Context(), pgxnative.Schema)
	require.NoError(t, err)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) { orders(t, open("&default_query_exec_mode="+mode), gen) })
	}
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

	layout := gen.Layout()
	got, err = pgxnative.Between(ctx, db, layout, layout.Epoch, layout.End())
	require.NoError(t, err)
	assert.Equal(t, ids[4], got[len(got)-1].ID)

	_, err = db.Exec(ctx, "INSERT INTO orders (id, customer) VALUES ($1, '')", snowflake.ID(-5))
	assert.ErrorIs(t, err, snowflake.ErrRange)
	_, err = db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer"},
		pgx.CopyFromRows([][]any{{snowflake.ID(-5), ""}}))
	assert.ErrorContains(t, err, snowflake.ErrRange.Error())
}
