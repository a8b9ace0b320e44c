package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	servers "github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/postgres"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// password is hard to hide, and hard to put into a URL.
const password = "s3cret/@:?#&% x"

// server is a private PostgreSQL, as a distribution sets it up but for the port.
type server struct {
	*servertest.Process
	addr string // host:port
	data string // the directory
}

func start(t testing.TB, settings ...string) *server {
	t.Helper()
	dir, port := servertest.Dir(t, ""), servertest.Port(t)
	config, err := servers.PostgreSQL(t.Context(), dir, port, password)
	servertest.Need(t, err)
	for _, setting := range settings {
		config.Args = append(config.Args, "-c", setting)
	}
	s := &server{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), data: filepath.Join(dir, "data")}
	config.Ready = func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.url("postgres", "postgres"))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}
	s.Process = servertest.Start(t, config)
	return s
}

func (s *server) url(user, database string, params ...string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: s.addr, Path: database,
		RawQuery: strings.Join(append(params, "sslmode=disable"), "&")}
	return u.String()
}

// admin returns a pool of the superuser's.
func (s *server) admin(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", s.url("postgres", "postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (s *server) exec(t testing.TB, statements ...string) {
	t.Helper()
	db := s.admin(t)
	for _, statement := range statements {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
}

// database makes one with a user that owns nothing in it, and may do nothing but connect.
func (s *server) database(t testing.TB, name string) *sql.DB {
	t.Helper()
	s.exec(t, "CREATE DATABASE "+name, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, password))
	db, err := sql.Open("pgx", s.url("postgres", name))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Exec("REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO " + name)
	require.NoError(t, err)
	return db
}

func open(t testing.TB, rawURL string) *sqlstore.Store {
	t.Helper()
	store, err := postgres.Open(context.Background(), rawURL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func (s *server) open(t testing.TB, addr, namespace string) stores.Store {
	other := *s
	other.addr = addr
	return open(t, other.url("postgres", "postgres", "namespace="+namespace))
}

func (s *server) damage(t testing.TB, namespace, key, text string) {
	_, err := s.admin(t).Exec(`UPDATE tickflake_cells SET version = CASE WHEN $1::text LIKE '5 %' THEN 5 ELSE -length($1) END, value = substr($1, 3)
WHERE namespace = $2 AND cell = $3`, text, namespace, key)
	require.NoError(t, err)
}

// counted returns a pool of one connection, set up as Open does it, or as pgx
// does by itself, and the count of its round trips.
func (s *server) counted(t testing.TB, mode pgx.QueryExecMode) (*sql.DB, *atomic.Int64) {
	t.Helper()
	config, err := pgx.ParseConfig(s.url("postgres", "postgres"))
	require.NoError(t, err)
	config.DefaultQueryExecMode = mode
	dial, n := servertest.Trips()
	config.DialFunc = dial
	never := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })
	db := stdlib.OpenDB(*config, never)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db, n
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
