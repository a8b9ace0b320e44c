package sqlstore_test

import (
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

func TestNewOfBadThings(t *testing.T) {
	db := fake()
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

// A handle is closed only by a Store that owns it.
func TestClose(t *testing.T) {
	for _, owned := range []bool{false, true} {
		db := fake([]driver.Value{"", int64(5), "v"})
		var opts []sqlstore.Option
		if owned {
			opts = append(opts, sqlstore.WithOwnedDB())
		}
		s, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a", opts...)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		_, err = s.Read(t.Context(), "k")
		assert.Equal(t, owned, err != nil, err)
	}
}

// A key or value that no cell can have is refused before anything is sent.
func TestSwapOfNoCell(t *testing.T) {
	s, err := sqlstore.New(fake(), sqlstore.PostgreSQL(), "a")
	require.NoError(t, err)
	for _, c := range [][2]string{{"A", "a"}, {"k", strings.Repeat("a", stores.MaxValue+1)}, {"k", "\xff"}, {"k", "a\x00b"}} {
		_, err := s.Swap(t.Context(), c[0], 0, []byte(c[1]))
		assert.ErrorContains(t, err, "postgres table tickflake_cells: swap "+c[0]+" in namespace \"a\": ")
		assert.NotErrorIs(t, err, errFake)
	}
	_, err = s.Swap(t.Context(), "k", 1<<64-1, nil)
	assert.ErrorIs(t, err, stores.ErrConflict)
}

// Neither the state of a session nor an answer that makes no sense is a cell.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		row  []driver.Value
		want error
	}{
		{[]driver.Value{"", int64(5), "v"}, nil},
		{[]driver.Value{"not primary", int64(5), "v"}, sqlstore.ErrNotPrimary},
		{[]driver.Value{"no autocommit", nil, nil}, sqlstore.ErrAutocommit},
	} {
		s, err := sqlstore.New(fake(c.row), sqlstore.MySQL(nil), "a")
		require.NoError(t, err)
		cell, err := s.Read(t.Context(), "k")
		if c.want == nil {
			require.NoError(t, err)
			assert.Equal(t, stores.Cell{Key: "k", Version: 5, Value: []byte("v")}, cell)
			continue
		}
		assert.ErrorIs(t, err, c.want)
	}
	for _, row := range [][]driver.Value{{"unsynced", int64(5), "v"}, {"", int64(-5), "v"}, {"", "x", "v"}, {"", int64(1)}} {
		s, err := sqlstore.New(fake(row), sqlstore.MySQL(nil), "a")
		require.NoError(t, err)
		_, err = s.Read(t.Context(), "k")
		assert.Error(t, err)
		if row[1] != int64(5) { // which is a cell of the key "unsynced"
			_, err = s.List(t.Context(), "", "z", 9)
			assert.Error(t, err)
		}
	}
}
