package engines

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores/storetest"
)

// startMySQLPair starts a primary, and a replica that is semi-synchronous or not. Clients reach
// the present primary by the front, an address that moves.
func startMySQLPair(t testing.TB, semi bool) *Pair {
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
	p := &Pair{Primary: both[0], Standby: both[1], Front: storetest.NewProxy(t, both[0].Addr), Link: storetest.NewProxy(t, both[0].Addr)}
	q := mysqlTable(p.Primary)
	Exec(t, q.Root(t, q.Home), "SET GLOBAL rpl_semi_sync_master_enabled = 0") // until there is a replica
	primary, replica := q.Database(t, "ops"), mysqlRoot(t, p.Standby, "rig")
	Exec(t, primary, "CREATE USER replica IDENTIFIED BY '"+p.Primary.Password+"'", "GRANT REPLICATION SLAVE ON *.* TO replica")
	host, port, _ := strings.Cut(p.Link.Addr(), ":")
	Exec(t, replica, fmt.Sprintf(`CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = 'replica',
MASTER_PASSWORD = '%s', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1`, host, port, p.Primary.Password), "SET GLOBAL read_only = ON", "START SLAVE")
	if semi {
		Exec(t, primary, "SET GLOBAL rpl_semi_sync_master_enabled = 1")
	}
	require.Eventually(t, func() bool {
		clients := "1"
		if semi {
			clients = Value(t, primary, "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Rpl_semi_sync_master_clients'")
		}
		return clients == "1" && Value(t, replica, "SELECT @@gtid_slave_pos") == Value(t, primary, "SELECT @@gtid_binlog_pos")
	}, time.Minute, 20*time.Millisecond, "the replica does not follow")

	for _, s := range both {
		s.URL = mysqlTable(s).At("ops", "ops")
	}
	p.URL = p.Primary.At(p.Front.Addr(), "namespace=fleet")
	p.Promote = func(t testing.TB) {
		Exec(t, replica, "STOP SLAVE IO_THREAD")
		require.Eventually(t, func() bool {
			return Value(t, replica, "SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Slave has read all relay log%'") == "1"
		}, time.Minute, 20*time.Millisecond, "the replica does not apply its relay log")
		Exec(t, replica, "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = OFF")
		lead(p, p.Standby)
		p.Front.Resume()
	}
	p.Return = func(testing.TB) { lead(p, p.Primary) }
	p.Fence = func(testing.TB) { lead(p, p.Standby) }
	p.EndWaiting = func(t testing.TB) { killWaiting(t, primary) }
	return p
}

// lead makes the front lead to a server.
func lead(p *Pair, to *servers.Server) {
	p.Front.To(to.Addr)
	p.Front.Cut()
}

// killWaiting kills the statements of the store until there are none, as an administrator may
// who sees that they hang.
func killWaiting(t testing.TB, root *sql.DB) {
	t.Helper()
	const waiting = "SELECT COALESCE(MIN(id), 0) FROM information_schema.processlist WHERE user = 'ops' AND command = 'Query'"
	killed := 0
	require.Eventually(t, func() bool {
		id := Value(t, root, waiting)
		if id != "0" {
			killed++
			_, _ = root.Exec("KILL QUERY " + id) // it may have ended
		}
		return id == "0"
	}, time.Minute, 20*time.Millisecond, "statements do not end")
	require.NotZero(t, killed, "nothing waited")
}

func TestMySQLFailover(t *testing.T) {
	t.Parallel()
	testPair(t, startMySQLPair)
}

// What is said of each setting while a replica follows.
func TestMySQLTopologies(t *testing.T) {
	t.Parallel()
	p := startMySQLPair(t, true)
	primary, replica := mysqlRoot(t, p.Primary, "ops"), mysqlRoot(t, p.Standby, "rig")
	store := Open(t, p.Primary.URL) // whose user has no right to look at others
	const semi = "rpl_semi_sync_master_"
	for _, row := range [][3]string{ // a setting, its value, the risk
		{semi + "timeout", "86400000", ""},
		{semi + "timeout", "10000", "timeout is 10000"},
		{semi + "wait_point", "'AFTER_COMMIT'", "AFTER_COMMIT"},
		{semi + "wait_no_slave", "OFF", "wait_no_slave is OFF"},
		{semi + "enabled", "OFF", "1 replicas, or other readers of its binary log, and waits for none"},
	} {
		t.Run(row[0], func(t *testing.T) {
			was := Value(t, primary, "SELECT @@global."+row[0])
			if row[0] == semi+"wait_point" {
				was = "'" + was + "'"
			}
			Exec(t, primary, "SET GLOBAL "+row[0]+" = "+row[1])
			Judged(t, store, row[2])
			Exec(t, primary, "SET GLOBAL "+row[0]+" = "+was)
		})
	}
	at := p.Standby.At(p.Standby.Addr, "namespace=replica")
	Judged(t, Open(t, at), "read-only")
	Exec(t, replica, "SET GLOBAL read_only = OFF")
	Judged(t, Open(t, at), "follows another")

	// Once a write has waited for too long, none waits.
	Exec(t, replica, "STOP SLAVE")
	Exec(t, primary, "SET GLOBAL "+semi+"timeout = 1")
	Cell(t, store, "node/0000001", "v")
	Exec(t, primary, "SET GLOBAL "+semi+"timeout = 86400000")
	Judged(t, store, semi+"status is OFF")
}
