package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/mysql"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func TestOrders(t *testing.T) {
	dsn, gen := exampletest.MariaDB(t), exampletest.IDs(t)
	db := exampletest.Open(t, "mysql", dsn)
	_, err := db.Exec(mysql.Schema)
	require.NoError(t, err)
	t.Run("prepared", func(t *testing.T) { orders(t, db, gen) })
	t.Run("interpolated", func(t *testing.T) { orders(t, exampletest.Open(t, "mysql", dsn+"&interpolateParams=true"), gen) })
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

	second.Replaces.V = -5
	err = mysql.Insert(ctx, db, gen, &second)
	assert.ErrorIs(t, err, snowflake.ErrRange, "no negative ID gets in")
}
