package databases_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os/exec"
	"testing"

	_ "github.com/go-sql-driver/mysql" // sql.Open("mysql", "user:password@tcp(…)/…")
	_ "github.com/jackc/pgx/v5/stdlib" // sql.Open("pgx", "postgres://…")
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/tickflake/tickflake/examples/databases/databasesql"
	"github.com/tickflake/tickflake/examples/databases/gormid"
	"github.com/tickflake/tickflake/examples/databases/mongodb"
	"github.com/tickflake/tickflake/examples/databases/pgxnative"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/snowflake"
)

func TestDatabaseSQL(t *testing.T) {
	t.Parallel()
	gen, ctx := exampletest.IDs(t), t.Context()
	db := exampletest.Open(t, servers.For(t, servers.MariaDB), "")
	exampletest.Schema(t, db)
	first := databasesql.Order{Customer: "ada"}
	require.NoError(t, databasesql.Insert(ctx, db, gen, &first))
	second := databasesql.Order{Customer: "bob", Replaces: sql.Null[snowflake.ID]{V: first.ID, Valid: true}}
	require.NoError(t, databasesql.Insert(ctx, db, gen, &second))
	ids, err := databasesql.Import(ctx, db, gen, []string{"cyd", "dan"})
	require.NoError(t, err)
	for _, want := range []databasesql.Order{first, second, {ID: ids[0], Customer: "cyd"}, {ID: ids[1], Customer: "dan"}} {
		var got databasesql.Order
		require.NoError(t, db.QueryRow("SELECT id, customer, replaces FROM orders WHERE id = ?", want.ID).Scan(&got.ID, &got.Customer, &got.Replaces))
		assert.Equal(t, want, got)
	}

	db = exampletest.Open(t, servers.For(t, servers.PostgreSQL), "")
	exampletest.Schema(t, db)
	ids, err = databasesql.ImportPostgreSQL(ctx, db, gen, []string{"ada", "bob"})
	require.NoError(t, err)
	var last snowflake.ID
	require.NoError(t, db.QueryRow("SELECT id FROM orders WHERE customer = 'bob'").Scan(&last))
	assert.Equal(t, ids[1], last)
}

func TestPgx(t *testing.T) {
	t.Parallel()
	server, gen, ctx := servers.For(t, servers.PostgreSQL), exampletest.IDs(t), t.Context()
	exampletest.Schema(t, exampletest.Open(t, server, ""))
	db, err := pgxnative.Open(ctx, server.URL+"&default_query_exec_mode=exec")
	require.NoError(t, err)
	defer db.Close()
	ids, err := pgxnative.Import(ctx, db, gen, []string{"ada", "bob"})
	require.NoError(t, err)
	want := []pgxnative.Order{{ID: ids[0], Customer: "ada"}, {ID: ids[1], Customer: "bob"}}
	got, err := pgxnative.Get(ctx, db, ids...)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	got, err = pgxnative.Between(ctx, db, gen.Layout(), gen.Layout().Epoch, gen.Layout().End())
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestGorm(t *testing.T) {
	t.Parallel()
	gormid.IDs = exampletest.IDs(t)
	db, err := gorm.Open(postgres.Open(servers.For(t, servers.PostgreSQL).URL), &gorm.Config{Logger: logger.Discard})
	require.NoError(t, err)
	pool, err := db.DB()
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, db.AutoMigrate(&gormid.Order{}, &gormid.Line{}))
	want := gormid.Order{Customer: "ada", Lines: []gormid.Line{{Article: "pen"}, {Article: "ink"}}}
	require.NoError(t, db.Create(&want).Error)
	assert.IsIncreasing(t, []snowflake.ID{0, want.ID, want.Lines[0].ID, want.Lines[1].ID})
	require.Error(t, db.Create(&want).Error, "a transaction that is tried again keeps its ID")
	var got gormid.Order
	require.NoError(t, db.Preload("Lines").First(&got, want.ID).Error)
	assert.Equal(t, want, got)
}

// Debian has no MongoDB, so this tests the bytes that the driver would send. MongoDB does not compare an integer with a
// string, so the IDs of a document and of a filter are 64-bit integers.
func TestMongoDB(t *testing.T) {
	data, err := bson.Marshal(mongodb.Order{ID: 7, Customer: "ada"})
	require.NoError(t, err)
	assert.EqualValues(t, 7, bson.Raw(data).Lookup("_id").Int64())
	filter, err := mongodb.Between(snowflake.Default(), exampletest.Day, exampletest.Day.AddDate(0, 0, 1))
	require.NoError(t, err)
	data, err = bson.Marshal(filter)
	require.NoError(t, err)
	low, high, err := snowflake.Default().Between(exampletest.Day, exampletest.Day.AddDate(0, 0, 1))
	require.NoError(t, err)
	assert.Equal(t, []int64{int64(low), int64(high)}, []int64{bson.Raw(data).Lookup("_id", "$gte").Int64(), bson.Raw(data).Lookup("_id", "$lte").Int64()})
}

// The script takes IDs apart as the library does, and sorts their texts by time.
func TestJavaScript(t *testing.T) {
	last, err := snowflake.Default().Max(exampletest.Day)
	require.NoError(t, err)
	texts, err := json.Marshal(map[string]any{"strings": []snowflake.ID{last, 9}}) // as texts, the other way round
	require.NoError(t, err)
	node := exec.CommandContext(t.Context(), program.FindFor(t, "node", "nodejs"), "javascript/testdata/ids.mjs")
	node.Stdin = bytes.NewReader(texts)
	out, err := node.Output()
	require.NoError(t, err)
	assert.JSONEq(t, `{"decoded": [{"id": "`+last.String()+`", "time": "2026-03-14T00:00:00.000Z", "node": 1023, "sequence": 4095},
		{"id": "9", "time": "2025-01-01T00:00:00.000Z", "node": 0, "sequence": 9}], "sorted": ["9", "`+last.String()+`"]}`, string(out))
}
