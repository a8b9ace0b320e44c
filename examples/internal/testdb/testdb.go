// Package testdb runs a database server for one test. If the server is not installed, the
// test is skipped, as package servertest documents.
package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/internal/servertest"
)

const password = "s3cret"

// PostgreSQL starts a PostgreSQL and returns the URL of an empty database in it.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	port := servertest.Port(t)
	config, err := server.PostgreSQL(t.Context(), servertest.Dir(t, ""), port, password)
	servertest.Need(t, err)
	u := (&url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: local(port),
		Path: "postgres", RawQuery: "sslmode=disable"}).String()
	config.Ready = func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, u)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}
	servertest.Start(t, config)
	return u
}

// MariaDB starts a MariaDB and returns the DSN of an empty database in it.
func MariaDB(t testing.TB) string {
	t.Helper()
	port := servertest.Port(t)
	config, socket, err := server.MariaDB(t.Context(), servertest.Dir(t, ""), port)
	servertest.Need(t, err)
	root := mysql.NewConfig()
	root.Net, root.Addr, root.User, root.Logger = "unix", socket, "root", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(root)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	config.Ready = db.PingContext
	servertest.Start(t, config)
	for _, statement := range []string{"CREATE DATABASE shop",
		fmt.Sprintf("CREATE USER shop IDENTIFIED BY '%s'", password), "GRANT ALL ON shop.* TO shop"} {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
	user := mysql.NewConfig()
	user.Net, user.Addr, user.User, user.Passwd, user.DBName = "tcp", local(port), "shop", password, "shop"
	user.ParseTime = true
	return user.FormatDSN()
}

// Open is sql.Open until the test ends.
func Open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// IDs returns a generator with node number 0, for tests that run alone.
func IDs(t testing.TB, opts ...generator.Option) *generator.Generator {
	t.Helper()
	gen, err := generator.New(append([]generator.Option{generator.WithNode(0)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = gen.Close() })
	return gen
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
