package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// A refusal is an error of the kind refused, even if it begins while the Store is used. The
// same Store works again when the cause is gone.
func TestRefusals(t *testing.T) {
	s := start(t)
	const disconnect = "; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'USER_'"
	const table = "ALTER TABLE tickflake_cells "
	for name, test := range map[string]struct{ refuse, fix, want, advice string }{
		"password": {"ALTER ROLE USER_ PASSWORD 'other'" + disconnect, "ALTER ROLE USER_ PASSWORD '" + password + "'", "password authentication failed", "fix the URL"},
		"login":    {"ALTER ROLE USER_ NOLOGIN" + disconnect, "ALTER ROLE USER_ LOGIN", "not permitted to log in", "fix the URL"},
		"rights":   {"REVOKE ALL ON tickflake_cells FROM USER_", "GRANT ALL ON tickflake_cells TO USER_", "permission denied for table", "grant the rights"},
		"readonly": {"ALTER ROLE USER_ SET default_transaction_read_only = on" + disconnect, "ALTER ROLE USER_ RESET ALL" + disconnect,
			"read-only", sqlstore.ErrNotPrimary.Error()},
		"columns":    {table + "RENAME version TO edition", table + "RENAME edition TO version", "version", "with other columns"},
		"types":      {table + "ALTER value TYPE int USING 0", table + "ALTER value TYPE text", "value", "with other columns"},
		"additional": {table + "ADD COLUMN own int NOT NULL", table + "DROP COLUMN own", "own", "with other columns"},
		"rule":       {"CREATE RULE r AS ON UPDATE TO tickflake_cells DO NOTHING", "DROP RULE r ON tickflake_cells", "ON CONFLICT", "with other columns"},
		"narrow":     {table + "ALTER value TYPE varchar(1)", table + "ALTER value TYPE text", "too long", "with other columns"},
	} {
		t.Run(name, func(t *testing.T) {
			admin := s.database(t, name)
			store := open(t, s.url(name, name))
			do := func(statements string) {
				_, err := admin.Exec(strings.ReplaceAll(statements, "USER_", name))
				require.NoError(t, err)
			}
			do(store.Schema() + "GRANT ALL ON tickflake_cells TO USER_")
			_, err := store.Read(within(t), "node/0000001")
			require.NoError(t, err)
			do(test.refuse)
			refused := func(err error, want string) {
				assert.ErrorContains(t, err, want)
				assert.ErrorContains(t, err, test.advice)
				assert.Equal(t, stores.Refused, stores.KindOf(err))
				assert.NotErrorIs(t, err, stores.ErrConflict)
			}
			_, err = store.Swap(within(t), "node/0000001", 0, []byte("value"))
			// The first use of a connection that the server has closed may fail so.
			for again := 0; again < 9 && err != nil && strings.Contains(err.Error(), "57P01"); again++ {
				_, err = store.Swap(within(t), "node/0000001", 0, []byte("value"))
			}
			refused(err, test.want)
			if _, err := store.Read(within(t), "node/0000001"); err != nil {
				refused(err, "")
			}
			do(test.fix)
			require.Eventually(t, func() bool {
				_, err = store.Swap(within(t), "node/0000001", 0, []byte("value"))
				return err == nil
			}, 20*time.Second, 10*time.Millisecond)
		})
	}
	_, err := open(t, s.url("postgres", "missing")).Read(within(t), "node/0000001")
	assert.ErrorContains(t, err, "the database does not exist")
	assert.Equal(t, stores.Refused, stores.KindOf(err))
	require.NoError(t, s.Kill())
	_, err = open(t, s.url("postgres", "postgres")).Read(within(t), "node/0000001")
	assert.ErrorContains(t, err, "refused")
	assert.Equal(t, stores.Passing, stores.KindOf(err))
}
