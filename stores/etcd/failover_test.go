package etcd

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
)

// patience is how long an election and the recovery of a fleet may take on a busy machine.
const patience = 2 * time.Minute

// member is a member of a cluster of three.
type member struct {
	*servertest.Process
	addr, port, peers string
}

// startCluster runs a cluster of three, and returns the setting that names its members.
func startCluster(t *testing.T) (members [3]member, cluster string) {
	t.Helper()
	var names []string
	for i := range members {
		m := &members[i]
		m.port, m.peers = strconv.Itoa(servertest.Port(t)), strconv.Itoa(servertest.Port(t))
		names = append(names, "m"+m.peers+"=http://127.0.0.1:"+m.peers)
	}
	cluster = strings.Join(names, ",")
	// The members are ready when they have found each other.
	done := make(chan struct{}, len(members))
	for i := range members {
		go func() {
			defer func() { done <- struct{}{} }()
			m := &members[i]
			m.Process, m.addr = startMember(t, m.port, m.peers, clusterEnv+"="+cluster, stateEnv+"=new")
		}()
	}
	for range members {
		<-done
	}
	if t.Failed() {
		t.FailNow()
	}
	return members, cluster
}

// until calls f until it returns nil.
func until(t *testing.T, f func() error) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			t.Fatal(err)
		}
	}
}

// The leader is killed and replaced by a member with an empty directory, and then
// the majority is killed. One of them comes back: the new member is needed. Processes crash
// and clocks step meanwhile. No ID is issued twice, and IDs continue without a restart of
// the fleet.
func TestFailover(t *testing.T) {
	t.Parallel()
	members, cluster := startCluster(t)
	rawURL := "etcd://" + members[0].addr + "," + members[1].addr + "," + members[2].addr
	fleet := servertest.StartFleet(t, servertest.FleetConfig{
		Processes: 3, Window: 2 * time.Second,
		Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, rawURL) },
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	leader, id := 0, uint64(0)
	for i, m := range members {
		client := newClient(t, m.addr)
		status, err := client.Status(limited(t), m.addr)
		must(err)
		must(client.Close())
		if status.Leader == status.Header.MemberId {
			leader, id = i, status.Leader
		}
	}
	if id == 0 {
		t.Fatal("no member says that it leads")
	}
	others := []member{members[(leader+1)%3], members[(leader+2)%3]}

	replaced := members[leader]
	must(replaced.Kill())
	fleet.Crash(0)
	fleet.Step(-3 * time.Second)
	t.Logf("leader killed: recovered after %v", fleet.WaitRecovered(t, 10, patience))
	client := newClient(t, others[0].addr)
	defer client.Close() //nolint:errcheck // the test has ended
	// The cluster refuses both until its members have seen each other for some seconds.
	until(t, func() error {
		_, err := client.MemberRemove(limited(t), id)
		return err
	})
	until(t, func() error {
		_, err := client.MemberAdd(limited(t), []string{"http://127.0.0.1:" + replaced.peers})
		return err
	})
	fleet.Crash(1)
	startMember(t, replaced.port, replaced.peers, clusterEnv+"="+cluster, stateEnv+"=existing")
	t.Logf("member replaced: recovered after %v", fleet.WaitRecovered(t, 10, patience))

	for _, m := range others {
		must(m.Kill())
	}
	fleet.Step(2*time.Hour, 2)
	failed := fleet.Failed("ErrNotGranted")
	for begin := time.Now(); fleet.Failed("ErrNotGranted") < failed+3; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatal("grants do not end without a majority")
		}
	}
	fleet.Crash(0)
	fleet.Step(-3 * time.Second)
	must(others[1].Start())
	t.Logf("majority is back: recovered after %v", fleet.WaitRecovered(t, 10, patience))
	fleet.Close(t).Check(t)
}
