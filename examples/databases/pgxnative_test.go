package databases_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/pgxnative"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/snowflake"
)

func TestPgx(t *testing.T) {
	t.Parallel()
	server, gen, ctx := servers.For(t, servers.PostgreSQL), exampletest.IDs(t), t.Context()
	exampletest.Schema(t, exampletest.Open(t, server, ""))
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			db, err := pgxnative.Open(ctx, server.URL+"&default_query_exec_mode="+mode)
			require.NoError(t, err)
			defer db.Close()
			ids, err := pgxnative.Import(ctx, db, gen, []string{"ada", "bob", "cyd"})
			require.NoError(t, err)
			batch := new(pgx.Batch)
			batch.Queue("UPDATE orders SET replaces = $1 WHERE id = $2", &ids[0], ids[1])
			batch.Queue("UPDATE orders SET replaces = $1 WHERE id = $2", (*snowflake.ID)(nil), ids[2])
			require.NoError(t, db.SendBatch(ctx, batch).Close())
			want := []pgxnative.Order{{ID: ids[0], Customer: "ada"}, {ID: ids[1], Customer: "bob", Replaces: &ids[0]}, {ID: ids[2], Customer: "cyd"}}
			got, err := pgxnative.Get(ctx, db, ids...)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			layout := gen.Layout()
			got, err = pgxnative.Between(ctx, db, layout, layout.Epoch, layout.End())
			require.NoError(t, err)
			assert.Equal(t, want, got[len(got)-3:])

			_, err = db.Exec(ctx, "INSERT INTO orders (id, customer) VALUES ($1, '')", snowflake.ID(-5))
			assert.ErrorIs(t, err, snowflake.ErrRange)
			_, err = db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer"},
				pgx.CopyFromRows([][]any{{snowflake.ID(-5), ""}}))
			assert.ErrorContains(t, err, snowflake.ErrRange.Error())
		})
	}
}
