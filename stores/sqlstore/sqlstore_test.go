package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// The rest of what is no URL is tried out in package remote.
func TestParseURL(t *testing.T) {
	s, err := sqlstore.ParseURL("y://u:p%40ss@h:1/d?b=2%2F3&a=%41&namespace=Or-der_s1", "x", "y")
	require.NoError(t, err)
	assert.Equal(t, "Or-der_s1", s.Namespace)
	assert.Equal(t, "y://u:p%40ss@h:1/d?b=2%2F3&a=%41", s.URL.String())
	assert.Empty(t, s.Options)
	s, err = sqlstore.ParseURL("x://h/d?table=ops.cells", "x")
	require.NoError(t, err)
	assert.Len(t, s.Options, 1)

	for url, want := range map[string]string{
		"z://u:s3cret@h/d":                 "begins with x:// or y://",
		"x://u:s3/cret@h/d":                "percent-encode",
		"x://u:s3cret@h/d?namespace=a%20b": `holds ' '`,
		"x://u:s3cret@h/d?table=":          "the parameter table cannot be used: ",
		"x://u:s3cret@h/d?table=a;drop":    "parameters are malformed",
		"x://u:s3cret@h/d?table=a%3Bdrop":  "letters",
		"x://u:s3cret@h/d?table=a&table=b": "twice",
	} {
		_, err := sqlstore.ParseURL(url, "x", "y")
		bad, ok := errors.AsType[*sqlstore.URLError](err)
		require.True(t, ok, "%s: %v", url, err)
		assert.Contains(t, bad.Error(), want, url)
		for e := err; e != nil; e = errors.Unwrap(e) {
			assert.NotContains(t, e.Error(), "s3", url)
			assert.NotContains(t, e.Error(), "cret", url)
		}
	}
}

func TestNewOfBadThings(t *testing.T) {
	db := fake(nil)
	_, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a b")
	_, ok := errors.AsType[*lease.NamespaceError](err)
	assert.True(t, ok, "%v", err)
	_, err = sqlstore.New(nil, sqlstore.PostgreSQL(), "a")
	assert.Error(t, err)
	_, err = sqlstore.New(db, sqlstore.Dialect{}, "a")
	assert.Error(t, err)
	for _, name := range []string{"", ".", "a.", ".a", "a.b.c", "1a", "a.1", "a-b", "a b", "a;b", "ä", `"a"`, strings.Repeat("a", 64), strings.Repeat("a", 5000)} {
		_, err = sqlstore.New(db, sqlstore.PostgreSQL(), "a", sqlstore.Table(name))
		_, ok = errors.AsType[*sqlstore.TableError](err)
		assert.True(t, ok, "%q: %v", name, err)
		assert.Less(t, len(err.Error()), 400)
	}
	for _, name := range []string{"a", "_1", "A.b_2", strings.Repeat("a", 63)} {
		s, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a", sqlstore.Table(name))
		require.NoError(t, err)
		assert.Contains(t, s.Schema(), "IF NOT EXISTS "+name+" (")
	}
}

// What cannot be a cell is refused before anything is sent.
func TestSwapOfNoCell(t *testing.T) {
	s, err := sqlstore.New(fake(nil), sqlstore.PostgreSQL(), "a")
	require.NoError(t, err)
	for _, c := range []struct {
		node  int64
		value string
	}{{-1, "a"}, {1 << 22, "a"}, {1, strings.Repeat("a", lease.MaxValue+1)}, {1, "\xff"}, {1, "a\x00b"}} {
		_, err := s.Swap(t.Context(), lease.Cell{Node: c.node}, []byte(c.value))
		_, ok := errors.AsType[*sqlstore.ValueError](err)
		assert.True(t, ok, "%v", err)
	}
	_, err = s.Swap(t.Context(), lease.Cell{Node: 1, Version: 1<<64 - 1}, nil)
	assert.ErrorIs(t, err, lease.ErrConflict)
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

// fake returns a database that answers each query with one row, or an error for nil.
func fake(row []driver.Value) *sql.DB { return sql.OpenDB(fakeServer(row)) }

type fakeServer []driver.Value

func (f fakeServer) Connect(context.Context) (driver.Conn, error) { return fakeConn(f), nil }
func (f fakeServer) Driver() driver.Driver                        { return nil }

type fakeConn []driver.Value

var errFake = errors.New("nothing was to be sent")

func (fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errFake }
func (fakeConn) Close() error                        { return nil }
func (fakeConn) Begin() (driver.Tx, error)           { return nil, errFake }
func (f fakeConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if f == nil {
		return nil, errFake
	}
	return &fakeRows{row: f}, nil
}

type fakeRows struct {
	row  []driver.Value
	done bool
}

func (r *fakeRows) Columns() []string { return make([]string, len(r.row)) }
func (r *fakeRows) Close() error      { return nil }
func (r *fakeRows) Next(dest []driver.Value) error {
	if r.done {
		return io.EOF
	}
	r.done = true
	copy(dest, r.row)
	return nil
}
