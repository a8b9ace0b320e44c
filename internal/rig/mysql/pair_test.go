package mysql

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig/enginetest"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/stores/storetest"
)

// startPair starts a primary, and a replica that is semi-synchronous or not. Clients reach
// the present primary by the front, an address that moves.
func startPair(t testing.TB, semi bool) *enginetest.Pair {
	t.Helper()
	// The time-out is a day, in milliseconds.
	settings := [2][]string{
		{"--server-id=1", "--log-bin", "--sync-binlog=1", "--rpl-semi-sync-master-timeout=86400000", "--rpl-semi-sync-master-wait-point=AFTER_SYNC"},
		{"--server-id=2", "--log-bin", "--sync-binlog=1", "--log-slave-updates", "--slave-net-timeout=5"},
	}
	if semi {
		settings[0] = append(settings[0], "--rpl-semi-sync-master-enabled=1")
		settings[1] = append(settings[1], "--rpl-semi-sync-slave-enabled=1")
	}
	both := servers.ForAll(t, servers.Wanted{Kind: servers.MariaDB, Settings: settings[0]}, servers.Wanted{Kind: servers.MariaDB, Settings: settings[1]})
	p := &enginetest.Pair{Primary: both[0], Standby: both[1], Front: storetest.NewProxy(t, both[0].Addr), Link: storetest.NewProxy(t, both[0].Addr)}
	primary, replica := rootOf(t, p.Primary), rootOf(t, p.Standby)
	exec(t, primary, "SET GLOBAL rpl_semi_sync_master_enabled = 0", // until there is a replica
		"CREATE DATABASE ops", fmt.Sprintf("CREATE USER ids IDENTIFIED BY '%s'", p.Primary.Password),
		"GRANT CREATE, SELECT, INSERT, UPDATE ON ops.* TO ids",
		fmt.Sprintf("CREATE USER replica IDENTIFIED BY '%s'", p.Primary.Password), "GRANT REPLICATION SLAVE ON *.* TO replica")
	host, port, _ := strings.Cut(p.Link.Addr(), ":")
	exec(t, replica, fmt.Sprintf(`CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = 'replica',
MASTER_PASSWORD = '%s', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1`, host, port, p.Primary.Password), "SET GLOBAL read_only = ON", "START SLAVE")
	if semi {
		exec(t, primary, "SET GLOBAL rpl_semi_sync_master_enabled = 1")
	}
	require.Eventually(t, func() bool {
		clients := "1"
		if semi {
			clients = status(t, primary, "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'", "Value")
		}
		return clients == "1" && status(t, replica, "SELECT @@gtid_slave_pos AS pos", "pos") == status(t, primary, "SELECT @@gtid_binlog_pos AS pos", "pos")
	}, time.Minute, 20*time.Millisecond, "the replica does not follow")

	for _, s := range both {
		s.URL = at(s, "ids", "ops")
	}
	p.URL = p.Primary.At(p.Front.Addr(), "namespace=fleet")
	p.Promote = func(t testing.TB) {
		exec(t, replica, "STOP SLAVE IO_THREAD")
		require.Eventually(t, func() bool {
			return status(t, replica, "SHOW SLAVE STATUS", "Gtid_IO_Pos") == status(t, replica, "SELECT @@gtid_slave_pos AS pos", "pos")
		}, time.Minute, 20*time.Millisecond, "the replica does not apply its relay log")
		exec(t, replica, "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = OFF")
		lead(p, p.Standby)
		p.Front.Resume()
	}
	p.Return = func(testing.TB) { lead(p, p.Primary) }
	p.Fence = func(testing.TB) { lead(p, p.Standby) }
	p.EndWaiting = func(t testing.TB) { killWaiting(t, primary) }
	return p
}

// lead makes the front lead to a server.
func lead(p *enginetest.Pair, to *servers.Server) {
	p.Front.To(to.Addr)
	p.Front.Cut()
}

// status returns a column of the one row of a query.
func status(t testing.TB, db *sql.DB, query, column string) string {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(t, err)
	require.True(t, rows.Next(), query)
	values := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	require.NoError(t, rows.Scan(into...))
	for i, name := range names {
		if name == column {
			return values[i].String
		}
	}
	t.Fatalf("%s: no column %s", query, column)
	return ""
}

// killWaiting kills the statements of the store until there are none, as an administrator may
// who sees that they hang.
func killWaiting(t testing.TB, root *sql.DB) {
	t.Helper()
	const waiting = "SELECT COALESCE(MIN(id), 0) AS id FROM information_schema.processlist WHERE user = 'ids' AND command = 'Query'"
	killed := 0
	require.Eventually(t, func() bool {
		id := status(t, root, waiting, "id")
		if id != "0" {
			killed++
			_, _ = root.Exec("KILL QUERY " + id) // it may have ended
		}
		return id == "0"
	}, time.Minute, 20*time.Millisecond, "statements do not end")
	require.NotZero(t, killed, "nothing waited")
}

func TestFailover(t *testing.T) {
	t.Parallel()
	enginetest.TestPair(t, startPair)
}
