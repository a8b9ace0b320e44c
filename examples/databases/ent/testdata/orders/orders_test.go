package orders_test

import (
	"database/sql"
	"testing"

	"entgo.io/ent/dialect"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/ent/testdata/orders"
	"github.com/tickflake/tickflake/examples/databases/ent/testdata/orders/orderdb"
	"github.com/tickflake/tickflake/examples/databases/ent/testdata/orders/orderdb/order"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/generator"
)

func TestPostgreSQL(t *testing.T) {
	testOrders(t, dialect.Postgres, exampletest.Open(t, "pgx", exampletest.PostgreSQL(t)))
}

func TestMariaDB(t *testing.T) {
	testOrders(t, dialect.MySQL, exampletest.Open(t, "mysql", exampletest.MariaDB(t)))
}

func testOrders(t *testing.T, dialect string, db *sql.DB) {
	ctx, gen := t.Context(), exampletest.IDs(t)
	client := orders.Client(dialect, db, gen)
	require.NoError(t, client.Schema.Create(ctx))
	var bigints int // without a default such as nextval(…)
	require.NoError(t, db.QueryRow("SELECT count(*) FROM information_schema.columns WHERE table_name = 'orders' AND data_type = 'bigint' "+
		"AND coalesce(column_default, 'NULL') = 'NULL' AND column_name IN ('id', 'order_replaced_by')").Scan(&bigints))
	assert.Equal(t, 2, bigints)

	first, err := client.Order.Create().SetCustomer("ada").Save(ctx)
	require.NoError(t, err)
	second, err := client.Order.Create().SetCustomer("ada").SetReplaces(first).Save(ctx)
	require.NoError(t, err)
	names := []string{"bob", "cyd", "dan"}
	many, err := client.Order.MapCreateBulk(names, func(create *orderdb.OrderCreate, i int) { create.SetCustomer(names[i]) }).Save(ctx)
	require.NoError(t, err)
	seventh, err := client.Order.Create().SetID(7).SetCustomer("eve").Save(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, 7, seventh.ID, "which was set")

	want := append([]*orderdb.Order{seventh, first, second}, many...)
	got, err := client.Order.Query().Where(order.IDGTE(7)).Order(order.ByID()).All(ctx)
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

	require.NoError(t, gen.Close())
	_, err = client.Order.Create().SetCustomer("hal").Save(ctx)
	assert.ErrorIs(t, err, generator.ErrClosed)
}
