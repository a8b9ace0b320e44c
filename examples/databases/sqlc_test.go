package databases_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
)

// Each bigint column of the schema has an override, by a pointer where the column may be NULL, and each
// query is one of that schema on PostgreSQL. Package pgxnative tests that IDs go in and out by pgx, as in
// the code that sqlc generates.
func TestSqlc(t *testing.T) {
	t.Parallel()
	url := exampletest.PostgreSQL(t)
	exampletest.Schema(t, exampletest.Open(t, "pgx", url))
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close(t.Context())) }()

	config, err := os.ReadFile("sqlc/sqlc.yaml")
	require.NoError(t, err)
	override := "          - column: orders.%s\n            go_type: {import: github.com/tickflake/tickflake/snowflake, type: ID%s}\n"
	var want string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT string_agg(format($1, column_name,
		CASE is_nullable WHEN 'YES' THEN ', pointer: true' END), '' ORDER BY ordinal_position)
		FROM information_schema.columns WHERE table_name = 'orders' AND data_type = 'bigint'`, override).Scan(&want))
	_, configured, _ := strings.Cut(string(config), "        overrides:\n")
	assert.Equal(t, want, configured)

	queries, err := os.ReadFile("sqlc/queries.sql")
	require.NoError(t, err)
	argument := regexp.MustCompile(`sqlc\.arg\(\w+\)`)
	for query := range strings.SplitSeq(strings.TrimSpace(string(queries)), "\n\n") {
		n := 0
		query = argument.ReplaceAllStringFunc(query, func(string) string { n++; return "$" + strconv.Itoa(n) })
		_, err := conn.Prepare(t.Context(), "", query)
		assert.NoError(t, err, query)
	}
}
