// Package sqlc keeps orders in PostgreSQL, with code that sqlc has written.
package sqlc

import (
	"context"
	_ "embed" // of the schema
	"time"

	"github.com/tickflake/tickflake/examples/databases/sqlc/internal/orderdb"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// sqlc is built without cgo, so that it needs no C compiler; the first time takes minutes.
//
//go:generate env CGO_ENABLED=0 go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate

// Schema makes the table.
//
//go:embed schema.sql
var Schema string

// Create keeps an order, and returns its ID. The one that it replaces may be nil.
func Create(ctx context.Context, db orderdb.DBTX, gen *generator.Generator, customer string, replaces *snowflake.ID) (snowflake.ID, error) {
	id, err := gen.NextContext(ctx)
	if err != nil {
		return 0, err
	}
	return id, orderdb.New(db).CreateOrder(ctx, orderdb.CreateOrderParams{ID: id, Customer: customer, Replaces: replaces})
}

// Import keeps an order per customer, however many, and returns their IDs.
func Import(ctx context.Context, db orderdb.DBTX, gen *generator.Generator, customers []string) ([]snowflake.ID, error) {
	ids := make([]snowflake.ID, len(customers))
	if _, err := gen.NextNContext(ctx, ids); err != nil {
		return nil, err
	}
	rows := make([]orderdb.ImportOrdersParams, len(ids))
	for i, id := range ids {
		rows[i] = orderdb.ImportOrdersParams{ID: id, Customer: customers[i]}
	}
	_, err := orderdb.New(db).ImportOrders(ctx, rows)
	return ids, err
}

// Between returns the orders that were made from one instant up to, not including,
// another, in order of time.
func Between(ctx context.Context, db orderdb.DBTX, layout snowflake.Layout, from, to time.Time) ([]orderdb.Order, error) {
	lo, hi, err := layout.Between(from, to)
	if err != nil {
		return nil, err
	}
	return orderdb.New(db).OrdersBetween(ctx, orderdb.OrdersBetweenParams{Lo: lo, Hi: hi})
}
