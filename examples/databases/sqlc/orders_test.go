package sqlc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/internal/testdb"
	"github.com/tickflake/tickflake/examples/databases/sqlc"
	"github.com/tickflake/tickflake/examples/databases/sqlc/internal/orderdb"
	"github.com/tickflake/tickflake/snowflake"
)

func TestOrders(t *testing.T) {
	ctx, gen := t.Context(), testdb.IDs(t)
	db, err := pgxpool.New(ctx, testdb.PostgreSQL(t))
	require.NoError(t, err)
	t.Cleanup(db.Close)
	_, err = db.Exec(ctx, sqlc.Schema)
	require.NoError(t, err)

	first, err := sqlc.Create(ctx, db, gen, "ada", nil)
	require.NoError(t, err)
	second, err := sqlc.Create(ctx, db, gen, "ada", &first)
	require.NoError(t, err)
	ids, err := sqlc.Import(ctx, db, gen, []string{"bob", "cyd"})
	require.NoError(t, err)
	want := []orderdb.Order{{ID: first, Customer: "ada"}, {ID: second, Customer: "ada", Replaces: &first},
		{ID: ids[0], Customer: "bob"}, {ID: ids[1], Customer: "cyd"}}
	got, err := sqlc.Between(ctx, db, gen.Layout(), gen.Layout().Epoch, gen.Layout().End())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	order, err := orderdb.New(db).GetOrder(ctx, second)
	require.NoError(t, err)
	assert.Equal(t, want[1], order)

	inside, outside := testdb.Around(t, testdb.Day)
	around := append(outside, inside...)
	for _, id := range around {
		err := orderdb.New(db).CreateOrder(ctx, orderdb.CreateOrderParams{ID: id})
		require.NoError(t, err)
	}
	got, err = sqlc.Between(ctx, db, gen.Layout(), testdb.Day, testdb.Day.AddDate(0, 0, 1))
	require.NoError(t, err)
	require.Len(t, got, len(inside))
	for i, id := range inside {
		assert.Equal(t, id, got[i].ID)
	}

	err = orderdb.New(db).CreateOrder(ctx, orderdb.CreateOrderParams{ID: -5})
	assert.ErrorIs(t, err, snowflake.ErrRange)
}

// The queries are those in the code, so that a change of one is not forgotten in the
// other. Where sqlc is installed, it compares all that it writes.
func TestGeneratedIsCurrent(t *testing.T) {
	queries, err := os.ReadFile("queries.sql")
	require.NoError(t, err)
	var code strings.Builder
	files, err := filepath.Glob("internal/orderdb/*.go")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.Write(text)
	}
	argument := regexp.MustCompile(`sqlc\.arg\(\w+\)`)
	checked := 0
	for _, query := range strings.Split(strings.TrimSpace(string(queries)), "\n\n") {
		if strings.Contains(query, ":copyfrom") {
			continue // is no SQL in the code
		}
		n := 0
		query = argument.ReplaceAllStringFunc(query, func(string) string { n++; return "$" + strconv.Itoa(n) })
		assert.Contains(t, code.String(), strings.TrimSuffix(query, ";"), "run go generate ./sqlc")
		checked++
	}
	assert.NotZero(t, checked)

	installed, err := exec.CommandContext(t.Context(), "sqlc", "version").Output()
	if err != nil || !strings.Contains(code.String(), "sqlc "+strings.TrimSpace(string(installed))+"\n") {
		t.Log("sqlc is not installed, or another version, so the rest of what it writes is not compared; " +
			"CGO_ENABLED=0 go install github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1")
		return
	}
	out, err := exec.CommandContext(t.Context(), "sqlc", "diff").CombinedOutput()
	assert.NoError(t, err, "run go generate ./sqlc\n%s", out)
}
