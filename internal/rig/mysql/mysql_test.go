// Package mysql has the tests of stores/mysql on real servers.
package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig/enginetest"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/mysql"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// start runs a server, whose URL is then that of the user ids, who owns nothing, and the
// database ops. root is a pool of who may do everything.
func start(t testing.TB, settings ...string) (s *servers.Server, root *sql.DB) {
	t.Helper()
	s = servers.For(t, servers.MariaDB, settings...)
	root = rootOf(t, s)
	exec(t, root, "CREATE DATABASE ops", fmt.Sprintf("CREATE USER ids IDENTIFIED BY '%s'", s.Password), "GRANT CREATE, SELECT, INSERT, UPDATE ON ops.* TO ids")
	s.URL = at(s, "ids", "ops")
	return s, root
}

func rootOf(t testing.TB, s *servers.Server) *sql.DB {
	t.Helper()
	db, err := s.SQL(nil)
	require.NoError(t, err)
	db.SetMaxOpenConns(3) // one counts, one locks
	db.SetMaxIdleConns(3)
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

// at is the URL of a user and a database.
func at(s *servers.Server, user, database string, options ...string) string {
	u, _ := url.Parse(s.At(s.Addr, options...))
	u.User, u.Path = url.UserPassword(user, s.Password), "/"+database
	return u.String()
}

// pool returns one of a caller, whose settings Open would not make so.
func pool(t testing.TB, s *servers.Server, addr string, change func(*driver.Config)) *sql.DB {
	t.Helper()
	config := driver.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", addr, "ids", s.Password, "ops"
	change(config)
	connector, err := driver.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestMain(m *testing.M) { enginetest.Main(m) }

func TestEngine(t *testing.T) {
	// A server that is lax, with a binary log.
	s, root := start(t, "--max-connections=1000", "--character-set-server=latin1", "--default-storage-engine=MyISAM",
		"--log-bin=bin", "--sync-binlog=1", "--binlog-format=STATEMENT")
	enginetest.Engine{
		Name: "mysql table tickflake_cells", Server: s,
		// A pool of the caller's that is set up in another way.
		New: func(t testing.TB, addr, namespace string) stores.Store {
			store, err := mysql.New(pool(t, s, addr, func(c *driver.Config) {
				c.ClientFoundRows, c.InterpolateParams, c.ParseTime = true, false, true
				c.Params = map[string]string{"tx_isolation": "'SERIALIZABLE'", "sql_mode": "''"}
			}), namespace)
			require.NoError(t, err)
			require.NoError(t, store.Close(), "which leaves the caller's pool open")
			return store
		},
		Damage: func(t testing.TB, namespace, key, text string) {
			_, err := root.Exec(`UPDATE ops.tickflake_cells SET version = IF(? LIKE '5 %', 5, -LENGTH(?)), value = SUBSTR(?, 3)
WHERE namespace = ? AND cell = ?`, text, text, text, namespace, key)
			require.NoError(t, err)
		},
		TLS: func(url string) string { return url + "&tls=skip-verify" },
		BeforeTLS: func(conn net.Conn) error {
			_, err := conn.Write(greeting())
			return err
		},
		Plateau: enginetest.Plateau{AtRest: 1, AtMost: 5, // a closed one counts until the server has seen it
			Count: func(ctx context.Context) (n int, err error) {
				err = root.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE user IN ('ids', 'unauthenticated user')").Scan(&n)
				return n, err
			},
			Locks: map[string]func(t testing.TB) func(){
				"rows locked": func(t testing.TB) func() {
					tx, err := root.Begin()
					require.NoError(t, err)
					_, err = tx.Exec("SELECT * FROM ops.tickflake_cells FOR UPDATE")
					require.NoError(t, err)
					return func() { require.NoError(t, tx.Rollback()) }
				},
				"table locked": func(t testing.TB) func() { return lockTable(t, root) },
			}},
	}.Test(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *servers.Server, *sql.DB)
	}{
		{"made on demand", testMadeOnDemand},
		{"by a DBA", testByDBA},
		{"other ways", testOtherWays},
		{"autocommit off", testAutocommitOff},
		{"read-only", testReadOnly},
		{"tables made by hand", testTablesMadeByHand},
		{"durability", testDurability},
		{"round trips", testRoundTrips},
		{"denied", testDenied},
		{"refusals", testRefusals},
		{"locked table", testLockedTable},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s, root) })
	}
}

// greeting is the first packet of a server that has TLS: a handshake of version 10.
func greeting() []byte {
	const protocol41, tls, pluginAuth = 0x0200, 0x0800, 0x00080000
	const flags = protocol41 | tls | 0x8000 /* secure connection */ | pluginAuth
	packet := append([]byte{10}, "8.0.0\x00"...)
	packet = append(packet, 1, 0, 0, 0)                    // the connection's id
	packet = append(packet, "12345678\x00"...)             // the challenge
	packet = append(packet, flags&0xff, flags>>8&0xff)     // half of the flags
	packet = append(packet, 45, 2, 0)                      // character set, status
	packet = append(packet, flags>>16&0xff, flags>>24, 21) // the other half, length of the challenge
	packet = append(packet, make([]byte, 10)...)
	packet = append(packet, "123456789012\x00mysql_native_password\x00"...)
	return append([]byte{byte(len(packet)), 0, 0, 0}, packet...)
}

// lockTable locks the table as ALTER TABLE does.
func lockTable(t testing.TB, root *sql.DB) (unlock func()) {
	conn, err := root.Conn(context.Background())
	require.NoError(t, err)
	_, err = conn.ExecContext(enginetest.Within(t), "LOCK TABLES ops.tickflake_cells WRITE")
	require.NoError(t, err)
	return func() {
		_, err := conn.ExecContext(context.Background(), "UNLOCK TABLES")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// A call waits for a lock on the table, as ALTER TABLE has it, until its context ends.
func testLockedTable(t *testing.T, s *servers.Server, root *sql.DB) {
	store := enginetest.Open(t, s.At(s.Addr, "namespace=locked"))
	cell := enginetest.Cell(t, store, "k", "v")
	unlock := lockTable(t, root)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := store.Read(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	swapped := make(chan error)
	go func() {
		_, err := store.Swap(enginetest.Within(t), "k", cell.Version, nil)
		swapped <- err
	}()
	// The server has ended the statement once, and has it a second time.
	ids := make(map[int64]bool)
	require.Eventually(t, func() bool {
		var id int64
		err := root.QueryRow("SELECT query_id FROM information_schema.processlist WHERE user = 'ids' AND info LIKE 'UPDATE%'").Scan(&id)
		if err == nil {
			ids[id] = true
		}
		return len(ids) > 1
	}, 20*time.Second, 10*time.Millisecond)
	unlock()
	require.NoError(t, <-swapped)
}

func testMadeOnDemand(t *testing.T, s *servers.Server, root *sql.DB) {
	enginetest.TestMadeOnDemand(t, func(t testing.TB) stores.Store { return enginetest.Open(t, s.At(s.Addr, "table=demand")) }, func() bool {
		var tables int
		require.NoError(t, root.QueryRow("SELECT count(*) FROM information_schema.tables WHERE table_name = 'demand'").Scan(&tables))
		return tables > 0
	})
}

func testByDBA(t *testing.T, s *servers.Server, root *sql.DB) {
	exec(t, root, "CREATE DATABASE dba", fmt.Sprintf("CREATE USER poor IDENTIFIED BY '%s'", s.Password), "GRANT SELECT, INSERT, UPDATE ON dba.* TO poor")
	store := enginetest.Open(t, at(s, "poor", "dba"))
	schema := store.(*sqlstore.Store).Schema()
	_, err := store.Swap(enginetest.Within(t), "node/0000001", 0, []byte("v"))
	require.ErrorContains(t, err, "denied")
	assert.ErrorContains(t, err, strings.Join(strings.Fields(schema), " "))
	conn, err := root.Conn(enginetest.Within(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	for _, statement := range []string{"USE dba", schema, schema, "USE rig"} { // as printed
		_, err = conn.ExecContext(enginetest.Within(t), statement)
		require.NoError(t, err)
	}
	enginetest.Works(t, store)
}

func testOtherWays(t *testing.T, s *servers.Server, root *sql.DB) {
	enginetest.Works(t, enginetest.Open(t, s.At(s.Addr, "table=ops.select")))
	var n int
	require.NoError(t, root.QueryRow("SELECT count(*) FROM ops.`select` WHERE updated_at <= now(6)").Scan(&n))
	assert.Equal(t, 1, n)
	enginetest.Works(t, enginetest.Open(t, s.At("", "namespace=socket", "socket="+filepath.Join(s.Dir, "s"))))
	for _, namespace := range []string{"Fleet", "fleet", "FLEET"} {
		enginetest.Works(t, enginetest.Open(t, s.At(s.Addr, "namespace="+namespace)))
	}
}

// A session that never commits writes nothing, and says so.
func testAutocommitOff(t *testing.T, s *servers.Server, _ *sql.DB) {
	good, bad := enginetest.Open(t, s.At(s.Addr, "namespace=auto")), enginetest.Open(t, s.At(s.Addr, "namespace=auto", "autocommit=0"))
	cell := enginetest.Cell(t, good, "node/0000001", "v")
	_, err1 := bad.Swap(enginetest.Within(t), cell.Key, cell.Version, []byte("w"))
	_, err2 := bad.Swap(enginetest.Within(t), "node/0000002", 0, []byte("w"))
	_, err3 := bad.Read(enginetest.Within(t), cell.Key)
	for _, err := range []error{err1, err2, err3} {
		assert.ErrorIs(t, err, sqlstore.ErrAutocommit)
		assert.NotErrorIs(t, err, stores.ErrConflict)
	}
	cells, err := good.List(enginetest.Within(t), "", "\x7f", 1<<30)
	require.NoError(t, err)
	assert.Equal(t, []stores.Cell{cell}, cells)
	enginetest.Swap(t, good, cell, "w") // and it holds no lock
}

func testReadOnly(t *testing.T, s *servers.Server, root *sql.DB) {
	store := enginetest.Open(t, s.At(s.Addr, "namespace=readonly"))
	cell := enginetest.Cell(t, store, "node/0000001", "v")
	exec(t, root, "SET GLOBAL read_only = 1")
	defer exec(t, root, "SET GLOBAL read_only = 0")
	_, err := store.Read(enginetest.Within(t), cell.Key)
	assert.ErrorIs(t, err, sqlstore.ErrNotPrimary)
	_, err = enginetest.Open(t, s.At(s.Addr, "table=missing")).Read(enginetest.Within(t), cell.Key)
	assert.ErrorIs(t, err, sqlstore.ErrNotPrimary, "the table may not have come yet")
	for _, version := range []uint64{cell.Version, 5} {
		_, err = store.Swap(enginetest.Within(t), cell.Key, version, nil)
		assert.ErrorContains(t, err, "read-only")
		assert.NotErrorIs(t, err, stores.ErrConflict)
	}
}

// A table that breaks a promise of a Store is refused when it is opened, and the statement of
// the error mends it. A Read ends nevertheless.
func testTablesMadeByHand(t *testing.T, s *servers.Server, root *sql.DB) {
	enginetest.Works(t, enginetest.Open(t, s.At(s.Addr, "table=good")))
	for i, test := range []struct{ change, want string }{
		{"MODIFY updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", "column updated_at is timestamp: "},
		{"MODIFY updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)", "column updated_at is datetime(3): "},
		{"MODIFY updated_at DATETIME(6) NULL", "column updated_at is datetime(6): "},
		{"MODIFY namespace VARCHAR(48) CHARACTER SET ascii COLLATE ascii_general_ci", "column namespace is varchar(48) COLLATE ascii_general_ci: "},
		{"MODIFY cell VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin", "column cell is varchar(40) COLLATE ascii_bin: "},
		{"MODIFY version INT NOT NULL", "column version is int"},
		{"MODIFY value TINYTEXT NOT NULL", "column value is tinytext"},
		{"DROP PRIMARY KEY, ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE (namespace, cell, id), ADD UNIQUE (namespace, cell(7))", "no key of namespace and cell is unique: "},
		{"MODIFY value TEXT, MODIFY updated_at DATETIME(6) DEFAULT NOW(6), DROP PRIMARY KEY, ADD UNIQUE (cell, namespace)", ""},
		{"MODIFY cell VARBINARY(200), MODIFY namespace VARCHAR(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ""},
	} {
		table := fmt.Sprint("hand", i)
		exec(t, root, "CREATE TABLE ops."+table+" LIKE ops.good", "ALTER TABLE ops."+table+" "+test.change)
		if strings.Contains(test.want, "updated_at") {
			unasked, err := mysql.New(pool(t, s, s.Addr, func(*driver.Config) {}), "unasked", sqlstore.WithTable(table))
			require.NoError(t, err)
			enginetest.Swap(t, unasked, stores.Cell{Key: "node/0000001"}, "")
			_, err = unasked.Read(enginetest.Within(t), "node/0000001")
			assert.ErrorContains(t, err, "a write of its row changed nothing", test.change)
		}
		_, err := stores.Open(enginetest.Within(t), s.At(s.Addr, "forgetful=allow", "table=ops."+table))
		if test.want != "" {
			require.ErrorIs(t, err, stores.Refused, test.change)
			require.ErrorContains(t, err, test.want)
			_, fix, _ := strings.Cut(err.Error(), ": ALTER TABLE `ops`.`"+table+"` ")
			exec(t, root, "ALTER TABLE ops."+table+" "+fix)
		}
		enginetest.Open(t, s.At(s.Addr, "table=ops."+table))
	}
}

func testDurability(t *testing.T, s *servers.Server, root *sql.DB) {
	promises := func() stores.Durability {
		found, err := stores.CheckDurability(enginetest.Within(t), enginetest.Open(t, s.URL))
		require.NoError(t, err)
		return found
	}
	forgets := func(want string, options ...string) {
		_, err := stores.Open(enginetest.Within(t), s.At(s.Addr, options...))
		assert.ErrorIs(t, err, stores.ErrForgets)
		assert.ErrorContains(t, err, want)
	}
	risk := func(setting string) {
		found := promises()
		assert.Empty(t, found.Forgets)
		require.Len(t, found.Risks, 1)
		assert.Contains(t, found.Risks[0], setting)
	}
	assert.Zero(t, promises())
	exec(t, root, "CREATE TABLE ops.loose LIKE ops.tickflake_cells", "ALTER TABLE ops.loose ENGINE=MyISAM")
	forgets("MyISAM", "table=loose")
	forgets("MyISAM", "table=ops.loose")
	// A server that makes every table with another engine.
	exec(t, root, "SET GLOBAL enforce_storage_engine = MyISAM")
	forgets("enforce_storage_engine is MyISAM", "table=fresh")
	exec(t, root, "SET GLOBAL enforce_storage_engine = NULL", "SET GLOBAL sync_binlog = 0")
	risk("sync_binlog is 0")
	exec(t, root, "SET GLOBAL sync_binlog = 1", "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	risk("innodb_flush_log_at_trx_commit is 2")
	exec(t, root, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	defer exec(t, root, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	forgets("innodb_flush_log_at_trx_commit is 0")
	enginetest.Open(t, s.At(s.Addr, "forgetful=allow"))
}

func testRoundTrips(t *testing.T, s *servers.Server, _ *sql.DB) {
	for _, interpolate := range []bool{true, false} {
		dial, n := enginetest.Trips()
		db := pool(t, s, s.Addr, func(c *driver.Config) { c.InterpolateParams, c.DialFunc = interpolate, dial })
		db.SetMaxOpenConns(1)
		name := fmt.Sprint("trips_", interpolate)
		store, err := mysql.New(db, name, sqlstore.WithTable(name))
		require.NoError(t, err)
		var want map[string]int64
		if interpolate {
			want = map[string]int64{"first Swap": 3, "Swap": 1, "conflict": 2, "Read": 2, "List": 1, "Durability": 3}
		}
		enginetest.TestTrips(t, store, n, want)
	}
}

func testDenied(t *testing.T, s *servers.Server, _ *sql.DB) {
	enginetest.TestDenied(t, s, map[string]string{
		strings.Replace(s.URL, "ids:s3", "ids:wr0ng", 1): "Access denied",
		at(s, "ids", "missing"):                          "denied",
		at(s, "who", "ops"):                              "Access denied",
		s.At(s.Addr, "tls=true"):                         "TLS",
		s.At(s.Addr, "no_such_variable=1"):               "no_such_variable",
	})
}

func testRefusals(t *testing.T, s *servers.Server, root *sql.DB) {
	const table = "ALTER TABLE NAME.tickflake_cells "
	const kill = ";KILL USER NAME"
	const ours = "UPDATE NAME.tickflake_cells SET value = '1';" // which fits
	all := map[string]func(*testing.T) enginetest.Refusal{}
	for name, row := range map[string][4]string{ // how to refuse it, how to allow it again, what the error says and advises
		"password": {"ALTER USER NAME IDENTIFIED BY 'other'" + kill, "ALTER USER NAME IDENTIFIED BY '" + s.Password + "'", "Access denied", "fix the URL"},
		"locked":   {"ALTER USER NAME ACCOUNT LOCK" + kill, "ALTER USER NAME ACCOUNT UNLOCK", "account is locked", "fix the URL"},
		"rights":   {"REVOKE ALL ON NAME.* FROM NAME" + kill, "GRANT ALL ON NAME.* TO NAME", "denied", "grant the rights"},
		"readonly": {"SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "read-only", sqlstore.ErrNotPrimary.Error()},
		"columns":  {table + "CHANGE version edition BIGINT", table + "CHANGE edition version BIGINT", "version", "with other columns"},
		"types":    {ours + table + "MODIFY value INT", table + "MODIFY value VARCHAR(1024)", "", "with other columns"},
		"narrow":   {ours + table + "MODIFY value VARCHAR(1)", table + "MODIFY value VARCHAR(1024)", "too long", "with other columns"},
		"dropped":  {"DROP DATABASE NAME" + kill, "CREATE DATABASE NAME", "Unknown database", "the database does not exist"},
	} {
		all[name] = func(t *testing.T) enginetest.Refusal {
			do := func(statements string) func() {
				return func() { exec(t, root, strings.Split(strings.ReplaceAll(statements, "NAME", name), ";")...) }
			}
			do("CREATE DATABASE NAME;CREATE USER NAME IDENTIFIED BY '" + s.Password + "';GRANT ALL ON NAME.* TO NAME")()
			return enginetest.Refusal{Store: enginetest.Open(t, at(s, name, name)),
				Refuse: do(row[0]), Fix: do(row[1]), Want: row[2], Advice: row[3]}
		}
	}
	enginetest.TestRefusals(t, all)
	// What only a write of a new cell meets.
	store := enginetest.Open(t, s.At(s.Addr, "table=additional"))
	exec(t, root, strings.Replace(store.(*sqlstore.Store).Schema(), "TABLE IF NOT EXISTS ", "TABLE IF NOT EXISTS ops.", 1), "ALTER TABLE ops.additional ADD COLUMN own int NOT NULL")
	_, err := store.Swap(enginetest.Within(t), "node/0000001", 0, nil)
	require.ErrorContains(t, err, "own")
	assert.ErrorContains(t, err, "with other columns")
	assert.Equal(t, stores.Refused, stores.KindOf(err))
}
