package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/sequence/sequencetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/postgres"
	"github.com/tickflake/tickflake/stores/sqlstore"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestConformance(t *testing.T) {
	s := start(t)
	open := func(t testing.TB, namespace string) stores.Store { return s.open(t, s.addr, namespace) }
	storetest.TestStore(t, open)
	sequencetest.TestSequences(t, open)
}

// The suite again, with a pool of the caller's that is set up in another way.
func TestConformanceOfNew(t *testing.T) {
	s := start(t, "default_transaction_isolation=serializable", "synchronous_commit=off")
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
		pool, err := pgxpool.New(within(t), s.url("postgres", "postgres"))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		db := stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { _ = db.Close() })
		store, err := postgres.New(db, namespace)
		require.NoError(t, err)
		require.NoError(t, store.Close(), "which leaves the caller's pool open")
		return store
	})
}

func TestFaults(t *testing.T) {
	s := start(t)
	storetest.TestServer(t, storetest.Server{Addr: s.addr, Open: s.open, Damage: s.damage, Kill: s.Kill, Start: s.Start})
}

func TestSchema(t *testing.T) {
	s := start(t)
	t.Run("made on demand, by many at once", func(t *testing.T) {
		admin := s.database(t, "demand")
		_, err := admin.Exec("GRANT CREATE ON SCHEMA public TO demand")
		require.NoError(t, err)
		all := make([]*sqlstore.Store, 8)
		for i := range all {
			all[i] = open(t, s.url("demand", "demand"))
			cells, err := all[i].List(within(t), "", "\x7f", 1<<30)
			require.NoError(t, err)
			assert.Empty(t, cells)
			cell, err := all[i].Read(within(t), "node/0000005")
			require.NoError(t, err)
			assert.Equal(t, stores.Cell{Key: "node/0000005"}, cell)
			_, err = swap(within(t), all[i], stores.Cell{Key: "node/0000005", Version: 7}, nil)
			require.ErrorIs(t, err, stores.ErrConflict)
		}
		var exists bool
		require.NoError(t, admin.QueryRow("SELECT to_regclass('tickflake_cells') IS NOT NULL").Scan(&exists))
		assert.False(t, exists, "nothing but a write makes the table")
		var wg sync.WaitGroup
		errs := make([]error, len(all))
		for i, store := range all {
			wg.Go(func() {
				_, errs[i] = swap(within(t), store, stores.Cell{Key: fmt.Sprintf("node/%07d", i)}, []byte("v"))
			})
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		cells, err := all[0].List(within(t), "", "\x7f", 1<<30)
		require.NoError(t, err)
		assert.Len(t, cells, len(all))
	})
	t.Run("by a DBA", func(t *testing.T) {
		admin := s.database(t, "dba")
		store := open(t, s.url("dba", "dba"))
		_, err := swap(within(t), store, stores.Cell{Key: "node/0000001"}, []byte("v"))
		assert.Contains(t, err.Error(), "permission denied")
		assert.ErrorContains(t, err, strings.Join(strings.Fields(store.Schema()), " "))

		_, err = admin.Exec(store.Schema()) // as printed
		require.NoError(t, err)
		_, err = admin.Exec(store.Schema())
		require.NoError(t, err, "again")
		_, err = swap(within(t), store, stores.Cell{Key: "node/0000001"}, []byte("v"))
		assert.ErrorContains(t, err, "permission denied")
		assert.NotErrorIs(t, err, stores.ErrConflict)
		_, err = admin.Exec("GRANT SELECT, INSERT, UPDATE ON tickflake_cells TO dba")
		require.NoError(t, err)
		works(t, store)
	})
	t.Run("another name", func(t *testing.T) {
		admin := s.database(t, "other")
		_, err := admin.Exec("CREATE SCHEMA ops AUTHORIZATION other")
		require.NoError(t, err)
		works(t, open(t, s.url("other", "other", "table=ops.User")))
		var n int
		require.NoError(t, admin.QueryRow(`SELECT count(*) FROM ops."user" WHERE updated_at <= now()`).Scan(&n))
		assert.Equal(t, 1, n)
	})
	// Without the key, two processes could make one cell, each its own row. Neither another
	// order of names nor a coarse time does harm.
	t.Run("by hand", func(t *testing.T) {
		url := s.url("postgres", "postgres")
		s.exec(t, open(t, url).Schema(), `ALTER TABLE tickflake_cells DROP CONSTRAINT tickflake_cells_pkey, ALTER cell TYPE text COLLATE "en-x-icu",
  ALTER updated_at TYPE timestamptz(0)`, `CREATE UNIQUE INDEX ON tickflake_cells (namespace, cell) WHERE version > 9`)
		_, err := stores.Open(within(t), url)
		require.ErrorIs(t, err, stores.ErrRefused)
		_, fix, _ := strings.Cut(err.Error(), "no key of namespace and cell is unique: ")
		s.exec(t, fix)
		store, err := stores.Open(within(t), url)
		require.NoError(t, err)
		works(t, store)
		require.NoError(t, store.Close())
	})
}

// works writes a cell twice, and looks at it.
func works(t *testing.T, store stores.Store) {
	t.Helper()
	cell := stores.Cell{Key: "node/0000001"}
	for _, value := range []string{"one", "two"} {
		var err error
		cell, err = swap(within(t), store, cell, []byte(value))
		require.NoError(t, err)
		is, err := store.Read(within(t), "node/0000001")
		require.NoError(t, err)
		assert.Equal(t, cell, is)
	}
	cells, err := store.List(within(t), "", "\x7f", 1<<30)
	require.NoError(t, err)
	assert.Equal(t, []stores.Cell{cell}, cells)
}

// A role with synchronous_commit off gets durable writes from us, and no others.
func TestDurableInSpiteOfTheRole(t *testing.T) {
	s := start(t, "wal_writer_delay=10s", "autovacuum=off")
	admin := s.admin(t)
	s.exec(t, "ALTER ROLE postgres SET synchronous_commit = off")
	store := open(t, s.url("postgres", "postgres"))
	cell, err := swap(within(t), store, stores.Cell{Key: "node/0000001"}, []byte("made"))
	require.NoError(t, err)
	s.exec(t, `CREATE TABLE seen (level text)`,
		`CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO seen VALUES (TG_OP || ' ' || current_setting('synchronous_commit')); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE ON tickflake_cells
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`) // which runs in the commit

	// synced tells whether all that was written so far has been synced.
	synced := func() (is bool) {
		require.NoError(t, admin.QueryRow("SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()").Scan(&is))
		return is
	}
	const rounds = 30
	ours, others := 0, 0
	for i := range rounds {
		cell, err = swap(within(t), store, cell, []byte("ours"))
		require.NoError(t, err)
		if synced() {
			ours++
		}
		_, err = swap(within(t), store, stores.Cell{Key: fmt.Sprintf("node/%07d", 100+i)}, nil)
		require.NoError(t, err)
		s.exec(t, "UPDATE tickflake_cells SET value = 'another''s' WHERE cell = 'node/0000100'")
		if synced() {
			others++
		}
	}
	t.Logf("synced on return: %d of %d Swaps, %d of %d other writes of the same role", ours, rounds, others, rounds)
	assert.GreaterOrEqual(t, ours, rounds-2, "but for what the server writes for itself")
	assert.Less(t, others, rounds/2)

	rows, err := admin.Query("SELECT level, count(*) FROM seen GROUP BY level ORDER BY level")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	var seen []string
	for rows.Next() {
		var level string
		var n int
		require.NoError(t, rows.Scan(&level, &n))
		seen = append(seen, fmt.Sprint(n, " ", level))
	}
	require.NoError(t, rows.Err())
	t.Log("synchronous_commit in the commits: ", seen)
	for _, want := range []string{"30 INSERT on", "30 UPDATE off", "30 UPDATE on"} {
		assert.Contains(t, seen, want)
	}
}

// A stronger setting is left as it is.
func TestStrongerSettingStays(t *testing.T) {
	s := start(t)
	store := open(t, s.url("postgres", "postgres", "synchronous_commit=remote_apply"))
	cell, err := swap(within(t), store, stores.Cell{Key: "node/0000001"}, nil)
	require.NoError(t, err)
	s.exec(t, `CREATE TABLE seen (level text)`,
		`CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`,
		`CREATE TRIGGER see AFTER UPDATE ON tickflake_cells EXECUTE FUNCTION see()`)
	_, err = swap(within(t), store, cell, nil)
	require.NoError(t, err)
	var level string
	require.NoError(t, s.admin(t).QueryRow("SELECT level FROM seen").Scan(&level))
	assert.Equal(t, "remote_apply", level)
}

func TestStandbyIsNotAsked(t *testing.T) {
	s := start(t)
	store := open(t, s.url("postgres", "postgres"))
	cell, err := swap(within(t), store, stores.Cell{Key: "node/0000001"}, []byte("v"))
	require.NoError(t, err)
	promises, err := store.Durability(within(t))
	require.NoError(t, err)
	assert.Zero(t, promises)
	s.exec(t, "ALTER TABLE tickflake_cells SET UNLOGGED", "CHECKPOINT")
	_, err = stores.Open(within(t), s.url("postgres", "postgres"))
	assert.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, "ALTER TABLE \"tickflake_cells\" SET LOGGED")
	forgetful, err := stores.Open(within(t), s.url("postgres", "postgres", "forgetful=allow"))
	require.NoError(t, err)
	require.NoError(t, forgetful.Close())
	s.exec(t, "ALTER TABLE tickflake_cells SET LOGGED", "CHECKPOINT")

	require.NoError(t, s.Kill())
	signal := filepath.Join(s.data, "standby.signal")
	require.NoError(t, os.WriteFile(signal, nil, 0o644))
	require.NoError(t, s.Start())
	standby := open(t, s.url("postgres", "postgres"))
	_, err = standby.Read(within(t), "node/0000001")
	assert.ErrorIs(t, err, sqlstore.ErrNotPrimary)
	_, err = open(t, s.url("postgres", "postgres", "table=missing")).Read(within(t), "node/0000001")
	assert.ErrorIs(t, err, sqlstore.ErrNotPrimary, "the table may not have come yet")
	_, err = swap(within(t), standby, cell, []byte("w"))
	assert.ErrorContains(t, err, "read-only")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	both := open(t, strings.Replace(s.url("postgres", "postgres", "host="+strings.Replace(s.addr, ":", ",localhost&port=", 1)), s.addr, "", 1))
	_, err = both.Read(within(t), "node/0000001")
	assert.ErrorContains(t, err, "server is in standby mode", "of several hosts, the primary is looked for")

	require.NoError(t, s.Kill())
	require.NoError(t, os.Remove(signal))
	require.NoError(t, s.Start())
	is, err := open(t, s.url("postgres", "postgres")).Read(within(t), "node/0000001")
	require.NoError(t, err)
	assert.Equal(t, cell, is)
}

func TestRoundTrips(t *testing.T) {
	s := start(t)
	for mode, name := range map[pgx.QueryExecMode]string{pgx.QueryExecModeExec: "as Open", pgx.QueryExecModeCacheStatement: "pgx's default"} {
		t.Run(name, func(t *testing.T) {
			db, n := s.counted(t, mode)
			store, err := postgres.New(db, "trips")
			require.NoError(t, err)
			cell, err := store.Read(within(t), "node/0000001")
			require.NoError(t, err)
			took := func(what string, want int64, f func() error) {
				before := n.Load()
				require.NoError(t, f())
				took := n.Load() - before
				t.Logf("%s: %d round trips", what, took)
				if mode == pgx.QueryExecModeExec {
					assert.Equal(t, want, took)
				}
			}
			again := func() (err error) {
				cell, err = swap(within(t), store, cell, []byte("v"))
				return err
			}
			if cell.Version == 0 {
				took("Swap that makes the table", 3, again)
			}
			for range 2 {
				took("Swap", 1, again)
				took("Swap that conflicts", 2, func() error {
					_, err := swap(within(t), store, stores.Cell{Key: "node/0000001", Version: 1}, nil)
					require.ErrorIs(t, err, stores.ErrConflict)
					return nil
				})
				took("Read", 1, func() error { _, err := store.Read(within(t), "node/0000001"); return err })
				took("List", 1, func() error { _, err := store.List(within(t), "", "\x7f", 1<<30); return err })
				took("Durability", 2, func() error { _, err := store.Durability(within(t)); return err })
			}
		})
	}
}

func TestOpenOfBadURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"mysql://u:s3cret@h/d":                              "begins with postgres:// or postgresql://",
		"postgres://u:s3cret@h:99999/d":                     "port",
		"postgres://u:s3cret@h:x/d":                         "malformed",
		"postgres://u:s3cret%@h/d":                          "malformed",
		"postgres://u:s3/cret@h/d":                          "percent-encode",
		"postgres://u:1/s3cret@h/d":                         "percent-encode",
		"postgres://u:s3cret@h/d?sslmode=nonsense":          "sslmode",
		"postgres://u@h/d?password=s3cret&sslmode=nonsense": "does not take it",
		"postgres://u:s3cret@h/d?connect_timeout=s3cret":    "withheld, since it may show a password; it is about: connect_timeout",
		"postgres://u:s3cret@h/d?sslrootcert=/s3cret/file":  "CA, TLS; a file that the URL names does not exist",
		"postgres://u:s3cret@h/d?namespace=a.b":             "holds '.'",
		"postgres://u:s3cret@h/d?table=a%3Bdrop":            "the parameter table cannot be used: table \"a;drop\": want",
		"postgres://u:s3cret@h/d?target_session_attrs=any1": "target_session_attrs",
		// In an unusual place.
		"postgres://127.0.0.1/d?pwd=s3cret&sslmode=nope":              "sslmode",
		"postgres://s3cret@h/d?sslmode=nope":                          "sslmode",
		"postgres://u@h/d:s3cret?sslmode=nope":                        "sslmode",
		"postgres://u:p@h/s3cret?sslmode=nope":                        "sslmode",
		"postgres://u:p@s3cret/d?sslmode=nope":                        "sslmode",
		"postgres:///d?host=s3cret&sslmode=nope":                      "sslmode",
		"postgres://h/d?port=s3cret":                                  "port",
		"postgres://h/d?port=1,2,3&host=s3cret,cret":                  "port",
		"postgres://h/d?s3cret&sslmode=nope":                          "does not take it",
		"postgres://h/d?s3cret=1&sslmode=nope":                        "sslmode",
		"postgres://h/d?sslmode=s3cret":                               "sslmode",
		"postgres://h/d?sslmode=%60%3A+s3cret":                        "sslmode",
		"postgres://h/d?pwd=`: s3cret&sslmode=nope":                   "sslmode",
		"postgres://h/d?target_session_attrs=s3cret":                  "target_session_attrs",
		"postgres://h/d?channel_binding=s3cret":                       "channel_binding",
		"postgres://h/d?require_auth=s3cret":                          "require_auth",
		"postgres://h/d?min_protocol_version=s3cret":                  "min_protocol_version",
		"postgres://h/d?sslcertmode=s3cret":                           "sslcertmode",
		"postgres://h/d?default_query_exec_mode=s3cret":               "default_query_exec_mode",
		"postgres://h/d?statement_cache_capacity=s3cret":              "statement_cache_capacity",
		"postgres://h/d?service=s3cret&servicefile=s3cret":            "service",
		"postgres://h/d?sslcert=s3cret&sslmode=require":               "sslcert, sslkey",
		"postgres://h/d?sslcert=s3cret&sslkey=s3cret&sslmode=require": "does not exist",
		"postgres://h/d?p%61ssword=s3cret&sslmode=nope":               "sslmode",
		"postgres://u:s3%22cret@h/d?sslmode=nope":                     "sslmode",
	} {
		store, err := postgres.Open(t.Context(), rawURL)
		require.Nil(t, store, rawURL)
		bad, ok := errors.AsType[*stores.URLError](err)
		require.True(t, ok, "%s: %v", rawURL, err)
		assert.Contains(t, bad.Error(), want, rawURL)
		for e := err; e != nil; e = errors.Unwrap(e) {
			text := fmt.Sprintf("%v %+v %#v", e, e, e)
			assert.NotContains(t, text, "s3", rawURL)
			assert.NotContains(t, text, "cret", rawURL)
		}
	}
	_, err := postgres.New(new(sql.DB), "a b")
	assert.ErrorContains(t, err, "namespace \"a b\"")
}

func TestPasswordIsNotShown(t *testing.T) {
	s := start(t)
	wrong := strings.Replace(s.url("postgres", "postgres"), "s3cret", "wr0ng", 1)
	for rawURL, want := range map[string]string{
		wrong:                        "password authentication failed",
		s.url("postgres", "missing"): "does not exist",
		s.url("nobody", "postgres"):  "password authentication failed",
		strings.Replace(s.url("postgres", "postgres"), s.addr, "127.0.0.1:1", 1):                "refused",
		strings.Replace(s.url("postgres", "postgres"), "sslmode=disable", "sslmode=require", 1): "TLS",
	} {
		_, err := open(t, rawURL).Read(within(t), "node/0000001")
		require.ErrorContains(t, err, want)
		text := fmt.Sprintf("%v %+v %q", err, err, err)
		for _, part := range []string{"s3cret", "wr0ng", "%3A%3F"} {
			assert.NotContains(t, text, part)
		}
		if want == "password authentication failed" {
			_, err := stores.Open(within(t), rawURL)
			assert.ErrorIs(t, err, stores.ErrRefused, rawURL)
		}
	}
}

// swap is Swap from a cell to the next.
func swap(ctx context.Context, s stores.Store, old stores.Cell, value []byte) (stores.Cell, error) {
	version, err := s.Swap(ctx, old.Key, old.Version, value)
	if err != nil {
		return stores.Cell{}, err
	}
	return stores.Cell{Key: old.Key, Version: version, Value: value}, nil
}
