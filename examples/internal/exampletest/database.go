// Package exampletest has the databases and generators that the tests of examples/databases, migrate
// and sequences share.
package exampletest

import (
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/servers"
)

// Open opens the database of a PostgreSQL or a MariaDB, with parameters of its driver, until the test ends.
func Open(t testing.TB, server *servers.Server, parameters string) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", server.URL
	if server.Kind == servers.MariaDB {
		driver, dsn = "mysql", server.DSN()
	}
	db, err := sql.Open(driver, dsn+parameters)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Schema creates the table of examples/databases.
func Schema(t testing.TB, db *sql.DB) {
	t.Helper()
	text, err := os.ReadFile("schema.sql")
	require.NoError(t, err)
	_, err = db.Exec(string(text))
	require.NoError(t, err)
}

// IDs returns a generator with node number 0, for tests that run alone.
func IDs(t testing.TB) *generator.Generator {
	t.Helper()
	gen, err := generator.New(generator.WithNode(0))
	require.NoError(t, err)
	t.Cleanup(func() { _ = gen.Close() })
	return gen
}

// Day is the day that tests of time ranges ask for.
var Day = time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
