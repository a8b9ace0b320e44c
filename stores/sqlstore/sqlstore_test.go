package sqlstore_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores/sqlstore"
)

func TestNewOfBadThings(t *testing.T) {
	db := sql.OpenDB(fakeServer{})
	_, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a b")
	assert.ErrorContains(t, err, "namespace \"a b\"")
	_, err = sqlstore.New(nil, sqlstore.PostgreSQL(), "a")
	assert.Error(t, err)
	_, err = sqlstore.New(db, sqlstore.Dialect{}, "a")
	assert.Error(t, err)
	_, err = sqlstore.New(db, sqlstore.PostgreSQL(), "a", nil)
	assert.EqualError(t, err, "sqlstore.New: option 1 of 1 is nil")
	for _, name := range []string{"", ".", "a.", ".a", "a.b.c", "1a", "a.1", "a-b", "a b", "a;b", "ä", `"a"`, strings.Repeat("a", 64), strings.Repeat("a", 5000)} {
		_, err = sqlstore.New(db, sqlstore.PostgreSQL(), "a", sqlstore.WithTable(name))
		assert.ErrorContains(t, err, "want up to 63 ASCII letters", "%q", name)
		assert.Less(t, len(err.Error()), 400)
	}
	for name, quoted := range map[string]string{"_1": `"_1"`, "A.b_2": `"a"."b_2"`, strings.Repeat("a", 63): `"` + strings.Repeat("a", 63) + `"`} {
		s, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a", sqlstore.WithTable(name))
		require.NoError(t, err)
		assert.Contains(t, s.Schema(), "IF NOT EXISTS "+quoted+" (")
	}
}
