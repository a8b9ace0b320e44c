package orders_test

import (
	"database/sql"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/ent/testdata/orders"
	"github.com/tickflake/tickflake/examples/databases/ent/testdata/orders/orderdb"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/generator"
)

func TestPostgreSQL(t *testing.T) {
	db := exampletest.Open(t, "pgx", exampletest.PostgreSQL(t))
	testOrders(t, dialect.Postgres, db)
	columns(t, db, "public", "NO", "YES")
}

func TestMariaDB(t *testing.T) {
	db := exampletest.Open(t, "mysql", exampletest.MariaDB(t))
	testOrders(t, dialect.MySQL, db)
	columns(t, db, "rig", "NO", "YES")
}

// columns checks that both columns are plain bigints.
func columns(t *testing.T, db *sql.DB, schema string, nullable ...string) {
	for i, column := range []string{"id", "order_replaced_by"} {
		var kind, null string
		var byDefault sql.NullString
		require.NoError(t, db.QueryRow("SELECT data_type, is_nullable, column_default FROM information_schema.columns "+
			"WHERE table_schema = '"+schema+"' AND table_name = 'orders' AND column_name = '"+column+"'").Scan(&kind, &null, &byDefault))
		assert.Equal(t, "bigint", kind, column)
		assert.Equal(t, nullable[i], null, column)
		assert.NotContains(t, byDefault.String, "nextval")
	}
}

func testOrders(t *testing.T, dialect string, db *sql.DB) {
	ctx, gen := t.Context(), exampletest.IDs(t)
	client := orders.Client(dialect, db, gen)
	require.NoError(t, client.Schema.Create(ctx))

	first, err := client.Order.Create().SetCustomer("ada").Save(ctx)
	require.NoError(t, err)
	second, err := client.Order.Create().SetCustomer("ada").SetReplaces(first).Save(ctx)
	require.NoError(t, err)
	many, err := orders.Import(ctx, client, []string{"bob", "cyd", "dan"})
	require.NoError(t, err)
	seventh, err := client.Order.Create().SetID(7).SetCustomer("eve").Save(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, 7, seventh.ID, "which was set")

	want := append([]*orderdb.Order{seventh, first, second}, many...)
	got, err := client.Order.Query().Order(orderdb.Asc("id")).All(ctx)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i := range want {
		assert.Equal(t, want[i].ID, got[i].ID)
		assert.Equal(t, want[i].Customer, got[i].Customer)
		assert.True(t, i == 0 || got[i-1].ID < got[i].ID)
	}
	replaced, err := second.QueryReplaces().Only(ctx)
	require.NoError(t, err)
	assert.Equal(t, first.ID, replaced.ID)

	inside, outside := exampletest.Around(t, exampletest.Day)
	for _, id := range append(outside, inside...) {
		require.NoError(t, client.Order.Create().SetID(id).SetCustomer("fay").Exec(ctx))
	}
	got, err = orders.Between(ctx, client, gen.Layout(), exampletest.Day, exampletest.Day.Add(24*time.Hour))
	require.NoError(t, err)
	require.Len(t, got, len(inside))
	for i, id := range inside {
		assert.Equal(t, id, got[i].ID)
	}

	require.NoError(t, gen.Close())
	_, err = client.Order.Create().SetCustomer("hal").Save(ctx)
	assert.ErrorIs(t, err, generator.ErrClosed)
}
