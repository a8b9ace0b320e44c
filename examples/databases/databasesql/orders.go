// Package databasesql stores orders through database/sql: in MySQL or MariaDB with
// github.com/go-sql-driver/mysql, and in PostgreSQL with github.com/jackc/pgx/v5/stdlib.
package databasesql

import (
	"context"
	"database/sql"
	"strings"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Order is a row.
type Order struct {
	ID       snowflake.ID
	Customer string
	Replaces sql.Null[snowflake.ID]
}

// Insert inserts an order under a new ID, which it sets.
func Insert(ctx context.Context, db *sql.DB, gen *generator.Generator, order *Order) error {
	id, err := gen.NextContext(ctx)
	if err != nil {
		return err
	}
	order.ID = id
	_, err = db.ExecContext(ctx, "INSERT INTO orders (id, customer, replaces) VALUES (?, ?, ?)",
		order.ID, order.Customer, order.Replaces)
	return err
}

// Import inserts an order per customer in one statement, and returns their IDs. A statement
// has 65,535 parameters at most, so it is for up to 32,767 customers.
func Import(ctx context.Context, db *sql.DB, gen *generator.Generator, customers []string) ([]snowflake.ID, error) {
	ids := make([]snowflake.ID, len(customers))
	if _, err := gen.NextNContext(ctx, ids); err != nil {
		return nil, err
	}
	args := make([]any, 0, 2*len(ids))
	for i, id := range ids {
		args = append(args, id, customers[i])
	}
	rows := strings.Repeat(", (?, ?)", len(ids))[2:]
	_, err := db.ExecContext(ctx, "INSERT INTO orders (id, customer) VALUES "+rows, args...)
	return ids, err
}

// ImportPostgreSQL inserts any number of orders, one per customer, in one statement.
func ImportPostgreSQL(ctx context.Context, db *sql.DB, gen *generator.Generator, customers []string) ([]snowflake.ID, error) {
	ids := make([]snowflake.ID, len(customers))
	if _, err := gen.NextNContext(ctx, ids); err != nil {
		return nil, err
	}
	_, err := db.ExecContext(ctx, "INSERT INTO orders (id, customer) SELECT * FROM unnest($1::bigint[], $2::text[])",
		ids, customers)
	return ids, err
}
