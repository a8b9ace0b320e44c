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
	for _, mode := range []string{"", "&interpolateParams=true"} {
		db, ctx := exampletest.Open(t, server, mode), t.Context()
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
		second.Replaces.V = -5
		assert.ErrorIs(t, databasesql.Insert(ctx, db, gen, &second), snowflake.ErrRange, "no negative ID gets in")
	}
}

func TestDatabaseSQLOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server, gen := servers.For(t, servers.PostgreSQL), exampletest.IDs(t)
	exampletest.Schema(t, exampletest.Open(t, server, ""))
	for _, mode := range []string{"cache_statement", "describe_exec"} {
		db := exampletest.Open(t, server, "&default_query_exec_mode="+mode)
		ids, err := databasesql.ImportPostgreSQL(t.Context(), db, gen, []string{"ada", "bob"})
		require.NoError(t, err)
		_, err = db.Exec("UPDATE orders SET replaces = $1 WHERE id = $2", ids[0], sql.Null[snowflake.ID]{V: ids[1], Valid: true})
		require.NoError(t, err)
		var id snowflake.ID
		var replaces sql.Null[snowflake.ID]
		require.NoError(t, db.QueryRow("SELECT id, replaces FROM orders WHERE id > $1", ids[0]).Scan(&id, &replaces))
		assert.Equal(t, []snowflake.ID{ids[1], ids[0]}, []snowflake.ID{id, replaces.V})
		null := db.QueryRow("SELECT replaces FROM orders WHERE id = $1", ids[0])
		assert.ErrorIs(t, null.Scan(&id), snowflake.ErrType, "NULL is no ID")
	}
}
