package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	servers "github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/mysql"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// password is hard to hide, and hard to put into a URL.
const password = "s3cret/@:?#&% x"

// server is a private MariaDB.
type server struct {
	*servertest.Process
	addr   string // host:port
	socket string
	root   *sql.DB // of the superuser's
}

func start(t testing.TB, settings ...string) *server {
	t.Helper()
	s := launch(t, settings...)
	s.exec(t, users...)
	return s
}

// users makes the database and its user.
var users = []string{"CREATE DATABASE ops", fmt.Sprintf("CREATE USER ids IDENTIFIED BY '%s'", password),
	"GRANT CREATE, SELECT, INSERT, UPDATE ON ops.* TO ids"}

// launch starts a server without a database.
func launch(t testing.TB, settings ...string) *server {
	t.Helper()
	dir, port := servertest.Dir(t, ""), servertest.Port(t)
	config, socket, err := servers.MariaDB(t.Context(), dir, port)
	servertest.Need(t, err)
	s := &server{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), socket: socket}

	root := driver.NewConfig()
	root.Net, root.Addr, root.User, root.Logger = "unix", s.socket, "root", &driver.NopLogger{}
	connector, err := driver.NewConnector(root)
	require.NoError(t, err)
	s.root = sql.OpenDB(connector)
	t.Cleanup(func() { _ = s.root.Close() })

	config.Args = append(config.Args, settings...)
	config.Ready = s.root.PingContext
	s.Process = servertest.Start(t, config)
	return s
}

func (s *server) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := s.root.Exec(statement)
		require.NoError(t, err, statement)
	}
}

func (s *server) url(params ...string) string {
	u := url.URL{Scheme: "mysql", User: url.UserPassword("ids", password), Host: s.addr, Path: "/ops",
		RawQuery: strings.Join(params, "&")}
	return u.String()
}

func open(t testing.TB, rawURL string) *sqlstore.Store {
	t.Helper()
	store, err := mysql.Open(context.Background(), rawURL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func (s *server) open(t testing.TB, addr, namespace string) stores.Store {
	other := *s
	other.addr = addr
	return open(t, other.url("namespace="+namespace))
}

func (s *server) damage(t testing.TB, namespace, key, text string) {
	_, err := s.root.Exec(`UPDATE ops.tickflake_cells SET version = IF(? LIKE '5 %', 5, -LENGTH(?)), value = SUBSTR(?, 3)
WHERE namespace = ? AND cell = ?`, text, text, text, namespace, key)
	require.NoError(t, err)
}

// config returns a driver's configuration as a caller of New has it.
func (s *server) config() *driver.Config {
	config := driver.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", s.addr, "ids", password, "ops"
	return config
}

func pool(t testing.TB, config *driver.Config) *sql.DB {
	t.Helper()
	connector, err := driver.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// counted returns a pool of one connection, and the count of its round trips.
func (s *server) counted(t testing.TB, interpolate bool) (*sql.DB, *atomic.Int64) {
	t.Helper()
	config := s.config()
	config.InterpolateParams = interpolate
	dial, n := servertest.Trips()
	config.DialFunc = dial
	db := pool(t, config)
	db.SetMaxOpenConns(1)
	return db, n
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
