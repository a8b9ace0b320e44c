package mysql_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/internal/servertest"
)

// The package's doc has these bounds.
func TestConnectionsReachAPlateau(t *testing.T) {
	s := start(t, "--max-connections=1000")
	s.root.SetMaxOpenConns(2) // one counts, one locks
	s.root.SetMaxIdleConns(2)
	count := func(ctx context.Context) (n int, err error) {
		err = s.root.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE user IN ('ids', 'unauthenticated user')").Scan(&n)
		return n, err
	}
	servertest.Plateau{Server: s.Process, Addr: s.addr, Open: s.open, Count: count, AtRest: 1, AtMost: 5, // a closed one counts until the server has seen it
		Lock: func(t testing.TB) func() {
			tx, err := s.root.Begin()
			require.NoError(t, err)
			_, err = tx.Exec("SELECT * FROM ops.tickflake_cells FOR UPDATE")
			require.NoError(t, err)
			return func() { require.NoError(t, tx.Rollback()) }
		},
	}.Run(t)
}
