package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
