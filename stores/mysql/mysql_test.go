package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/sequence/sequencetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/mysql"
	"github.com/tickflake/tickflake/stores/sqlstore"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestConformance(t *testing.T) {
	s := start(t)
	open := func(t testing.TB, namespace string) stores.Store { return s.open(t, s.addr, namespace) }
	storetest.TestStore(t, open)
	sequencetest.TestSequences(t, open)
}

// The suite again, with a pool of the caller's that is set up in another way, and
// a server that is lax.
func TestConformanceOfNew(t *testing.T) {
	s := start(t, "--sql-mode=", "--transaction-isolation=SERIALIZABLE", "--character-set-server=latin1", "--default-storage-engine=MyISAM")
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
		config := s.config()
		config.ClientFoundRows, config.InterpolateParams, config.ParseTime = true, false, true
		store, err := mysql.New(pool(t, config), namespace)
		require.NoError(t, err)
		require.NoError(t, store.Close(), "which leaves the caller's pool open")
		return store
	})
}

func TestFaults(t *testing.T) {
	s := start(t)
	storetest.TestServer(t, storetest.Server{Addr: s.addr, Open: s.open, Damage: s.damage, Kill: s.Kill, Start: s.Start})
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

func TestServer(t *testing.T) {
	s := start(t)
	t.Run("schema made on demand, by many at once", func(t *testing.T) {
		all := make([]*sqlstore.Store, 8)
		for i := range all {
			all[i] = open(t, s.url())
			cells, err := all[i].List(within(t), "", "\x7f", 1<<30)
			require.NoError(t, err)
			assert.Empty(t, cells)
			cell, err := all[i].Read(within(t), "node/0000005")
			require.NoError(t, err)
			assert.Equal(t, stores.Cell{Key: "node/0000005"}, cell)
			_, err = swap(within(t), all[i], stores.Cell{Key: "node/0000005", Version: 7}, nil)
			require.ErrorIs(t, err, stores.ErrConflict)
		}
		var tables int
		require.NoError(t, s.root.QueryRow("SELECT count(*) FROM information_schema.tables WHERE table_name = 'tickflake_cells'").Scan(&tables))
		assert.Zero(t, tables, "nothing but a write makes the table")
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
	t.Run("schema by a DBA", func(t *testing.T) {
		s.exec(t, "CREATE DATABASE dba", fmt.Sprintf("CREATE USER poor IDENTIFIED BY '%s'", password),
			"GRANT SELECT, INSERT, UPDATE ON dba.* TO poor")
		store := open(t, strings.Replace(strings.Replace(s.url(), "//ids", "//poor", 1), "/ops", "/dba", 1))
		_, err := swap(within(t), store, stores.Cell{Key: "node/0000001"}, []byte("v"))
		assert.Contains(t, err.Error(), "denied")
		assert.ErrorContains(t, err, strings.Join(strings.Fields(store.Schema()), " "))
		conn, err := s.root.Conn(within(t))
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		for _, statement := range []string{"USE dba", store.Schema(), store.Schema()} { // as printed
			_, err = conn.ExecContext(within(t), statement)
			require.NoError(t, err)
		}
		works(t, store)
	})
	t.Run("another name", func(t *testing.T) {
		works(t, open(t, s.url("table=ops.select")))
		var n int
		require.NoError(t, s.root.QueryRow("SELECT count(*) FROM ops.`select` WHERE updated_at <= now(6)").Scan(&n))
		assert.Equal(t, 1, n)
	})
	t.Run("socket", func(t *testing.T) {
		works(t, open(t, strings.Replace(s.url("namespace=socket", "socket="+s.socket), s.addr, "", 1)))
	})
	t.Run("names that differ in case", func(t *testing.T) {
		works(t, open(t, s.url("namespace=Fleet")))
		works(t, open(t, s.url("namespace=fleet")))
		works(t, open(t, s.url("namespace=FLEET")))
	})
	t.Run("autocommit off", func(t *testing.T) { testAutocommitOff(t, s) })
	t.Run("read-only", func(t *testing.T) { testReadOnly(t, s) })
	t.Run("tables made by hand", func(t *testing.T) { testTablesMadeByHand(t, s) })
	t.Run("durability", func(t *testing.T) { testDurability(t, s) })
	t.Run("round trips", func(t *testing.T) { testRoundTrips(t, s) })
	t.Run("password is not shown", func(t *testing.T) { testPasswordIsNotShown(t, s) })
}

// A session that never commits writes nothing, and says so.
func testAutocommitOff(t *testing.T, s *server) {
	good, bad := open(t, s.url("namespace=auto")), open(t, s.url("namespace=auto", "autocommit=0"))
	cell, err := swap(within(t), good, stores.Cell{Key: "node/0000001"}, []byte("v"))
	require.NoError(t, err)
	_, err = swap(within(t), bad, cell, []byte("w"))
	assert.ErrorIs(t, err, sqlstore.ErrAutocommit)
	assert.NotErrorIs(t, err, stores.ErrConflict)
	_, err = swap(within(t), bad, stores.Cell{Key: "node/0000002"}, []byte("w"))
	assert.ErrorIs(t, err, sqlstore.ErrAutocommit)
	_, err = bad.Read(within(t), "node/0000001")
	assert.ErrorIs(t, err, sqlstore.ErrAutocommit)
	cells, err := good.List(within(t), "", "\x7f", 1<<30)
	require.NoError(t, err)
	assert.Equal(t, []stores.Cell{cell}, cells)
	_, err = swap(within(t), good, cell, []byte("w"))
	require.NoError(t, err, "and holds no lock")
}

func testReadOnly(t *testing.T, s *server) {
	store := open(t, s.url("namespace=readonly"))
	cell, err := swap(within(t), store, stores.Cell{Key: "node/0000001"}, []byte("v"))
	require.NoError(t, err)
	s.exec(t, "SET GLOBAL read_only = 1")
	defer s.exec(t, "SET GLOBAL read_only = 0")
	_, err = store.Read(within(t), "node/0000001")
	assert.ErrorIs(t, err, sqlstore.ErrNotPrimary)
	_, err = open(t, s.url("table=missing")).Read(within(t), "node/0000001")
	assert.ErrorIs(t, err, sqlstore.ErrNotPrimary, "the table may not have come yet")
	_, err = swap(within(t), store, cell, nil)
	assert.ErrorContains(t, err, "read-only")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	_, err = swap(within(t), store, stores.Cell{Key: "node/0000001", Version: 5}, nil)
	assert.Error(t, err)
}

// A table that breaks a promise of a Store is refused when it is opened, and the statement of
// the error mends it. A Read ends nevertheless.
func testTablesMadeByHand(t *testing.T, s *server) {
	works(t, open(t, s.url("table=good")))
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
		s.exec(t, "CREATE TABLE ops."+table+" LIKE ops.good", "ALTER TABLE ops."+table+" "+test.change)
		if strings.Contains(test.want, "updated_at") {
			unasked := open(t, s.url("table="+table))
			_, err := swap(within(t), unasked, stores.Cell{Key: "node/0000001"}, nil)
			require.NoError(t, err)
			_, err = unasked.Read(within(t), "node/0000001")
			assert.ErrorContains(t, err, "a write of its row changed nothing", test.change)
		}
		store, err := stores.Open(within(t), s.url("forgetful=allow", "table=ops."+table))
		if test.want != "" {
			require.ErrorIs(t, err, stores.ErrRefused, test.change)
			require.ErrorContains(t, err, test.want)
			_, fix, _ := strings.Cut(err.Error(), ": ALTER TABLE `ops`.`"+table+"` ")
			s.exec(t, "ALTER TABLE ops."+table+" "+fix)
			store, err = stores.Open(within(t), s.url("table=ops."+table))
		}
		require.NoError(t, err, test.change)
		require.NoError(t, store.Close())
	}
}

func testDurability(t *testing.T, s *server) {
	promises, err := open(t, s.url()).Durability(within(t))
	require.NoError(t, err)
	assert.Zero(t, promises)
	s.exec(t, "CREATE TABLE ops.loose LIKE ops.tickflake_cells", "ALTER TABLE ops.loose ENGINE=MyISAM")
	for _, table := range []string{"loose", "ops.loose"} {
		_, err = stores.Open(within(t), s.url("table="+table))
		assert.ErrorIs(t, err, stores.ErrForgets)
		assert.ErrorContains(t, err, "MyISAM")
	}
	// A server that makes every table with another engine.
	s.exec(t, "SET GLOBAL enforce_storage_engine = MyISAM")
	_, err = stores.Open(within(t), s.url("table=fresh"))
	assert.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, "enforce_storage_engine is MyISAM")
	s.exec(t, "SET GLOBAL enforce_storage_engine = NULL")
	defer s.exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	s.exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	promises, err = open(t, s.url()).Durability(within(t))
	require.NoError(t, err)
	assert.Empty(t, promises.Forgets)
	require.Len(t, promises.Risks, 1)
	assert.Contains(t, promises.Risks[0], "innodb_flush_log_at_trx_commit is 2")
	s.exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	_, err = stores.Open(within(t), s.url())
	assert.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, "innodb_flush_log_at_trx_commit is 0")
	forgetful, err := stores.Open(within(t), s.url("forgetful=allow"))
	require.NoError(t, err)
	require.NoError(t, forgetful.Close())
}

func TestBinaryLog(t *testing.T) {
	s := start(t, "--log-bin=bin", "--sync-binlog=1", "--binlog-format=STATEMENT")
	testRoundTrips(t, s)
	s.exec(t, "SET GLOBAL sync_binlog = 0")
	promises, err := open(t, s.url()).Durability(within(t))
	require.NoError(t, err)
	require.Len(t, promises.Risks, 1)
	assert.Contains(t, promises.Risks[0], "sync_binlog is 0")
}

func testRoundTrips(t *testing.T, s *server) {
	for _, interpolate := range []bool{true, false} {
		db, n := s.counted(t, interpolate)
		store, err := mysql.New(db, fmt.Sprint("trips_", interpolate), sqlstore.WithTable(fmt.Sprint("trips_", interpolate)))
		require.NoError(t, err)
		cell, err := store.Read(within(t), "node/0000001")
		require.NoError(t, err)
		took := func(what string, want int64, f func() error) {
			before := n.Load()
			require.NoError(t, f())
			took := n.Load() - before
			t.Logf("interpolateParams=%v: %s: %d round trips", interpolate, what, took)
			if interpolate {
				assert.Equal(t, want, took)
			}
		}
		again := func() (err error) {
			cell, err = swap(within(t), store, cell, []byte("v"))
			return err
		}
		took("Swap that makes the table", 3, again)
		took("Swap", 1, again)
		took("Swap that conflicts", 2, func() error {
			_, err := swap(within(t), store, stores.Cell{Key: "node/0000001", Version: 1}, nil)
			require.ErrorIs(t, err, stores.ErrConflict)
			return nil
		})
		took("Swap that finds a cell", 2, func() error {
			_, err := swap(within(t), store, stores.Cell{Key: "node/0000001"}, nil)
			require.ErrorIs(t, err, stores.ErrConflict)
			return nil
		})
		took("Read", 2, func() error { _, err := store.Read(within(t), "node/0000001"); return err })
		took("List", 1, func() error { _, err := store.List(within(t), "", "\x7f", 1<<30); return err })
		took("Durability", 3, func() error { _, err := store.Durability(within(t)); return err })
	}
}

func testPasswordIsNotShown(t *testing.T, s *server) {
	for rawURL, want := range map[string]string{
		strings.Replace(s.url(), "s3cret", "wr0ng", 1):     "Access denied",
		strings.Replace(s.url(), "/ops", "/missing", 1):    "denied",
		strings.Replace(s.url(), "//ids", "//who", 1):      "Access denied",
		strings.Replace(s.url(), s.addr, "127.0.0.1:1", 1): "refused",
		s.url("tls=true"):           "TLS",
		s.url("no_such_variable=1"): "no_such_variable",
	} {
		_, err := open(t, rawURL).Read(within(t), "node/0000001")
		require.ErrorContains(t, err, want)
		text := fmt.Sprintf("%v %+v %q", err, err, err)
		for _, part := range []string{"s3cret", "wr0ng", "%3A%3F"} {
			assert.NotContains(t, text, part)
		}
		if strings.Contains(want, "denied") || strings.Contains(want, "variable") {
			_, err := stores.Open(within(t), rawURL)
			assert.ErrorIs(t, err, stores.ErrRefused, rawURL)
		}
	}
}

func TestOpenOfBadURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"postgres://u:s3cret@h/d":                        "begins with mysql://",
		"u:s3cret@tcp(h)/d":                              "begins with mysql://",
		"mysql://u:s3cret@tcp(h:1)/d":                    "",
		"mysql://u:s3cret@(h)/d":                         "host",
		"mysql://u:s3cret@h:x/d":                         "malformed",
		"mysql://u:s3/cret@h/d":                          "percent-encode",
		"mysql://u:1/s3cret@h/d":                         "percent-encode",
		"mysql://u:s3cret@h":                             "no database",
		"mysql://u:s3cret@h/":                            "no database",
		"mysql://u:s3cret@/d":                            "no host",
		"mysql:///d":                                     "no host",
		"mysql://u:s3cret@h/d?socket=/run/s":             "a host and a socket",
		"mysql://u:s3cret@h/d?tls=nonsense":              "withheld, since it may show a password; it is about: tls",
		"mysql://u:s3cret@h/d?timeout=nonsense":          "about: timeout",
		"mysql://u:s3cret@h/d?interpolateParams=10":      "about: interpolateParams",
		"mysql://u:s3cret@h/d?namespace=a.b":             "holds '.'",
		"mysql://u:s3cret@h/d?table=a.b.c":               "the parameter table cannot be used: table \"a.b.c\": want",
		"mysql://u:s3cret@h/d?table=":                    "the parameter table cannot be used: ",
		"mysql://u:s3cret@h/d?table=a&table=b":           "twice",
		"mysql://u:s3cret@h/d?loc=Europe/Nowhere":        "about: loc",
		"mysql://u:s3cret@h/d?collation=big5_chinese_ci": "about: collation",
		"mysql://u:s3cret@h/d?strict=true":               "the parameter strict",
		// In an unusual place.
		"mysql://h/d?tls=s3cret":              "about: tls",
		"mysql://h/d?tls=%22s3cret":           "about: tls",
		"mysql://h/d?timeout=s3cret":          "about: timeout",
		"mysql://h/d?timeout=%00s3cret":       "about: timeout",
		"mysql://h/d?readTimeout=s3cret":      "about: readTimeout",
		"mysql://h/d?writeTimeout=s3cret":     "about: writeTimeout",
		"mysql://h/d?timeTruncate=s3cret":     "about: timeTruncate",
		"mysql://h/d?loc=s3cret":              "about: loc",
		"mysql://h/d?loc=../s3cret":           "about: loc",
		"mysql://h/d?serverPubKey=s3cret":     "about: serverPubKey",
		"mysql://h/d?parseTime=s3cret":        "about: parseTime",
		"mysql://h/d?maxAllowedPacket=s3cret": "about: maxAllowedPacket",
		"mysql://h/d?s3cret=1&tls=s3cret":     "about: tls",
		"mysql://h/s3cret?tls=nope":           "about: tls",
		"mysql://s3cret@h/d?tls=nope":         "about: tls",
		"mysql://s3cret/d?tls=nope":           "about: tls",
		"mysql://h/d?socket=s3cret":           "a host and a socket",
	} {
		store, err := mysql.Open(t.Context(), rawURL)
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
	for _, rawURL := range []string{"mysql://h/d", "mysql://u@[::1]:3307/d?tls=true", "mysql://u:p@h/d?loc=Europe/Berlin&charset=utf8mb4,utf8"} {
		require.NotNil(t, open(t, rawURL), rawURL)
	}
	_, err := mysql.New(new(sql.DB), "a b")
	assert.ErrorContains(t, err, "namespace \"a b\"")
}

// swap is Swap from a cell to the next.
func swap(ctx context.Context, s stores.Store, old stores.Cell, value []byte) (stores.Cell, error) {
	version, err := s.Swap(ctx, old.Key, old.Version, value)
	if err != nil {
		return stores.Cell{}, err
	}
	return stores.Cell{Key: old.Key, Version: version, Value: value}, nil
}
