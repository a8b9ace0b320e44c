package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

func TestNewOfBadThings(t *testing.T) {
	db := fake()
	_, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a b")
	_, ok := errors.AsType[*lease.NamespaceError](err)
	assert.True(t, ok, "%v", err)
	_, err = sqlstore.New(nil, sqlstore.PostgreSQL(), "a")
	assert.Error(t, err)
	_, err = sqlstore.New(db, sqlstore.Dialect{}, "a")
	assert.Error(t, err)
	_, err = sqlstore.New(db, sqlstore.PostgreSQL(), "a", nil)
	assert.EqualError(t, err, "sqlstore.New: option 1 of 1 is nil")
	for _, name := range []string{"", ".", "a.", ".a", "a.b.c", "1a", "a.1", "a-b", "a b", "a;b", "ä", `"a"`, strings.Repeat("a", 64), strings.Repeat("a", 5000)} {
		_, err = sqlstore.New(db, sqlstore.PostgreSQL(), "a", sqlstore.WithTable(name))
		_, ok = errors.AsType[*sqlstore.TableError](err)
		assert.True(t, ok, "%q: %v", name, err)
		assert.Less(t, len(err.Error()), 400)
	}
	for _, name := range []string{"a", "_1", "A.b_2", strings.Repeat("a", 63)} {
		s, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a", sqlstore.WithTable(name))
		require.NoError(t, err)
		assert.Contains(t, s.Schema(), "IF NOT EXISTS "+name+" (")
	}
}

// What cannot be a cell is refused before anything is sent.
func TestSwapOfNoCell(t *testing.T) {
	s, err := sqlstore.New(fake(), sqlstore.PostgreSQL(), "a")
	require.NoError(t, err)
	for _, c := range []struct {
		node  int64
		value string
	}{{-1, "a"}, {1 << 22, "a"}, {1, strings.Repeat("a", lease.MaxValue+1)}, {1, "\xff"}, {1, "a\x00b"}} {
		_, err := s.Swap(t.Context(), lease.Cell{Node: c.node}, []byte(c.value))
		assert.ErrorContains(t, err, fmt.Sprintf("cannot swap the cell of node %d in namespace a, table tickflake_cells: ", c.node))
		assert.NotErrorIs(t, err, errFake)
	}
	_, err = s.Swap(t.Context(), lease.Cell{Node: 1, Version: 1<<64 - 1}, nil)
	assert.ErrorIs(t, err, lease.ErrConflict)
}

// A row that is no cell hides no other.
func TestDamagedRows(t *testing.T) {
	s, err := sqlstore.New(fake([]driver.Value{int64(3), int64(5), "v"}, []driver.Value{int64(4), int64(-5), "v"}, []driver.Value{int64(5), int64(0), "v"},
		[]driver.Value{int64(-6), int64(1), "v"}, []driver.Value{int64(1 << 22), int64(1), "v"}, []driver.Value{int64(7), int64(1), "w"}), sqlstore.PostgreSQL(), "a")
	require.NoError(t, err)
	cells, err := s.List(t.Context())
	require.ErrorIs(t, err, lease.ErrDamaged)
	for _, node := range []int{4, 5, -6, 1 << 22} {
		assert.ErrorContains(t, err, fmt.Sprintf("the row of node %d has the version", node))
	}
	assert.Equal(t, []lease.Cell{{Node: 3, Version: 5, Value: []byte("v")}, {Node: 7, Version: 1, Value: []byte("w")}}, cells)

	for _, version := range []int64{-5, 0} {
		s, err = sqlstore.New(fake([]driver.Value{"", version, "v"}), sqlstore.PostgreSQL(), "a")
		require.NoError(t, err)
		holding, err := lease.InspectNode(t.Context(), s, 4)
		require.NoError(t, err)
		assert.Equal(t, lease.Damaged, holding.State)
		assert.ErrorIs(t, holding.Err, lease.ErrDamaged)
	}
}

// What the server says of itself, and an answer that makes no sense, are no answer.
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
		cell, err := s.Read(t.Context(), 3)
		if c.want == nil {
			require.NoError(t, err)
			assert.Equal(t, lease.Cell{Node: 3, Version: 5, Value: []byte("v")}, cell)
			continue
		}
		assert.ErrorIs(t, err, c.want)
	}
	for _, row := range [][]driver.Value{{"unsynced", int64(5), "v"}, {"", int64(-5), "v"}, {"", "x", "v"}, {"", int64(1)}} {
		s, err := sqlstore.New(fake(row), sqlstore.MySQL(nil), "a")
		require.NoError(t, err)
		_, err = s.Read(t.Context(), 3)
		assert.Error(t, err)
		_, err = s.List(t.Context())
		assert.Error(t, err)
	}
}
