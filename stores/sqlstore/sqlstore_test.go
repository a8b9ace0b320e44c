package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// cancelled answers a statement with success when it is told to end it, as PostgreSQL does
// with a commit that waits for its standby.
type cancelled struct{ driver.Conn }

func (c cancelled) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c cancelled) Driver() driver.Driver                        { return nil }
func (cancelled) Close() error                                   { return nil }

func (c cancelled) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	<-ctx.Done()
	return driver.RowsAffected(1), nil
}

// A write that was cancelled is not acknowledged, whatever the server says.
func TestCancelledWriteIsNotAcknowledged(t *testing.T) {
	s, err := sqlstore.New(sql.OpenDB(cancelled{}), sqlstore.PostgreSQL(), "a", sqlstore.DefaultTable)
	require.NoError(t, err)
	for range 2000 { // the caller and the answer are in a race
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, err := s.Swap(ctx, "k", 5, []byte("v"))
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestNewOfBadThings(t *testing.T) {
	db := sql.OpenDB(cancelled{})
	_, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a b", sqlstore.DefaultTable)
	assert.ErrorContains(t, err, "namespace \"a b\"")
	_, err = sqlstore.New(nil, sqlstore.PostgreSQL(), "a", sqlstore.DefaultTable)
	assert.Error(t, err)
	_, err = sqlstore.New(db, sqlstore.Dialect{}, "a", sqlstore.DefaultTable)
	assert.Error(t, err)
	for _, name := range []string{"", ".", "a.", ".a", "a.b.c", "1a", "a.1", "a-b", "a b", "a;b", "ä", `"a"`, strings.Repeat("a", 64), strings.Repeat("a", 5000)} {
		_, err = sqlstore.New(db, sqlstore.PostgreSQL(), "a", name)
		assert.ErrorContains(t, err, "want up to 63 ASCII letters", "%q", name)
		assert.Less(t, len(err.Error()), 400)
	}
	for name, quoted := range map[string]string{"_1": `"_1"`, "A.b_2": `"a"."b_2"`, strings.Repeat("a", 63): `"` + strings.Repeat("a", 63) + `"`} {
		s, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a", name)
		require.NoError(t, err)
		assert.Contains(t, s.Schema(), "IF NOT EXISTS "+quoted+" (")
	}
}

// code is the error of a server, by its number or SQLSTATE.
type code string

func (c code) Error() string    { return "code " + string(c) }
func (c code) SQLState() string { return string(c) }

func number(err error) uint16 {
	c, _ := errors.AsType[code](err)
	n, _ := strconv.Atoi(string(c))
	return uint16(n)
}

// failing answers each statement with an error, and a question for a setting with the source of that, unless it is "".
type failing struct {
	cancelled
	err    error
	source string
}

func (f failing) Connect(context.Context) (driver.Conn, error) { return f, nil }

func (f failing) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, f.err
}

func (f failing) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if f.source == "" {
		return nil, f.err
	}
	return &one{f.source}, nil
}

// one is a row of one value.
type one struct{ value string }

func (*one) Columns() []string { return []string{"value"} }
func (*one) Close() error      { return nil }

func (o *one) Next(to []driver.Value) error {
	if o.value == "" {
		return io.EOF
	}
	to[0], o.value = o.value, ""
	return nil
}

// What a server says that starts, stops, is killed, fails over or refuses for load is passing, and the error says what helps.
func TestKinds(t *testing.T) {
	postgres, mysql := sqlstore.PostgreSQL(), sqlstore.MySQL(number)
	for _, tt := range []struct {
		failing
		dialect sqlstore.Dialect
		want    stores.Kind
		says    string
	}{
		{failing{err: code("57P03")}, postgres, stores.Transient, "the server starts"},
		{failing{err: code("57P01")}, postgres, stores.Transient, "ended the connection"},
		{failing{err: code("53300")}, postgres, stores.Transient, "raise max_connections"},
		{failing{err: code("55P03")}, postgres, stores.Transient, "look who holds locks"},
		{failing{err: code("40P01")}, postgres, stores.Transient, "look who writes"},
		{failing{err: code("53100")}, postgres, stores.Transient, "lacks disk space"},
		{failing{err: code("08P01")}, postgres, stores.Transient, "the proxy from the server"},
		{failing{err: code("57P04")}, postgres, stores.Permanent, "the database does not exist"},
		{failing{err: code("28P01")}, postgres, stores.Permanent, "fix the URL"},
		{failing{err: code("25006")}, postgres, stores.Permanent, "connect to the primary"},
		{failing{err: code("25006"), source: "user"}, postgres, stores.Permanent, "default_transaction_read_only"},
		{failing{err: code("XX000")}, postgres, stores.Unknown, "code XX000"},
		{failing{err: driver.ErrBadConn}, postgres, stores.Transient, "ended the connection"},
		{failing{err: code("1040")}, mysql, stores.Transient, "raise max_connections"},
		{failing{err: code("1203")}, mysql, stores.Transient, "the user's own limit"},
		{failing{err: code("1226")}, mysql, stores.Transient, "the user's own limit"},
		{failing{err: code("1053")}, mysql, stores.Transient, "ended the connection"},
		{failing{err: code("2013")}, mysql, stores.Transient, "ended the connection"},
		{failing{err: code("1205")}, mysql, stores.Transient, "look who writes"},
		{failing{err: code("1317")}, mysql, stores.Transient, "look who holds locks"},
		{failing{err: code("1047")}, mysql, stores.Transient, "cut off from its cluster"},
		{failing{err: code("1290")}, mysql, stores.Permanent, "connect to the primary"},
		{failing{err: code("1792")}, mysql, stores.Permanent, "transaction_read_only"},
		{failing{err: code("1")}, mysql, stores.Unknown, "code 1"},
	} {
		s, err := sqlstore.New(sql.OpenDB(tt.failing), tt.dialect, "a", sqlstore.DefaultTable)
		require.NoError(t, err)
		_, err = s.Swap(t.Context(), "k", 5, nil)
		assert.Equal(t, tt.want, stores.KindOf(err), "%v", err)
		assert.ErrorContains(t, err, tt.says)
	}
}

// locked waits for a lock for too long, so many times.
type locked struct {
	cancelled
	left *int
}

func (l locked) Connect(context.Context) (driver.Conn, error) { return l, nil }

func (l locked) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	if *l.left--; *l.left >= 0 {
		return nil, code("1205")
	}
	return driver.RowsAffected(1), nil
}

// A statement that has waited for a lock for too long is sent again.
func TestLockedRow(t *testing.T) {
	left := 3
	s, err := sqlstore.New(sql.OpenDB(locked{left: &left}), sqlstore.MySQL(number), "a", sqlstore.DefaultTable)
	require.NoError(t, err)
	_, err = s.Swap(t.Context(), "k", 5, nil)
	require.NoError(t, err)
	require.Equal(t, -1, left)
}

// A server that only speaks the protocol is refused by its name, before it is asked for settings that it lacks.
func TestForeignServers(t *testing.T) {
	for name, version := range map[string]string{
		"CockroachDB": "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27)", "YugabyteDB": "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu",
	} {
		s, err := sqlstore.New(sql.OpenDB(failing{source: version}), sqlstore.PostgreSQL(), "a", sqlstore.DefaultTable)
		require.NoError(t, err)
		_, err = stores.CheckDurability(t.Context(), s)
		assert.ErrorIs(t, err, stores.Permanent)
		assert.ErrorContains(t, err, name+": the server only speaks")
	}
}
