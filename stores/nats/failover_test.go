//go:build unix

package nats

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
)

// patience is how long an election and the recovery of a fleet may take on a busy machine.
const patience = 2 * time.Minute

// fleetOn runs a fleet on a cluster.
func fleetOn(t *testing.T, addrs []string) *servertest.Fleet {
	rawURL := "nats://" + strings.Join(addrs, ",") + "?namespace=failover"
	return servertest.StartFleet(t, servertest.FleetConfig{
		Processes: 3, Window: 2 * time.Second,
		Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, rawURL) },
	})
}

// leader returns the server that leads the fleet's bucket. All servers must run.
func leader(t *testing.T, processes []*servertest.Process, addrs []string) *servertest.Process {
	t.Helper()
	client := newClient(t, addrs[0])
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(50 * time.Millisecond) {
		stream, err := client.Stream(limited(t), "KV_failover")
		if err != nil || stream.CachedInfo().Cluster == nil {
			continue
		}
		for i, addr := range addrs {
			if "127.0.0.1:"+strings.TrimPrefix(stream.CachedInfo().Cluster.Leader, "n") == addr {
				return processes[i]
			}
		}
	}
	t.Fatal("the bucket has no leader")
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The bucket's leader is killed, and then another server: there is no majority. Then that
// one comes back. Processes crash and clocks step meanwhile. No ID is issued twice, and IDs
// continue without a restart of the fleet.
func TestFailover(t *testing.T) {
	t.Parallel()
	processes, addrs := startCluster(t)
	fleet := fleetOn(t, addrs)
	first := leader(t, processes, addrs)
	must(t, first.Kill())
	fleet.Crash(0)
	fleet.Step(-3 * time.Second)
	second := processes[0]
	if second == first {
		second = processes[1]
	}
	must(t, second.Kill())
	fleet.Step(2*time.Hour, 2)
	for begin := time.Now(); fleet.Failed("ErrNotGranted") < 3; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatal("grants do not end without a majority")
		}
	}
	fleet.Crash(1)
	fleet.Step(-3 * time.Second)
	begin := time.Now()
	must(t, second.Start())
	fleet.WaitRecovered(t, 10, patience)
	t.Logf("majority is back: recovered after %v", time.Since(begin))
	fleet.Close(t).Check(t)
}

// The bucket's leader is stopped, and resumed when there is another one. Clients of the
// stopped server notice it by their pings.
func TestStoppedLeader(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	processes, addrs := startCluster(t)
	fleet := fleetOn(t, addrs)
	stopped := leader(t, processes, addrs)
	must(t, syscall.Kill(stopped.PID(), syscall.SIGSTOP))
	fleet.Crash(1)
	fleet.Step(2*time.Hour, 2)
	t.Logf("recovered after %v", fleet.WaitRecovered(t, 10, patience))
	must(t, syscall.Kill(stopped.PID(), syscall.SIGCONT))
	fleet.Crash(0)
	t.Logf("two leaders: recovered after %v", fleet.WaitRecovered(t, 10, patience))
	fleet.Close(t).Check(t)
}
