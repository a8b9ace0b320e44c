package engines

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
)

// SQL is a database engine, as statements with a semicolon between them. The superuser runs them, except for
// Make, in a database that has a user of the same name. USER_ stands for that name.
type SQL struct {
	*servers.Server

	// Root returns a pool of the superuser's in a database, for the length of a test.
	Root func(t testing.TB, database string) *sql.DB

	Make     string // makes a database, and a user who may do all that a fleet needs; runs in the database Home
	Home     string
	NoCreate string // takes the right to make tables away
	Grant    string // gives the rights to a table that another has made

	Foreign string    // makes the schema or database ops, in which the user may make tables
	Table   [2]string // one of these, in a URL and in a statement

	Denied   map[string]string    // URLs that are denied, and what the error says
	Refusals map[string][4]string // how to refuse what was allowed, how to allow it again, what the error says and advises
	New      map[string]string    // how to refuse the write of a new cell alone, by what the error says
	Unfit    [][2]string          // how to make the table OURS unfit, and what the error says; "" says nothing
}

// At is the URL of a user and a database.
func (q SQL) At(user, database string, options ...string) string {
	u, _ := url.Parse(q.Server.At(q.Addr, options...))
	u.User, u.Path = url.UserPassword(user, q.Password), "/"+database
	return u.String()
}

// Exec runs statements.
func Exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
}

// fill runs the statements of a field for a name.
func fill(t testing.TB, db *sql.DB, field, name string) {
	t.Helper()
	Exec(t, db, strings.Split(strings.ReplaceAll(field, "USER_", name), ";")...)
}

// Value returns the only value of a query as text.
func Value(t testing.TB, db *sql.DB, query string) (value string) {
	t.Helper()
	require.NoError(t, db.QueryRow(query).Scan(&value), query)
	return value
}

// Database makes a database, and returns a pool of the superuser's in it.
func (q SQL) Database(t testing.TB, name string) *sql.DB {
	t.Helper()
	fill(t, q.Root(t, q.Home), q.Make, name)
	return q.Root(t, name)
}

// Test runs one subtest for each field.
func (q SQL) Test(t *testing.T) {
	t.Run("made on demand", func(t *testing.T) {
		// Nothing but a write makes the table, and many may make it at once.
		root := q.Database(t, "demand")
		all := make([]stores.Store, 8)
		for i := range all {
			all[i] = Open(t, q.At("demand", "demand", "table=on_demand"))
			assert.Empty(t, Cells(t, all[i]))
			cell, err := all[i].Read(Within(t), "node/0000005")
			require.NoError(t, err)
			assert.Equal(t, stores.Cell{Key: "node/0000005"}, cell)
			_, err = all[i].Swap(Within(t), "node/0000005", 7, nil)
			require.ErrorIs(t, err, stores.ErrConflict)
		}
		assert.Equal(t, "0", Value(t, root, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'on_demand'"))
		var writing sync.WaitGroup
		for i, store := range all {
			writing.Go(func() {
				_, err := store.Swap(Within(t), fmt.Sprintf("node/%07d", i), 0, []byte("v"))
				assert.NoError(t, err)
			})
		}
		writing.Wait()
		assert.Len(t, Cells(t, all[0]), len(all))
	})
	t.Run("by a DBA", func(t *testing.T) {
		root := q.Database(t, "dba")
		fill(t, root, q.NoCreate, "dba")
		store := Open(t, q.At("dba", "dba"))
		_, err := store.Swap(Within(t), "node/0000001", 0, []byte("v"))
		require.ErrorContains(t, err, "denied")
		_, schema, _ := strings.Cut(err.Error(), "run: ")
		Exec(t, root, schema, schema)
		if q.Grant != "" {
			_, err = store.Swap(Within(t), "node/0000001", 0, []byte("v"))
			require.ErrorContains(t, err, "denied")
			assert.NotErrorIs(t, err, stores.ErrConflict)
			fill(t, root, q.Grant, "dba")
		}
		Works(t, store)
	})
	t.Run("another name", func(t *testing.T) {
		root := q.Database(t, "other")
		fill(t, root, q.Foreign, "other")
		Works(t, Open(t, q.At("other", "other", "table="+q.Table[0])))
		assert.Equal(t, "1", Value(t, root, "SELECT count(*) FROM "+q.Table[1]+" WHERE updated_at <= CURRENT_TIMESTAMP(6)"))
	})
	t.Run("denied", func(t *testing.T) { testDenied(t, q.Server, q.Denied) })
	all := map[string]func(*testing.T) Refusal{}
	for name, row := range q.Refusals {
		all[name] = func(t *testing.T) Refusal {
			root := q.Database(t, name)
			do := func(statements string) func() {
				return func() { fill(t, root, statements, name) }
			}
			return Refusal{Store: Open(t, q.At(name, name)), Refuse: do(row[0]), Fix: do(row[1]), Want: row[2], Advice: row[3]}
		}
	}
	testRefusals(t, all)
	for name, statement := range q.New {
		t.Run("new cell, "+name, func(t *testing.T) {
			database := "new_" + strings.ToLower(name[:2])
			root := q.Database(t, database)
			store := Open(t, q.At(database, database))
			Cell(t, store, "node/0000001", "makes the table")
			fill(t, root, "DELETE FROM tickflake_cells;"+statement, database)
			_, err := store.Swap(Within(t), "node/0000001", 0, nil)
			require.ErrorContains(t, err, name)
			assert.ErrorContains(t, err, "with other columns")
			assert.Equal(t, stores.Permanent, stores.KindOf(err))
		})
	}
	// A table that breaks a promise of a Store is refused when it is opened, and the statement of the error
	// mends it. Neither another order of names nor a coarse time does harm.
	root := q.Database(t, "hand")
	for i, row := range q.Unfit {
		t.Run("by hand: "+row[1], func(t *testing.T) {
			table := fmt.Sprint("hand", i)
			at := q.At("hand", "hand", "table="+table)
			Works(t, Open(t, at))
			fill(t, root, strings.ReplaceAll("DELETE FROM OURS;"+row[0], "OURS", table), "hand")
			_, err := stores.Open(Within(t), at)
			if row[1] != "" {
				require.ErrorIs(t, err, stores.Permanent)
				require.ErrorContains(t, err, row[1])
				for problem := range strings.SplitSeq(err.Error(), "; ") {
					_, fix, _ := strings.Cut(problem, ": ALTER TABLE ")
					Exec(t, root, "ALTER TABLE "+fix)
				}
			}
			store := Open(t, at)
			for range 2 {
				Cell(t, store, "b", "v")
			}
		})
	}
}

// NotPrimary checks that a server that takes no writes, or may lag behind, is asked for nothing and is not taken
// for a conflict. missing is a store whose table is not there, or has not come yet.
func NotPrimary(t testing.TB, store, missing stores.Store, cell stores.Cell) {
	t.Helper()
	for _, s := range []stores.Store{store, missing} {
		_, err := s.Read(Within(t), cell.Key)
		assert.ErrorContains(t, err, "connect to the primary")
		assert.ErrorIs(t, err, stores.Permanent)
	}
	for _, version := range []uint64{cell.Version, 5} {
		_, err := store.Swap(Within(t), cell.Key, version, nil)
		assert.ErrorContains(t, err, "read-only")
		assert.NotErrorIs(t, err, stores.ErrConflict)
	}
}

// Forgets checks that a URL is refused, as the server forgets what it has acknowledged, unless the URL allows it.
func Forgets(t testing.TB, url, want string) {
	t.Helper()
	_, err := stores.Open(Within(t), url)
	assert.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, want)
	Open(t, url+"&forgetful=allow")
}

// testDenied checks that a URL whose user, password, rights or settings the server does not take is an
// error with a text, which shows no part of the password. All but "TLS" are refusals, and final.
func testDenied(t *testing.T, s *servers.Server, urls map[string]string) {
	secrets := []string{"wr0ng", "%3A%3F", "p@ss"} // the others are of users that tests make
	if s.Password != "" {
		secrets = append(secrets, s.Password, strings.Split(s.Password, "/")[0][2:])
	}
	for url, want := range urls {
		passing := want == "TLS" // which a later try may have
		err := Fails(t, func(err error) bool { return !passing || strings.Contains(err.Error(), want) }, func(ctx context.Context) error {
			if !passing {
				ctx = Within(t) // which is not waited out
			}
			_, err := stores.Open(ctx, url)
			assert.True(t, passing || ctx.Err() == nil, want)
			return err
		})
		require.ErrorContains(t, err, want)
		assert.Equal(t, passing, stores.KindOf(err).Retryable(), err)
		for _, secret := range secrets {
			assert.NotContains(t, fmt.Sprintf("%v %+v %q", err, err, err), secret)
		}
	}
}
