package pgxsql_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/pgxsql"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func TestOrders(t *testing.T) {
	url, gen := exampletest.PostgreSQL(t), exampletest.IDs(t)
	_, err := exampletest.Open(t, "pgx", url).Exec(pgxsql.Schema)
	require.NoError(t, err)
	for _, mode := range []string{"cache_statement", "describe_exec"} {
		t.Run(mode, func(t *testing.T) {
			orders(t, exampletest.Open(t, "pgx", url+"&default_query_exec_mode="+mode), gen)
		})
	}
}

func orders(t *testing.T, db *sql.DB, gen *generator.Generator) {
	ctx, begin := t.Context(), time.Now()
	first := pgxsql.Order{Customer: "ada"}
	require.NoError(t, pgxsql.Insert(ctx, db, gen, &first))
	second := pgxsql.Order{Customer: "ada", Replaces: sql.Null[snowflake.ID]{V: first.ID, Valid: true}}
	require.NoError(t, pgxsql.Insert(ctx, db, gen, &second))
	ids, err := pgxsql.Import(ctx, db, gen, []string{"bob", "cyd"})
	require.NoError(t, err)

	// The generator's clock may be a little behind or ahead of time.Now.
	got, err := pgxsql.Between(ctx, db, gen.Layout(), begin.Add(-time.Hour), begin.Add(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, []pgxsql.Order{first, second, {ID: ids[0], Customer: "bob"}, {ID: ids[1], Customer: "cyd"}}, got[len(got)-4:])
	got, err = pgxsql.Between(ctx, db, gen.Layout(), begin.Add(-2*time.Hour), begin.Add(-time.Hour))
	require.NoError(t, err)
	assert.Empty(t, got)

	second.Replaces.V = -5
	err = pgxsql.Insert(ctx, db, gen, &second)
	assert.ErrorIs(t, err, snowflake.ErrRange, "no negative ID gets in")
	var plain snowflake.ID
	err = db.QueryRow("SELECT replaces FROM orders WHERE id = $1", first.ID).Scan(&plain)
	assert.ErrorIs(t, err, snowflake.ErrType, "NULL is no ID")
}
