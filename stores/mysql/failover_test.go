package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// pair is a primary and its replica. Clients reach the present primary by front, an address
// that moves, and the replica reaches the first primary by link.
type pair struct {
	primary, replica *server
	front, link      *storetest.Proxy
}

// startPair starts a primary, and a replica that is semi-synchronous or not.
func startPair(t testing.TB, semi bool) *pair {
	t.Helper()
	// The time-out is a day, in milliseconds.
	primary := []string{"--server-id=1", "--log-bin", "--sync-binlog=1", "--rpl-semi-sync-master-timeout=86400000",
		"--rpl-semi-sync-master-wait-point=AFTER_SYNC"}
	replica := []string{"--server-id=2", "--log-bin", "--sync-binlog=1", "--log-slave-updates", "--read-only", "--slave-net-timeout=5"}
	if semi {
		primary, replica = append(primary, "--rpl-semi-sync-master-enabled=1"), append(replica, "--rpl-semi-sync-slave-enabled=1")
	}
	p := &pair{primary: launch(t, primary...)}
	p.primary.exec(t, "SET GLOBAL rpl_semi_sync_master_enabled = 0") // until there is a replica
	p.primary.exec(t, users...)
	p.primary.exec(t, fmt.Sprintf("CREATE USER replica IDENTIFIED BY '%s'", password), "GRANT REPLICATION SLAVE ON *.* TO replica")
	p.front, p.link = storetest.NewProxy(t, p.primary.addr), storetest.NewProxy(t, p.primary.addr)
	p.replica = launch(t, replica...)
	if semi {
		p.primary.exec(t, "SET GLOBAL rpl_semi_sync_master_enabled = 1")
	}
	host, port, err := net.SplitHostPort(p.link.Addr())
	require.NoError(t, err)
	p.replica.exec(t, fmt.Sprintf(`CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = 'replica',
MASTER_PASSWORD = '%s', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1`, host, port, password), "START SLAVE")
	require.Eventually(t, func() bool {
		clients := "1"
		if semi {
			clients = p.primary.status(t, "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'", "Value")
		}
		return clients == "1" && p.replica.status(t, "SELECT @@gtid_slave_pos AS pos", "pos") == p.primary.status(t, "SELECT @@gtid_binlog_pos AS pos", "pos")
	}, time.Minute, 20*time.Millisecond, "the replica does not follow")
	return p
}

// status returns a column of the one row of a query.
func (s *server) status(t testing.TB, query, column string) string {
	t.Helper()
	rows, err := s.root.Query(query)
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

// isolate cuts the replica off.
func (p *pair) isolate() {
	p.link.Refuse()
	p.link.Cut()
}

// promote makes the replica the primary, when it has applied all that it has received.
func (p *pair) promote(t testing.TB) {
	t.Helper()
	p.replica.exec(t, "STOP SLAVE IO_THREAD")
	require.Eventually(t, func() bool {
		return p.replica.status(t, "SHOW SLAVE STATUS", "Gtid_IO_Pos") == p.replica.status(t, "SELECT @@gtid_slave_pos AS pos", "pos")
	}, time.Minute, 20*time.Millisecond, "the replica does not apply its relay log")
	p.replica.exec(t, "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = OFF")
	p.front.To(p.replica.addr)
	p.front.Cut()
	p.front.Resume()
}

// fleet starts processes on the pair.
func (p *pair) fleet(t testing.TB) *servertest.Fleet {
	t.Helper()
	front := *p.primary
	front.addr = p.front.Addr()
	return servertest.StartFleet(t, servertest.FleetConfig{Processes: 3, Window: 1500 * time.Millisecond, Timeout: time.Second,
		Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, front.url("namespace=fleet")) }})
}

// A write that the replica lacks is not acknowledged, and no Read shows it: when the client
// that wrote it has given up, when its statement was killed, when the primary was killed
// and started again, and when the replica has taken over and the primary still runs.
func TestReadWaitsForReplica(t *testing.T) {
	t.Parallel()
	p := startPair(t, true)
	old := p.primary.open(t, p.primary.addr, "readwaits")
	const key = "node/0000001"
	version, err := old.Swap(within(t), key, 0, []byte("safe"))
	require.NoError(t, err)

	p.isolate()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = old.Swap(ctx, key, version, []byte("lost"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	noAnswer := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		cell, err := old.Read(ctx, key)
		require.Error(t, err, "Read shows %q, and the replica lacks it", cell.Value)
	}
	noAnswer()
	p.primary.killWaiting(t)
	noAnswer()
	require.NoError(t, p.primary.Kill())
	require.NoError(t, p.primary.Process.Start())
	noAnswer()

	p.promote(t)
	taken := p.replica.open(t, p.replica.addr, "readwaits")
	cell, err := taken.Read(within(t), key)
	require.NoError(t, err)
	require.Equal(t, "safe", string(cell.Value))
	_, err = taken.Swap(within(t), key, cell.Version, []byte("next"))
	require.NoError(t, err)
	noAnswer()
}

// killWaiting kills the statements of the store until there are none, as an administrator may
// who sees that they hang.
func (s *server) killWaiting(t testing.TB) {
	t.Helper()
	const waiting = "SELECT COALESCE(MIN(id), 0) AS id FROM information_schema.processlist WHERE user = 'ids' AND command = 'Query'"
	killed := 0
	require.Eventually(t, func() bool {
		id := s.status(t, waiting, "id")
		if id != "0" {
			killed++
			_, _ = s.root.Exec("KILL QUERY " + id) // it may have ended
		}
		return id == "0"
	}, time.Minute, 20*time.Millisecond, "statements do not end")
	require.NotZero(t, killed, "nothing waited")
}

// recoveryLimit is far above what a busy machine needs.
const recoveryLimit = 90 * time.Second

// A semi-synchronous replica takes over from a primary that was killed. The clocks are
// stepped and a process crashes meanwhile.
func TestFailoverToSemiSynchronousReplica(t *testing.T) {
	t.Parallel()
	p := startPair(t, true)
	fleet := p.fleet(t)
	fleet.Step(-time.Minute, 0)
	require.NoError(t, p.primary.Kill())
	fleet.Step(time.Minute, 1)
	fleet.Crash(2)
	p.promote(t)
	t.Logf("recovered %v after the promotion", fleet.WaitRecovered(t, 10, recoveryLimit))
	fleet.Close(t).Check(t)
}

// The primary cannot be reached and is replaced. Then it comes back without fencing, and the
// address leads to it again. It answers nothing, because it waits for its replica.
func TestOldPrimaryComesBack(t *testing.T) {
	t.Parallel()
	p := startPair(t, true)
	fleet := p.fleet(t)
	for _, proxy := range []*storetest.Proxy{p.front, p.link} {
		proxy.Hold(storetest.ToServer)
		proxy.Hold(storetest.ToClient)
	}
	fleet.Step(-time.Minute, 0)
	p.promote(t)
	t.Logf("recovered %v after the promotion", fleet.WaitRecovered(t, 10, recoveryLimit))

	p.front.To(p.primary.addr)
	p.front.Cut()
	fleet.Step(time.Minute, 0)
	fleet.Crash(0)
	fleet.Crash(1)
	time.Sleep(2 * time.Second) // the fault: longer than a window
	p.front.To(p.replica.addr)
	p.front.Cut()
	t.Logf("recovered %v after the fencing", fleet.WaitRecovered(t, 10, recoveryLimit))
	fleet.Close(t).Check(t)
}

// A replica that lacks the last writes takes over. The processes notice it, report it, and
// continue.
func TestFailoverToAsynchronousReplica(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	fleet := p.fleet(t)
	p.isolate()
	fleet.WaitRecovered(t, 1, recoveryLimit)
	require.NoError(t, p.primary.Kill())
	fleet.Step(-time.Minute, 0)
	p.promote(t)
	t.Logf("recovered %v after the promotion", fleet.WaitRecovered(t, 10, recoveryLimit))
	report := fleet.Close(t)
	report.CheckCalls(t)
	require.NotZero(t, report.Stats.WentBack, "the processes have not noticed")
}
