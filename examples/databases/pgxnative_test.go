package databases_test

import (
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/pgxnative"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
)

func TestPgx(t *testing.T) {
	t.Parallel()
	server, gen, ctx := servers.For(t, servers.PostgreSQL), exampletest.IDs(t), t.Context()
	exampletest.Schema(t, exampletest.Open(t, server, ""))
	db, err := pgxnative.Open(ctx, server.URL+"&default_query_exec_mode=exec")
	require.NoError(t, err)
	defer db.Close()
	ids, err := pgxnative.Import(ctx, db, gen, []string{"ada", "bob"})
	require.NoError(t, err)
	_, err = db.Exec(ctx, "UPDATE orders SET replaces = $1 WHERE id = $2", &ids[0], ids[1])
	require.NoError(t, err)
	want := []pgxnative.Order{{ID: ids[0], Customer: "ada"}, {ID: ids[1], Customer: "bob", Replaces: &ids[0]}}
	got, err := pgxnative.Get(ctx, db, ids...)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	layout := gen.Layout()
	got, err = pgxnative.Between(ctx, db, layout, layout.Epoch, layout.End())
	require.NoError(t, err)
	assert.Equal(t, want, got)
}
