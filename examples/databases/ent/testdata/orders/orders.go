// Package orders stores orders in a database with ent.
package orders

import (
	"database/sql"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/tickflake/tickflake/examples/databases/ent/entid"
	"github.com/tickflake/tickflake/examples/databases/ent/testdata/orders/orderdb"
	"github.com/tickflake/tickflake/generator"
)

// Client returns a client whose entities get their IDs from a generator. The dialect is
// one of package entgo.io/ent/dialect.
func Client(dialect string, db *sql.DB, gen *generator.Generator) *orderdb.Client {
	client := orderdb.NewClient(orderdb.Driver(entsql.OpenDB(dialect, db)))
	client.Use(entid.Hook(gen))
	return client
}
