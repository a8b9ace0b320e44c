package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// A refusal is an error of the kind refused, even if it begins while the Store is used. The
// same Store works again when the cause is gone.
func TestRefusals(t *testing.T) {
	s := start(t)
	const table = "ALTER TABLE NAME.tickflake_cells "
	const kill = ";KILL USER NAME"
	for name, test := range map[string]struct{ refuse, fix, want, advice string }{
		"password":   {"ALTER USER NAME IDENTIFIED BY 'other'" + kill, "ALTER USER NAME IDENTIFIED BY '" + password + "'", "Access denied", "fix the URL"},
		"locked":     {"ALTER USER NAME ACCOUNT LOCK" + kill, "ALTER USER NAME ACCOUNT UNLOCK", "account is locked", "fix the URL"},
		"rights":     {"REVOKE ALL ON NAME.* FROM NAME" + kill, "GRANT ALL ON NAME.* TO NAME", "denied", "grant the rights"},
		"readonly":   {"SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "read-only", sqlstore.ErrNotPrimary.Error()},
		"columns":    {table + "CHANGE version edition BIGINT", table + "CHANGE edition version BIGINT", "version", "with other columns"},
		"types":      {table + "MODIFY value INT", table + "MODIFY value VARCHAR(1024)", "value", "with other columns"},
		"additional": {table + "ADD COLUMN own int NOT NULL", table + "DROP COLUMN own", "own", "with other columns"},
		"narrow":     {table + "MODIFY value VARCHAR(1)", table + "MODIFY value VARCHAR(1024)", "too long", "with other columns"},
		"dropped":    {"DROP DATABASE NAME" + kill, "CREATE DATABASE NAME", "Unknown database", "the database does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			do := func(statements string) {
				s.exec(t, strings.Split(strings.ReplaceAll(statements, "NAME", name), ";")...)
			}
			do("CREATE DATABASE NAME")
			s.exec(t, fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", name, password))
			do("GRANT ALL ON NAME.* TO NAME")
			store := open(t, strings.Replace(strings.Replace(s.url(), "//ids", "//"+name, 1), "/ops", "/"+name, 1))
			works(t, store)
			do("DELETE FROM NAME.tickflake_cells")
			do(test.refuse)
			refused := func(err error, want string) {
				assert.ErrorContains(t, err, want)
				assert.ErrorContains(t, err, test.advice)
				assert.Equal(t, stores.Refused, stores.KindOf(err))
				assert.NotErrorIs(t, err, stores.ErrConflict)
			}
			_, err := store.Swap(within(t), "node/0000002", 0, []byte("value"))
			refused(err, test.want)
			if _, err := store.Read(within(t), "node/0000002"); err != nil {
				refused(err, "")
			}
			do(test.fix)
			_, err = store.Swap(within(t), "node/0000002", 0, []byte("value"))
			require.NoError(t, err)
		})
	}
	require.NoError(t, s.Kill())
	_, err := open(t, s.url()).Read(within(t), "node/0000001")
	assert.ErrorContains(t, err, "refused")
	assert.Equal(t, stores.Passing, stores.KindOf(err))
}
