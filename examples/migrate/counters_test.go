package migrate_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
)

// run runs a part of a file of statements, and returns the last number that it shows. A part begins with its name in a
// comment, and ends with an empty line.
func run(ctx context.Context, conn *sql.Conn, text, part string) (shown int64, err error) {
	_, statements, found := strings.Cut(text, "-- "+part+"\n")
	if !found {
		return 0, fmt.Errorf("no part is called %s", part)
	}
	statements, _, _ = strings.Cut(statements, "\n\n")
	for statement := range strings.SplitSeq(strings.TrimSpace(statements), ";\n") {
		if strings.HasPrefix(statement, "SELECT") || strings.Contains(statement, "RETURNING") {
			err = conn.QueryRowContext(ctx, statement).Scan(&shown)
		} else {
			_, err = conn.ExecContext(ctx, statement)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return shown, nil
}

// Each statement of the guides runs, in the order of their steps. An old writer continues above a range that was taken, and
// the largest number is not below its. After the last step it fails, as ! says, until a step leads back.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		file  string
		kind  servers.Kind
		steps string // gen is the insert of a writer that gives an ID of a generator
	}{
		{"postgres", servers.PostgreSQL, "before old widen !gen open gen done !old back old"},
		{"serial", servers.PostgreSQL, "before old widen gen done !old back old"},
		{"mysql", servers.MariaDB, "before old widen gen done !old back old"},
		{"postgres", servers.PostgreSQL, "before old take old largest done !old"},
		{"mysql", servers.MariaDB, "before old take new old largest widen done !old"},
		{"leaf", servers.MariaDB, "before old take old largest end !old"},
		{"tinyid", servers.MariaDB, "before read claim take read claim largest end read !claim"},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			gen := exampletest.IDs(t)
			conn, err := exampletest.Open(t, servers.For(t, c.kind), "").Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			text, err := os.ReadFile("sql/" + c.file + ".sql")
			require.NoError(t, err)
			var last, taken int64
			for step := range strings.FieldsSeq(c.steps) {
				part, fails := strings.CutPrefix(step, "!")
				var shown int64
				if part == "gen" {
					id, nextErr := gen.Next()
					require.NoError(t, nextErr)
					_, err = conn.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO orders (id, item) VALUES (%d, 'pen')", id))
				} else {
					shown, err = run(t.Context(), conn, string(text), part)
				}
				require.Equal(t, fails, err != nil, "%s: %v", step, err)
				switch {
				case part == "take":
					taken = 1_000_000
				case (part == "old" || part == "claim") && !fails && last > 0:
					assert.Greater(t, shown, last+max(0, taken-1), step)
				case part == "largest":
					assert.GreaterOrEqual(t, shown, last, "a counter that the guide reads too low")
				}
				if part == "old" || part == "claim" {
					last = shown
				}
			}
		})
	}
}
