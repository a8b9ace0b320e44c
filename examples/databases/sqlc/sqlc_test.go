package sqlc_test

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/snowflake"
)

// goType is the type that an override gives a column.
type goType struct {
	Import, Type string
	Pointer      bool
}

// TestConfig runs what sqlc.yaml names on PostgreSQL: each bigint column of the schema has
// an override by [snowflake.ID], by a pointer where the column may be NULL, and each query
// is one of that schema. That IDs and pointers to IDs go in and out by pgx, as in the code
// that sqlc generates, is tested by package pgxnative.
func TestConfig(t *testing.T) {
	text, err := os.ReadFile("sqlc.yaml")
	require.NoError(t, err)
	var config struct {
		SQL []struct {
			Schema, Queries string
			Gen             struct {
				Go struct {
					Overrides []struct {
						Column string
						GoType goType `yaml:"go_type"`
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	require.Len(t, config.SQL, 1)
	configured := make(map[string]goType)
	for _, override := range config.SQL[0].Gen.Go.Overrides {
		configured[override.Column] = override.GoType
	}

	conn, err := pgx.Connect(t.Context(), exampletest.PostgreSQL(t))
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close(t.Context())) }()
	schema, err := os.ReadFile(config.SQL[0].Schema)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), string(schema))
	require.NoError(t, err)

	rows, err := conn.Query(t.Context(), `SELECT table_name || '.' || column_name, is_nullable = 'YES'
		FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'bigint'`)
	require.NoError(t, err)
	id := reflect.TypeFor[snowflake.ID]()
	wanted := make(map[string]goType)
	var column string
	var nullable bool
	_, err = pgx.ForEachRow(rows, []any{&column, &nullable}, func() error {
		wanted[column] = goType{Import: id.PkgPath(), Type: id.Name(), Pointer: nullable}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, wanted, configured)

	queries, err := os.ReadFile(config.SQL[0].Queries)
	require.NoError(t, err)
	argument := regexp.MustCompile(`sqlc\.arg\(\w+\)`)
	for query := range strings.SplitSeq(strings.TrimSpace(string(queries)), "\n\n") {
		require.Regexp(t, `^-- name: \w+ :\w+\n`, query)
		n := 0
		query = argument.ReplaceAllStringFunc(query, func(string) string { n++; return "$" + strconv.Itoa(n) })
		_, err := conn.Prepare(t.Context(), "", query)
		assert.NoError(t, err, query)
	}
}
