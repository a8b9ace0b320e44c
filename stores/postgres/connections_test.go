package postgres_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/internal/servertest"
)

// The package doc has these bounds, and so has docs/bounds.md.
func TestConnectionsReachAPlateau(t *testing.T) {
	s := start(t, "max_connections=500")
	servertest.Plateau{Server: s.Process, Addr: s.addr, Open: s.open, AtRest: 1, AtMost: 9, // a closed one counts until the server has seen it
		Locks: map[string]func(t testing.TB) func(){
			"rows locked": func(t testing.TB) func() {
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
			// As on a disk that hangs.
			"writes cannot be cancelled": func(t testing.TB) func() {
				db := s.admin(t)
				conn, err := db.Conn(context.Background())
				require.NoError(t, err)
				run := func(statements ...string) {
					for _, statement := range statements {
						_, err := conn.ExecContext(context.Background(), statement)
						require.NoError(t, err, statement)
					}
				}
				run(`SELECT pg_advisory_lock(1)`,
					`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  LOOP
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW;
    EXCEPTION WHEN query_canceled THEN -- it waits again
    END;
  END LOOP; END $$`,
					`CREATE TRIGGER hang BEFORE UPDATE ON tickflake_cells FOR EACH ROW EXECUTE FUNCTION hang()`)
				return func() {
					run(`SELECT pg_advisory_unlock(1)`, `DROP FUNCTION hang CASCADE`)
					require.NoError(t, conn.Close())
					require.NoError(t, db.Close())
				}
			},
		},
	}.Run(t)
}
