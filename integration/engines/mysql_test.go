package engines

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/mysql"
)

// mysqlRoot returns a pool of who may do everything, in a database.
func mysqlRoot(t testing.TB, s *servers.Server, database string) *sql.DB {
	t.Helper()
	return mysqlPool(t, s, s.Addr, func(c *driver.Config) { c.User, c.DBName = "rig", database })
}

func mysqlPool(t testing.TB, s *servers.Server, addr string, change func(*driver.Config)) *sql.DB {
	config := driver.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", addr, "ops", s.Password, "ops"
	change(config)
	connector, err := driver.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestMySQL(t *testing.T) {
	t.Parallel()
	// A server that is lax, with a binary log.
	s := servers.For(t, servers.MariaDB, "--max-connections=1000", "--character-set-server=latin1", "--default-storage-engine=MyISAM", "--sql-mode=",
		"--log-bin=bin", "--sync-binlog=1", "--binlog-format=STATEMENT")
	q := mysqlTable(s)
	root := q.Database(t, "ops")
	require.NoError(t, root.Ping()) // whose connection counts from now on
	s.URL = q.At("ops", "ops")
	Engine{
		Name: "mysql at " + s.Addr + " table tickflake_cells", Server: s,
		// A pool whose sessions commit nothing by themselves.
		New: func(t testing.TB, addr, namespace string) stores.Store {
			store, err := mysql.New(mysqlPool(t, s, addr, func(c *driver.Config) {
				c.ClientFoundRows, c.InterpolateParams, c.ParseTime = true, false, true
				c.Params = map[string]string{"autocommit": "0", "tx_isolation": "'SERIALIZABLE'", "sql_mode": "'STRICT_ALL_TABLES'"}
			}), namespace, "")
			require.NoError(t, err)
			require.NoError(t, store.Close(), "which leaves the caller's pool open")
			return store
		},
		Damage: func(t testing.TB, namespace, key, text string) {
			_, err := root.Exec(`UPDATE ops.tickflake_cells SET version = IF(? LIKE '5 %', 5, -LENGTH(?)), value = SUBSTR(?, 3)
WHERE namespace = ? AND cell = ?`, text, text, text, namespace, key)
			require.NoError(t, err)
		},
		TLS:       func(url string) string { return url + "&tls=skip-verify" },
		BeforeTLS: func(conn net.Conn) { _, _ = conn.Write(mysqlGreeting()) },
		AtRest:    1, AtMost: 5, // a closed one counts until the server has seen it
		Locks: map[string]func(t testing.TB) func(){
			"rows locked": func(t testing.TB) func() {
				tx, err := root.Begin()
				require.NoError(t, err)
				_, err = tx.Exec("SELECT * FROM ops.tickflake_cells FOR UPDATE")
				require.NoError(t, err)
				return func() { require.NoError(t, tx.Rollback()) }
			},
			"table locked": func(t testing.TB) func() { return lockTable(t, root) },
		},
	}.Test(t)
	q.Test(t)
	t.Run("autocommit off", func(t *testing.T) {
		Exec(t, root, "SET GLOBAL autocommit = 0")
		defer Exec(t, root, "SET GLOBAL autocommit = 1", "COMMIT")
		Works(t, Open(t, s.At(s.Addr, "namespace=auto")))
		assert.Len(t, Cells(t, Open(t, s.At(s.Addr, "namespace=auto"))), 1, "the other session has committed it")
	})
	t.Run("read-only", func(t *testing.T) { testReadOnly(t, s, root) })
	t.Run("times made by hand", func(t *testing.T) { testTimes(t, s, root) })
	t.Run("durability", func(t *testing.T) { testMySQLDurability(t, s, root) })
	t.Run("round trips", func(t *testing.T) {
		testTrips(t, s, map[string]int{"first Swap": 3, "Swap": 1, "conflict": 2, "Read": 2, "List": 1, "Durability": 3}, "table=trips")
	})
}

// mysqlTable is that of a server.
func mysqlTable(s *servers.Server) SQL {
	q := SQL{Server: s, Home: "rig", Root: func(t testing.TB, database string) *sql.DB { return mysqlRoot(t, s, database) },
		Make:     "CREATE DATABASE USER_;CREATE USER USER_ IDENTIFIED BY '" + s.Password + "';GRANT CREATE, SELECT, INSERT, UPDATE ON USER_.* TO USER_",
		NoCreate: "REVOKE CREATE ON USER_.* FROM USER_",
		Foreign:  "GRANT CREATE, SELECT, INSERT, UPDATE ON ops.* TO USER_", Table: [2]string{"ops.select", "ops.`select`"}}
	q.Denied = map[string]string{
		strings.Replace(s.URL, "rig:s3", "rig:wr0ng", 1): "Access denied",
		q.At("ops", "missing"):                           "denied",
		q.At("who", "ops"):                               "Access denied",
		q.At("ops", "ops", "tls=true"):                   "TLS",
		q.At("ops", "ops", "no_such_variable=1"):         "no_such_variable",
	}
	const alter, kill = "ALTER TABLE tickflake_cells ", ";KILL USER USER_"
	const ours = "UPDATE tickflake_cells SET value = '1';" // which fits
	q.Refusals = map[string][4]string{
		"password": {"ALTER USER USER_ IDENTIFIED BY 'other'" + kill, "ALTER USER USER_ IDENTIFIED BY '" + s.Password + "'", "Access denied", "fix the URL"},
		"locked":   {"ALTER USER USER_ ACCOUNT LOCK" + kill, "ALTER USER USER_ ACCOUNT UNLOCK", "account is locked", "fix the URL"},
		"rights":   {"REVOKE ALL ON USER_.* FROM USER_" + kill, "GRANT ALL ON USER_.* TO USER_", "denied", "grant the rights"},
		"readonly": {"SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "read-only", "connect to the primary"},
		"columns":  {alter + "CHANGE version edition BIGINT", alter + "CHANGE edition version BIGINT", "version", "with other columns"},
		"types":    {ours + alter + "MODIFY value INT", alter + "MODIFY value VARCHAR(1024)", "", "with other columns"},
		"narrow":   {ours + alter + "MODIFY value VARCHAR(1)", alter + "MODIFY value VARCHAR(1024)", "too long", "with other columns"},
		"dropped":  {"DROP DATABASE USER_" + kill, "CREATE DATABASE USER_", "Unknown database", "the database does not exist"},
	}
	q.New = map[string]string{
		"own":          alter + "ADD COLUMN own int NOT NULL",
		"Out of range": alter + "MODIFY version SMALLINT NOT NULL",
		"too long":     alter + "MODIFY cell VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin",
	}
	for change, want := range map[string]string{
		"DROP PRIMARY KEY, ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE (namespace, cell, id), ADD UNIQUE (namespace, cell(7))": "no key of namespace and cell is unique",
		"MODIFY value TEXT, MODIFY updated_at DATETIME(6) DEFAULT NOW(6), DROP PRIMARY KEY, ADD UNIQUE (cell, namespace)":                   "",
		"MODIFY cell VARBINARY(200), MODIFY namespace VARCHAR(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin":                                "",
	} {
		q.Unfit = append(q.Unfit, [2]string{"ALTER TABLE OURS " + change, want})
	}
	return q
}

// mysqlGreeting is the first packet of a server that has TLS: a handshake of version 10.
func mysqlGreeting() []byte {
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
	_, err = conn.ExecContext(Within(t), "LOCK TABLES ops.tickflake_cells WRITE")
	require.NoError(t, err)
	return func() {
		_, err := conn.ExecContext(context.Background(), "UNLOCK TABLES")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

func testReadOnly(t *testing.T, s *servers.Server, root *sql.DB) {
	store := Open(t, s.At(s.Addr, "namespace=readonly"))
	cell := Cell(t, store, "node/0000001", "v")
	Exec(t, root, "SET GLOBAL read_only = 1")
	defer Exec(t, root, "SET GLOBAL read_only = 0")
	NotPrimary(t, store, Open(t, s.At(s.Addr, "table=missing")), cell)
}

// A Read in a table whose times have become unfit ends.
func testTimes(t *testing.T, s *servers.Server, root *sql.DB) {
	for i, change := range []string{ // coarse, or standing still
		"MODIFY updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", "MODIFY updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)", "MODIFY updated_at DATETIME(6) NULL",
	} {
		name := fmt.Sprint("times", i)
		store := Open(t, s.At(s.Addr, "table="+name))
		Swap(t, store, stores.Cell{Key: "node/0000001"}, "makes the table")
		Exec(t, root, "ALTER TABLE "+name+" "+change)
		Swap(t, store, stores.Cell{Key: "node/0000002"}, "")
		_, err := store.Read(Within(t), "node/0000002")
		assert.ErrorContains(t, err, "a write of its row changed nothing", change)
	}
}

func testMySQLDurability(t *testing.T, s *servers.Server, root *sql.DB) {
	forgets := func(want, option string) { Forgets(t, s.At(s.Addr, option), want) }
	risk := func(setting string) {
		found := Promises(t, Open(t, s.URL))
		assert.Empty(t, found.Forgets)
		require.Len(t, found.Risks, 1)
		assert.Contains(t, found.Risks[0], setting)
	}
	assert.Zero(t, Promises(t, Open(t, s.URL)))
	Exec(t, root, "CREATE TABLE loose LIKE tickflake_cells", "ALTER TABLE loose ENGINE=MyISAM")
	forgets("MyISAM", "table=loose")
	forgets("MyISAM", "table=ops.loose")
	// A server that makes every table with another engine.
	Exec(t, root, "SET GLOBAL enforce_storage_engine = MyISAM")
	_, err := Open(t, s.At(s.Addr, "table=fresh")).Swap(Within(t), "node/0000001", 0, nil)
	assert.ErrorContains(t, err, "making it failed")
	Exec(t, root, "SET GLOBAL enforce_storage_engine = NULL", "SET GLOBAL sync_binlog = 0")
	risk("sync_binlog is 0")
	Exec(t, root, "SET GLOBAL sync_binlog = 1", "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	risk("innodb_flush_log_at_trx_commit is 2")
	Exec(t, root, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	defer Exec(t, root, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	forgets("innodb_flush_log_at_trx_commit is 0", "namespace=any")
}
