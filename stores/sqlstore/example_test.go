package sqlstore_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// A program claims a node number through the handle that it has for its own tables.
func ExampleNew() {
	db, err := sql.Open("pgx", "host=db.example dbname=ops") // by import _ "github.com/jackc/pgx/v5/stdlib"
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqlstore.New(db, sqlstore.PostgreSQL(), stores.DefaultNamespace, sqlstore.DefaultTable)
	if err != nil {
		log.Fatal(err)
	}
	keeper, err := lease.Claim(context.Background(), store)
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close() // before the handle
}
