// Package orders stores orders in a database with ent.
package orders

import (
	"context"
	"database/sql"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/tickflake/tickflake/examples/databases/ent/entid"
	"github.com/tickflake/tickflake/examples/databases/ent/testdata/orders/orderdb"
	"github.com/tickflake/tickflake/examples/databases/ent/testdata/orders/orderdb/order"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Client returns a client whose entities get their IDs from a generator. The dialect is
// one of package entgo.io/ent/dialect.
func Client(dialect string, db *sql.DB, gen *generator.Generator) *orderdb.Client {
	client := orderdb.NewClient(orderdb.Driver(entsql.OpenDB(dialect, db)))
	client.Use(entid.Hook(gen))
	return client
}

// Import inserts an order per customer in one statement.
func Import(ctx context.Context, client *orderdb.Client, customers []string) ([]*orderdb.Order, error) {
	return client.Order.MapCreateBulk(customers, func(create *orderdb.OrderCreate, i int) {
		create.SetCustomer(customers[i])
	}).Save(ctx)
}

// Between returns the orders that were issued in [from, to), in order of time.
func Between(ctx context.Context, client *orderdb.Client, layout snowflake.Layout, from, to time.Time) ([]*orderdb.Order, error) {
	lo, hi, err := layout.Between(from, to)
	if err != nil {
		return nil, err
	}
	return client.Order.Query().Where(order.IDGTE(lo), order.IDLTE(hi)).Order(order.ByID()).All(ctx)
}
