package engines

import (
	"context"
	"database/sql"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/postgres"
)

// postgresAdmin returns a pool of the superuser's.
func postgresAdmin(t testing.TB, s *servers.Server, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", SQL{Server: s}.At("postgres", database))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	s := servers.For(t, servers.PostgreSQL, "-c", "max_connections=500", "-c", "wal_writer_delay=10s", "-c", "autovacuum=off", "-c", "wal_retrieve_retry_interval=100ms")
	Engine{
		Name: "postgres at " + s.Addr + " table tickflake_cells", Server: s,
		New: func(t testing.TB, addr, namespace string) stores.Store {
			pool, err := pgxpool.New(Within(t), s.At(addr, "default_transaction_isolation=serializable", "synchronous_commit=off"))
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			db := stdlib.OpenDBFromPool(pool)
			t.Cleanup(func() { _ = db.Close() })
			store, err := postgres.New(db, namespace, "")
			require.NoError(t, err)
			require.NoError(t, store.Close(), "which leaves the caller's pool open")
			return store
		},
		Damage: func(t testing.TB, namespace, key, text string) {
			_, err := postgresAdmin(t, s, "postgres").Exec(`UPDATE tickflake_cells SET version = CASE WHEN $1::text LIKE '5 %' THEN 5 ELSE -length($1) END, value = substr($1, 3)
WHERE namespace = $2 AND cell = $3`, text, namespace, key)
			require.NoError(t, err)
		},
		TLS: func(url string) string { return strings.Replace(url, "sslmode=disable", "sslmode=require", 1) },
		BeforeTLS: func(conn net.Conn) { // the client sends an SSLRequest, and the server agrees
			_, _ = io.ReadFull(conn, make([]byte, 8))
			_, _ = conn.Write([]byte("S"))
		},
		AtRest: 1, AtMost: 9, // a closed one counts until the server has seen it
		Locks: map[string]func(t testing.TB) func(){
			"rows locked": func(t testing.TB) func() {
				db := postgresAdmin(t, s, "postgres")
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
				db := postgresAdmin(t, s, "postgres")
				db.SetMaxOpenConns(1) // of which the lock is
				Exec(t, db, `SELECT pg_advisory_lock(1)`,
					`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  LOOP
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW;
    EXCEPTION WHEN query_canceled THEN -- it waits again
    END;
  END LOOP; END $$`,
					`CREATE TRIGGER hang BEFORE UPDATE ON tickflake_cells FOR EACH ROW EXECUTE FUNCTION hang()`)
				return func() {
					Exec(t, db, `SELECT pg_advisory_unlock(1)`, `DROP FUNCTION hang CASCADE`)
					require.NoError(t, db.Close())
				}
			},
		},
	}.Test(t)
	q := postgresTable(s)
	q.Test(t)
	t.Run("past", func(t *testing.T) { testPast(t, s.At(s.Addr, "namespace=past")) })
	t.Run("durable in spite of the role", func(t *testing.T) { testDurableInSpite(t, q) })
	t.Run("stronger setting stays", func(t *testing.T) { testStrongerSetting(t, q) })
	t.Run("round trips", func(t *testing.T) {
		testTrips(t, s, map[string]int{"first Swap": 3, "Swap": 1, "conflict": 2, "Read": 1, "List": 1, "Durability": 2}, "table=trips")
	})
	t.Run("standby is not asked", func(t *testing.T) { testStandby(t, q) })
}

// postgresTable is that of a server.
func postgresTable(s *servers.Server) SQL {
	q := SQL{Server: s, Home: "postgres", Root: func(t testing.TB, database string) *sql.DB { return postgresAdmin(t, s, database) },
		Make:     "CREATE DATABASE USER_;CREATE ROLE USER_ LOGIN PASSWORD '" + s.Password + "';ALTER DATABASE USER_ OWNER TO USER_",
		NoCreate: "ALTER DATABASE USER_ OWNER TO postgres;REVOKE ALL ON SCHEMA public FROM PUBLIC;GRANT USAGE ON SCHEMA public TO USER_",
		Grant:    "GRANT SELECT, INSERT, UPDATE ON tickflake_cells TO USER_;",
		Foreign:  "CREATE SCHEMA ops AUTHORIZATION USER_", Table: [2]string{"ops.User", `ops."user"`}}
	q.Denied = map[string]string{
		strings.Replace(s.URL, "postgres:s3", "postgres:wr0ng", 1):      "password authentication failed",
		q.At("nobody", "postgres"):                                      "password authentication failed",
		q.At("postgres", "missing"):                                     "the database does not exist",
		strings.Replace(s.URL, "sslmode=disable", "sslmode=require", 1): "TLS",
	}
	const disconnect = ";SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'USER_'"
	const alter = "ALTER TABLE tickflake_cells "
	q.Refusals = map[string][4]string{
		"password": {"ALTER ROLE USER_ PASSWORD 'other'" + disconnect, "ALTER ROLE USER_ PASSWORD '" + s.Password + "'", "password authentication failed", "fix the URL"},
		"login":    {"ALTER ROLE USER_ NOLOGIN" + disconnect, "ALTER ROLE USER_ LOGIN", "not permitted to log in", "fix the URL"},
		"rights":   {"REVOKE ALL ON tickflake_cells FROM USER_", "GRANT ALL ON tickflake_cells TO USER_", "permission denied for table", "grant the rights"},
		"readonly": {"ALTER ROLE USER_ SET default_transaction_read_only = on" + disconnect, "ALTER ROLE USER_ RESET ALL" + disconnect,
			"default_transaction_read_only", "switch that off where it was set"},
		"columns": {alter + "RENAME version TO edition", alter + "RENAME edition TO version", "version", "with other columns"},
		"types":   {alter + "ALTER value TYPE int USING 0", alter + "ALTER value TYPE text", "", "with other columns"},
		"narrow":  {alter + "ALTER value TYPE varchar(1) USING 'x'", alter + "ALTER value TYPE text", "too long", "with other columns"},
	}
	q.New = map[string]string{
		"own":         alter + "ADD COLUMN own int NOT NULL",
		"ON CONFLICT": "CREATE RULE r AS ON UPDATE TO tickflake_cells DO NOTHING",
		// Without the key, two processes could make one cell, each its own row.
		"no unique": alter + "DROP CONSTRAINT tickflake_cells_pkey;CREATE UNIQUE INDEX ON tickflake_cells (namespace, cell) WHERE version > 9",
	}
	q.Unfit = [][2]string{{`ALTER TABLE OURS ALTER cell TYPE text COLLATE "en-x-icu", ALTER updated_at TYPE timestamptz(0)`, ""}}
	return q
}

// see makes a trigger that keeps the level of each commit of a cell in the table seen.
const see = `CREATE TABLE seen (level text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO seen VALUES (TG_OP || ' ' || current_setting('synchronous_commit')); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE ON tickflake_cells
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`

// A role with synchronous_commit off gets durable writes from us, and no others.
func testDurableInSpite(t *testing.T, q SQL) {
	db := q.Database(t, "role")
	Exec(t, db, "ALTER ROLE postgres IN DATABASE role SET synchronous_commit = off")
	other := q.Root(t, "role") // with the role's setting
	store := Open(t, q.At("postgres", "role"))
	cell := Cell(t, store, "node/0000001", "made")
	Exec(t, db, see)
	Swap(t, store, cell, "ours")
	Swap(t, store, stores.Cell{Key: "node/0000002"}, "")
	Exec(t, other, "UPDATE tickflake_cells SET value = 'another''s' WHERE cell = 'node/0000001'")
	assert.Equal(t, "INSERT on, UPDATE off, UPDATE on", Value(t, db, "SELECT string_agg(level, ', ' ORDER BY level) FROM seen"))
}

// A stronger setting is left as it is.
func testStrongerSetting(t *testing.T, q SQL) {
	db := q.Database(t, "stronger")
	store := Open(t, q.At("postgres", "stronger", "synchronous_commit=remote_apply"))
	cell := Cell(t, store, "node/0000001", "")
	Exec(t, db, see)
	Swap(t, store, cell, "")
	assert.Equal(t, "UPDATE remote_apply", Value(t, db, "SELECT level FROM seen"))
}

func testStandby(t *testing.T, q SQL) {
	db := q.Database(t, "standby")
	url := func(options ...string) string { return q.At("postgres", "standby", options...) }
	store := Open(t, url())
	cell := Cell(t, store, "node/0000001", "v")
	assert.Zero(t, Promises(t, store))
	Exec(t, db, "ALTER TABLE tickflake_cells SET UNLOGGED", "CHECKPOINT")
	Forgets(t, url(), "ALTER TABLE \"tickflake_cells\" SET LOGGED")
	Exec(t, db, "ALTER TABLE tickflake_cells SET LOGGED", "CHECKPOINT")

	file := filepath.Join(q.Dir, "data", "standby.signal")
	restart := func(change func() error) {
		require.NoError(t, q.Kill())
		require.NoError(t, change())
		require.NoError(t, q.Start())
	}
	restart(func() error { return os.WriteFile(file, nil, 0o644) })
	NotPrimary(t, Open(t, url()), Open(t, url("table=missing")), cell)
	standby := func(err error) bool { return strings.Contains(err.Error(), "server is in standby mode") }
	assert.Error(t, Fails(t, standby, func(ctx context.Context) error {
		_, err := stores.Open(ctx, strings.Replace(url("host=127.0.0.1,localhost&port="+q.Port()), q.Addr, "", 1))
		return err
	}), "of several hosts, the primary is looked for")

	restart(func() error { return os.Remove(file) })
	is, err := Open(t, url()).Read(Within(t), cell.Key)
	require.NoError(t, err)
	assert.Equal(t, cell, is)
}
