package mysql_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores/mysql"
)

// The package doc has these bounds, and so has docs/bounds.md.
func TestConnectionsReachAPlateau(t *testing.T) {
	s := start(t, "--max-connections=1000")
	s.root.SetMaxOpenConns(2) // one counts, one locks
	s.root.SetMaxIdleConns(2)
	count := func(ctx context.Context) (n int, err error) {
		err = s.root.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE user IN ('ids', 'unauthenticated user')").Scan(&n)
		return n, err
	}
	servertest.Plateau{Server: s.Process, Addr: s.addr, Open: s.open, Count: count, AtRest: 1, AtMost: 5, // a closed one counts until the server has seen it
		Locks: map[string]func(t testing.TB) func(){
			"rows locked": func(t testing.TB) func() {
				tx, err := s.root.Begin()
				require.NoError(t, err)
				_, err = tx.Exec("SELECT * FROM ops.tickflake_cells FOR UPDATE")
				require.NoError(t, err)
				return func() { require.NoError(t, tx.Rollback()) }
			},
			"table locked": func(t testing.TB) func() {
				conn, err := s.root.Conn(within(t))
				require.NoError(t, err)
				_, err = conn.ExecContext(within(t), "LOCK TABLES ops.tickflake_cells WRITE")
				require.NoError(t, err)
				return func() {
					_, err := conn.ExecContext(context.Background(), "UNLOCK TABLES")
					require.NoError(t, err)
					require.NoError(t, conn.Close())
				}
			},
		},
	}.Run(t)
}

func TestLockTimeoutsOfURL(t *testing.T) {
	params, err := mysql.Params("mysql://h/ops")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"innodb_lock_wait_timeout": "1", "lock_wait_timeout": "1"}, params)
	params, err = mysql.Params("mysql://h/ops?lock_wait_timeout=7")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"innodb_lock_wait_timeout": "1", "lock_wait_timeout": "7"}, params)
}

// A call waits for a lock on the table, as ALTER TABLE has it, until its context ends.
func TestLockedTable(t *testing.T) {
	s := start(t)
	store := s.open(t, s.addr, "locked")
	version, err := store.Swap(within(t), "k", 0, nil)
	require.NoError(t, err)
	conn, err := s.root.Conn(within(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.ExecContext(within(t), "LOCK TABLES ops.tickflake_cells WRITE")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = store.Read(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	swapped := make(chan error)
	go func() {
		_, err := store.Swap(within(t), "k", version, nil)
		swapped <- err
	}()
	// The server has ended the statement once, and has it a second time.
	ids := make(map[int64]bool)
	require.Eventually(t, func() bool {
		var id int64
		err := s.root.QueryRow("SELECT query_id FROM information_schema.processlist WHERE user = 'ids' AND info LIKE 'UPDATE%'").Scan(&id)
		if err == nil {
			ids[id] = true
		}
		return len(ids) > 1
	}, 20*time.Second, 10*time.Millisecond)
	_, err = conn.ExecContext(within(t), "UNLOCK TABLES")
	require.NoError(t, err)
	require.NoError(t, <-swapped)
}
