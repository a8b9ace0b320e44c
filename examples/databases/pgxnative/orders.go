// Package pgxnative stores orders in PostgreSQL with pgx, without database/sql.
package pgxnative

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Order is a row.
type Order struct {
	ID       snowflake.ID
	Customer string
	Replaces *snowflake.ID // nil for NULL
}

// Open connects to the database.
func Open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		// Behind a pooler (default_query_exec_mode=exec) pgx does not ask the server for the
		// types of parameters, and cannot know that of a slice.
		conn.TypeMap().RegisterDefaultPgType([]snowflake.ID(nil), "_int8")
		return nil
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// Import inserts any number of orders, one per customer, and returns their IDs.
func Import(ctx context.Context, db *pgxpool.Pool, gen *generator.Generator, customers []string) ([]snowflake.ID, error) {
	ids := make([]snowflake.ID, len(customers))
	if _, err := gen.NextNContext(ctx, ids); err != nil {
		return nil, err
	}
	_, err := db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) { return []any{ids[i], customers[i]}, nil }))
	return ids, err
}

// Between returns the orders that were issued in [from, to), in order of time.
func Between(ctx context.Context, db *pgxpool.Pool, layout snowflake.Layout, from, to time.Time) ([]Order, error) {
	lo, hi, err := layout.Between(from, to)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, "SELECT id, customer, replaces FROM orders WHERE id BETWEEN $1 AND $2 ORDER BY id", lo, hi)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Order])
}

// Get returns the orders of these IDs that exist.
func Get(ctx context.Context, db *pgxpool.Pool, ids ...snowflake.ID) ([]Order, error) {
	rows, err := db.Query(ctx, "SELECT id, customer, replaces FROM orders WHERE id = ANY($1) ORDER BY id", ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Order])
}
