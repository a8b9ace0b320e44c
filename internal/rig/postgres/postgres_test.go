// Package postgres has the tests of stores/postgres on real servers.
package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig/enginetest"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/postgres"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// at is the URL of a user and a database.
func at(s *servers.Server, user, database string, options ...string) string {
	u, _ := url.Parse(s.At(s.Addr, options...))
	u.User, u.Path = url.UserPassword(user, s.Password), "/"+database
	return u.String()
}

// admin returns a pool of the superuser's.
func admin(t testing.TB, s *servers.Server, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", at(s, "postgres", database))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
}

// database makes one with a user that owns nothing in it, and may do nothing but connect.
func database(t testing.TB, s *servers.Server, name string) *sql.DB {
	t.Helper()
	exec(t, admin(t, s, "postgres"), "CREATE DATABASE "+name, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, s.Password))
	db := admin(t, s, name)
	exec(t, db, "REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO "+name)
	return db
}

func TestMain(m *testing.M) { enginetest.Main(m) }

func TestEngine(t *testing.T) {
	s := servers.For(t, servers.PostgreSQL, "-c", "max_connections=500", "-c", "wal_writer_delay=10s", "-c", "autovacuum=off", "-c", "wal_retrieve_retry_interval=100ms")
	enginetest.Engine{
		Name: "postgres table tickflake_cells", Server: s,
		// A pool of the caller's that is set up in another way.
		New: func(t testing.TB, addr, namespace string) stores.Store {
			pool, err := pgxpool.New(enginetest.Within(t), s.At(addr, "default_transaction_isolation=serializable", "synchronous_commit=off"))
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			db := stdlib.OpenDBFromPool(pool)
			t.Cleanup(func() { _ = db.Close() })
			store, err := postgres.New(db, namespace)
			require.NoError(t, err)
			require.NoError(t, store.Close(), "which leaves the caller's pool open")
			return store
		},
		Damage: func(t testing.TB, namespace, key, text string) {
			_, err := admin(t, s, "postgres").Exec(`UPDATE tickflake_cells SET version = CASE WHEN $1::text LIKE '5 %' THEN 5 ELSE -length($1) END, value = substr($1, 3)
WHERE namespace = $2 AND cell = $3`, text, namespace, key)
			require.NoError(t, err)
		},
		TLS: func(url string) string { return strings.Replace(url, "sslmode=disable", "sslmode=require", 1) },
		BeforeTLS: func(conn net.Conn) error {
			// The client sends an SSLRequest, and the server agrees.
			if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
				return err
			}
			_, err := conn.Write([]byte("S"))
			return err
		},
		Plateau: enginetest.Plateau{AtRest: 1, AtMost: 9, // a closed one counts until the server has seen it
			Locks: map[string]func(t testing.TB) func(){
				"rows locked": func(t testing.TB) func() {
					db := admin(t, s, "postgres")
					tx, err := db.Begin()
					require.NoError(t, err)
					_, err = tx.Exec("SELECT * FROM tickflake_cells FOR UPDATE")
					require.NoError(t, err)
					return func() {
						require.NoError(t, tx.Rollback())
						require.NoError(t, db.Close())
					}
				},
				// As on a disk that hangs.
				"writes cannot be cancelled": func(t testing.TB) func() {
					db := admin(t, s, "postgres")
					db.SetMaxOpenConns(1) // of which the lock is
					exec(t, db, `SELECT pg_advisory_lock(1)`,
						`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  LOOP
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW;
    EXCEPTION WHEN query_canceled THEN -- it waits again
    END;
  END LOOP; END $$`,
						`CREATE TRIGGER hang BEFORE UPDATE ON tickflake_cells FOR EACH ROW EXECUTE FUNCTION hang()`)
					return func() {
						exec(t, db, `SELECT pg_advisory_unlock(1)`, `DROP FUNCTION hang CASCADE`)
						require.NoError(t, db.Close())
					}
				},
			}},
	}.Test(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *servers.Server)
	}{
		{"made on demand", testMadeOnDemand},
		{"by a DBA", testByDBA},
		{"another name", testAnotherName},
		{"by hand", testByHand},
		{"durable in spite of the role", testDurableInSpite},
		{"stronger setting stays", testStrongerSetting},
		{"round trips", testRoundTrips},
		{"denied", testDenied},
		{"refusals", testRefusals},
		{"standby is not asked", testStandby},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

func testMadeOnDemand(t *testing.T, s *servers.Server) {
	db := database(t, s, "demand")
	exec(t, db, "GRANT CREATE ON SCHEMA public TO demand")
	enginetest.TestMadeOnDemand(t, func(t testing.TB) stores.Store { return enginetest.Open(t, at(s, "demand", "demand")) }, func() bool {
		var exists bool
		require.NoError(t, db.QueryRow("SELECT to_regclass('tickflake_cells') IS NOT NULL").Scan(&exists))
		return exists
	})
}

func testByDBA(t *testing.T, s *servers.Server) {
	db := database(t, s, "dba")
	store := enginetest.Open(t, at(s, "dba", "dba"))
	schema := store.(*sqlstore.Store).Schema()
	_, err := store.Swap(enginetest.Within(t), "node/0000001", 0, []byte("v"))
	require.ErrorContains(t, err, "permission denied")
	assert.ErrorContains(t, err, strings.Join(strings.Fields(schema), " "))

	exec(t, db, schema, schema) // as printed
	_, err = store.Swap(enginetest.Within(t), "node/0000001", 0, []byte("v"))
	require.ErrorContains(t, err, "permission denied")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	exec(t, db, "GRANT SELECT, INSERT, UPDATE ON tickflake_cells TO dba")
	enginetest.Works(t, store)
}

func testAnotherName(t *testing.T, s *servers.Server) {
	db := database(t, s, "other")
	exec(t, db, "CREATE SCHEMA ops AUTHORIZATION other")
	enginetest.Works(t, enginetest.Open(t, at(s, "other", "other", "table=ops.User")))
	var n int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM ops."user" WHERE updated_at <= now()`).Scan(&n))
	assert.Equal(t, 1, n)
}

// Without the key, two processes could make one cell, each its own row. Neither another
// order of names nor a coarse time does harm.
func testByHand(t *testing.T, s *servers.Server) {
	db := database(t, s, "hand")
	url := at(s, "postgres", "hand")
	exec(t, db, enginetest.Open(t, url).(*sqlstore.Store).Schema(), `ALTER TABLE tickflake_cells DROP CONSTRAINT tickflake_cells_pkey, ALTER cell TYPE text COLLATE "en-x-icu",
  ALTER updated_at TYPE timestamptz(0)`, `CREATE UNIQUE INDEX ON tickflake_cells (namespace, cell) WHERE version > 9`)
	_, err := stores.Open(enginetest.Within(t), url)
	require.ErrorIs(t, err, stores.Refused)
	_, fix, _ := strings.Cut(err.Error(), "no key of namespace and cell is unique: ")
	exec(t, db, fix)
	enginetest.Works(t, enginetest.Open(t, url))
}

// see makes a trigger that keeps the level of each commit of a cell in the table seen.
const see = `CREATE TABLE seen (level text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO seen VALUES (TG_OP || ' ' || current_setting('synchronous_commit')); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE ON tickflake_cells
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`

// A role with synchronous_commit off gets durable writes from us, and no others.
func testDurableInSpite(t *testing.T, s *servers.Server) {
	db := database(t, s, "role")
	exec(t, db, "ALTER ROLE postgres IN DATABASE role SET synchronous_commit = off")
	other := admin(t, s, "role") // with the role's setting
	store := enginetest.Open(t, at(s, "postgres", "role"))
	cell := enginetest.Cell(t, store, "node/0000001", "made")
	exec(t, db, see)
	// synced tells whether all that was written so far has been synced.
	synced := func() (is bool) {
		require.NoError(t, db.QueryRow("SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()").Scan(&is))
		return is
	}
	const rounds = 30
	ours, others := 0, 0
	for i := range rounds {
		cell = enginetest.Swap(t, store, cell, "ours")
		if synced() {
			ours++
		}
		enginetest.Swap(t, store, stores.Cell{Key: fmt.Sprintf("node/%07d", 100+i)}, "")
		exec(t, other, "UPDATE tickflake_cells SET value = 'another''s' WHERE cell = 'node/0000100'")
		if synced() {
			others++
		}
	}
	assert.GreaterOrEqual(t, ours, rounds-2, "synced on return, but for what the server writes for itself")
	assert.Less(t, others, rounds/2, "other writes of the same role")
	for _, want := range []string{"INSERT on", "UPDATE off", "UPDATE on"} {
		var n int
		require.NoError(t, db.QueryRow("SELECT count(*) FROM seen WHERE level = $1", want).Scan(&n))
		assert.Equal(t, rounds, n, want)
	}
}

// A stronger setting is left as it is.
func testStrongerSetting(t *testing.T, s *servers.Server) {
	db := database(t, s, "stronger")
	store := enginetest.Open(t, at(s, "postgres", "stronger", "synchronous_commit=remote_apply"))
	cell := enginetest.Cell(t, store, "node/0000001", "")
	exec(t, db, see)
	enginetest.Swap(t, store, cell, "")
	var level string
	require.NoError(t, db.QueryRow("SELECT level FROM seen").Scan(&level))
	assert.Equal(t, "UPDATE remote_apply", level)
}

func testRoundTrips(t *testing.T, s *servers.Server) {
	for mode, name := range map[pgx.QueryExecMode]string{pgx.QueryExecModeExec: "as_open", pgx.QueryExecModeCacheStatement: "by_default"} {
		database(t, s, name)
		config, err := pgx.ParseConfig(at(s, "postgres", name))
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		dial, n := enginetest.Trips()
		config.DialFunc = dial
		never := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })
		db := stdlib.OpenDB(*config, never)
		defer func() { _ = db.Close() }()
		db.SetMaxOpenConns(1)
		store, err := postgres.New(db, "trips")
		require.NoError(t, err)
		var want map[string]int64
		if mode == pgx.QueryExecModeExec {
			want = map[string]int64{"first Swap": 3, "Swap": 1, "conflict": 2, "Read": 1, "List": 1, "Durability": 2}
		}
		enginetest.TestTrips(t, store, n, want)
	}
}

func testDenied(t *testing.T, s *servers.Server) {
	enginetest.TestDenied(t, s, map[string]string{
		strings.Replace(s.URL, "postgres:s3", "postgres:wr0ng", 1):      "password authentication failed",
		at(s, "nobody", "postgres"):                                     "password authentication failed",
		at(s, "postgres", "missing"):                                    "the database does not exist",
		strings.Replace(s.URL, "sslmode=disable", "sslmode=require", 1): "TLS",
	})
}

func testRefusals(t *testing.T, s *servers.Server) {
	const disconnect = "; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'USER_'"
	const table = "ALTER TABLE tickflake_cells "
	all := map[string]func(*testing.T) enginetest.Refusal{}
	for name, row := range map[string][4]string{ // how to refuse it, how to allow it again, what the error says and advises
		"password": {"ALTER ROLE USER_ PASSWORD 'other'" + disconnect, "ALTER ROLE USER_ PASSWORD '" + s.Password + "'", "password authentication failed", "fix the URL"},
		"login":    {"ALTER ROLE USER_ NOLOGIN" + disconnect, "ALTER ROLE USER_ LOGIN", "not permitted to log in", "fix the URL"},
		"rights":   {"REVOKE ALL ON tickflake_cells FROM USER_", "GRANT ALL ON tickflake_cells TO USER_", "permission denied for table", "grant the rights"},
		"readonly": {"ALTER ROLE USER_ SET default_transaction_read_only = on" + disconnect, "ALTER ROLE USER_ RESET ALL" + disconnect,
			"read-only", sqlstore.ErrNotPrimary.Error()},
		"columns": {table + "RENAME version TO edition", table + "RENAME edition TO version", "version", "with other columns"},
		"types":   {table + "ALTER value TYPE int USING 0", table + "ALTER value TYPE text", "", "with other columns"},
		"narrow":  {table + "ALTER value TYPE varchar(1) USING 'x'", table + "ALTER value TYPE text", "too long", "with other columns"},
	} {
		all[name] = func(t *testing.T) enginetest.Refusal {
			db := database(t, s, name)
			store := enginetest.Open(t, at(s, name, name))
			exec(t, db, store.(*sqlstore.Store).Schema()+"GRANT ALL ON tickflake_cells TO "+name)
			do := func(statements string) func() {
				return func() { exec(t, db, strings.ReplaceAll(statements, "USER_", name)) }
			}
			return enginetest.Refusal{Store: store, Refuse: do(row[0]), Fix: do(row[1]), Want: row[2], Advice: row[3]}
		}
	}
	enginetest.TestRefusals(t, all)
	// What only a write of a new cell meets.
	for name, statement := range map[string]string{
		"own":         table + "ADD COLUMN own int NOT NULL",
		"ON CONFLICT": "CREATE RULE r AS ON UPDATE TO tickflake_cells DO NOTHING",
	} {
		short := strings.ToLower(name[:2])
		db := database(t, s, "new_"+short)
		store := enginetest.Open(t, at(s, "postgres", "new_"+short))
		exec(t, db, store.(*sqlstore.Store).Schema(), statement)
		_, err := store.Swap(enginetest.Within(t), "node/0000001", 0, nil)
		require.ErrorContains(t, err, name)
		assert.ErrorContains(t, err, "with other columns")
		assert.Equal(t, stores.Refused, stores.KindOf(err))
	}
}

func testStandby(t *testing.T, s *servers.Server) {
	db := database(t, s, "standby")
	url := func(options ...string) string { return at(s, "postgres", "standby", options...) }
	store := enginetest.Open(t, url())
	cell := enginetest.Cell(t, store, "node/0000001", "v")
	promises, err := store.(*sqlstore.Store).Durability(enginetest.Within(t))
	require.NoError(t, err)
	assert.Zero(t, promises)
	exec(t, db, "ALTER TABLE tickflake_cells SET UNLOGGED", "CHECKPOINT")
	_, err = stores.Open(enginetest.Within(t), url())
	assert.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, "ALTER TABLE \"tickflake_cells\" SET LOGGED")
	enginetest.Open(t, url("forgetful=allow"))
	exec(t, db, "ALTER TABLE tickflake_cells SET LOGGED", "CHECKPOINT")

	file := filepath.Join(s.Dir, "data", "standby.signal")
	restart := func(change func() error) {
		require.NoError(t, s.Kill())
		require.NoError(t, change())
		require.NoError(t, s.Start())
	}
	restart(func() error { return os.WriteFile(file, nil, 0o644) })
	standby := enginetest.Open(t, url())
	_, err = standby.Read(enginetest.Within(t), cell.Key)
	assert.ErrorIs(t, err, sqlstore.ErrNotPrimary)
	_, err = enginetest.Open(t, url("table=missing")).Read(enginetest.Within(t), cell.Key)
	assert.ErrorIs(t, err, sqlstore.ErrNotPrimary, "the table may not have come yet")
	_, err = standby.Swap(enginetest.Within(t), cell.Key, cell.Version, []byte("w"))
	assert.ErrorContains(t, err, "read-only")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	brief, cancel := context.WithTimeout(t.Context(), 1e9)
	defer cancel()
	_, err = stores.Open(brief, strings.Replace(url("host=127.0.0.1,localhost&port="+s.Port()), s.Addr, "", 1))
	assert.ErrorContains(t, err, "server is in standby mode", "of several hosts, the primary is looked for")

	restart(func() error { return os.Remove(file) })
	is, err := enginetest.Open(t, url()).Read(enginetest.Within(t), cell.Key)
	require.NoError(t, err)
	assert.Equal(t, cell, is)
}
