package migrate_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
)

func postgreSQL(t *testing.T) *sql.DB { return exampletest.Open(t, "pgx", exampletest.PostgreSQL(t)) }

func mariaDB(t *testing.T) *sql.DB { return exampletest.Open(t, "mysql", exampletest.MariaDB(t)) }

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
