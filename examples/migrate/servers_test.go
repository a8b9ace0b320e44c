package migrate_test

import (
	"context"
	"database/sql"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/internal/servertest"
)

// postgreSQL starts a PostgreSQL, which ends with the test, and opens a database in it.
func postgreSQL(t *testing.T) *sql.DB {
	t.Helper()
	const password = "s3cret"
	port := servertest.Port(t)
	config, err := server.PostgreSQL(t.Context(), servertest.Dir(t, ""), port, password)
	servertest.Need(t, err)
	dsn := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "postgres", RawQuery: "sslmode=disable"}
	config.Ready = func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, dsn.String())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}
	servertest.Start(t, config)
	db, err := sql.Open("pgx", dsn.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// mariaDB starts a MariaDB, which ends with the test, and opens a database in it.
func mariaDB(t *testing.T) *sql.DB {
	t.Helper()
	config, socket, err := server.MariaDB(t.Context(), servertest.Dir(t, ""), servertest.Port(t))
	servertest.Need(t, err)
	settings := mysql.NewConfig()
	settings.Net, settings.Addr, settings.User, settings.Logger = "unix", socket, "root", &mysql.NopLogger{}
	admin := connect(t, settings)
	config.Ready = admin.PingContext
	servertest.Start(t, config)
	_, err = admin.Exec("CREATE DATABASE shop")
	require.NoError(t, err)
	settings.DBName = "shop"
	return connect(t, settings)
}

func connect(t *testing.T, settings *mysql.Config) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(settings.Clone())
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// execute runs the statements of a file in the folder sql.
func execute(t *testing.T, db *sql.DB, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "sql", file))
	require.NoError(t, err)
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if strings.TrimSpace(statement) != "" {
			_, err := db.Exec(statement)
			require.NoError(t, err, statement)
		}
	}
}
