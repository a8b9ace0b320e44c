package databases_test

import (
	"database/sql"
	"testing"

	_ "github.com/go-sql-driver/mysql" // sql.Open("mysql", "user:password@tcp(…)/…")
	_ "github.com/jackc/pgx/v5/stdlib" // sql.Open("pgx", "postgres://…")
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/databasesql"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/snowflake"
)

func TestDatabaseSQLOnMariaDB(t *testing.T) {
	t.Parallel()
	server, gen := servers.For(t, servers.MariaDB), exampletest.IDs(t)
	exampletest.Schema(t, exampletest.Open(t, server, ""))
	db, ctx := exampletest.Open(t, server, ""), t.Context()
	first := databasesql.Order{Customer: "ada"}
	require.NoError(t, databasesql.Insert(ctx, db, gen, &first))
	second := databasesql.Order{Customer: "ada", Replaces: sql.Null[snowflake.ID]{V: first.ID, Valid: true}}
	require.NoError(t, databasesql.Insert(ctx, db, gen, &second))
	ids, err := databasesql.Import(ctx, db, gen, []string{"bob", "cyd"})
	require.NoError(t, err)
	for _, want := range []databasesql.Order{first, second, {ID: ids[0], Customer: "bob"}, {ID: ids[1], Customer: "cyd"}} {
		var got databasesql.Order
		require.NoError(t, db.QueryRow("SELECT id, customer, replaces FROM orders WHERE id = ?", want.ID).Scan(&got.ID, &got.Customer, &got.Replaces))
		assert.Equal(t, want, got)
	}
}

func TestDatabaseSQLOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server, gen := servers.For(t, servers.PostgreSQL), exampletest.IDs(t)
	db := exampletest.Open(t, server, "")
	exampletest.Schema(t, db)
	ids, err := databasesql.ImportPostgreSQL(t.Context(), db, gen, []string{"ada", "bob"})
	require.NoError(t, err)
	var id snowflake.ID
	require.NoError(t, db.QueryRow("SELECT id FROM orders WHERE id > $1", ids[0]).Scan(&id))
	assert.Equal(t, ids[1], id)
}
