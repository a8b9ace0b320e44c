package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/internal/servertest"
)

// The package's doc has these bounds.
func TestConnectionsReachAPlateau(t *testing.T) {
	s := start(t, "max_connections=500")
	servertest.Plateau{Server: s.Process, Addr: s.addr, Open: s.open, AtRest: 1, AtMost: 9, // a closed one counts until the server has seen it
		Lock: func(t testing.TB) func() {
			db := s.admin(t)
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = tx.Exec("SELECT * FROM tickflake_cells FOR UPDATE")
			require.NoError(t, err)
			return func() {
				require.NoError(t, tx.Rollback())
				require.NoError(t, db.Close())
			}
		},
	}.Run(t)
}
