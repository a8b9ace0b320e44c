package engines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Pair is a primary and its standby. Clients of URL reach the first primary by Front, and the
// standby reaches it by Link.
type Pair struct {
	Primary, Standby *servers.Server
	Front, Link      *storetest.Proxy
	URL              string // of the one of the two that is the primary, without a namespace

	// Promote makes the standby the primary, and the URL lead to it. Return makes the URL lead to
	// the first primary again, and Fence away from it for good.
	Promote       func(t testing.TB)
	Return, Fence func(t testing.TB)

	Hasty string // an option of the URL that ends statements early, or ""

	// EndWaiting ends the statements that wait for the standby, unless it is nil.
	EndWaiting func(t testing.TB)
}

// testPair lets a standby take over, with -long in all of four ways. start starts a pair; without
// synchronous, the primary does not wait for the standby.
func testPair(t *testing.T, start func(t testing.TB, synchronous bool) *Pair) {
	for _, test := range []struct {
		name        string
		synchronous bool
		long        bool
		run         func(*testing.T, *Pair)
	}{
		{"read waits for the standby", true, false, testReadWaits},
		{"synchronous standby", true, false, testSynchronous},
		{"old primary comes back", true, true, testComesBack},
		{"asynchronous standby", false, true, testAsynchronous},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long {
				Long(t)
			}
			t.Parallel()
			test.run(t, start(t, test.synchronous))
		})
	}
}

// keepersOn runs a fleet of so many keepers on a store.
func keepersOn(t testing.TB, url string, keepers int, window time.Duration) *fleet.Fleet {
	t.Helper()
	return fleet.For(t, fleet.Config{Keepers: keepers, Rate: 400, Keeper: fleet.KeeperConfig{Window: window, Timeout: time.Second,
		Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, url) }}})
}

const pairWindow = 1500 * time.Millisecond

// isolate cuts the standby off.
func (p *Pair) isolate() {
	p.Link.Refuse()
	p.Link.Cut()
}

// A write that the standby lacks is not acknowledged, and no Read shows it: when the client
// that wrote it has given up, when its statement was killed, when the primary was killed and
// started again, and when the standby has taken over and the primary still runs.
func testReadWaits(t *testing.T, p *Pair) {
	const key, namespace = "node/0000001", "namespace=readwaits"
	old := Open(t, p.Primary.At(p.Primary.Addr, namespace))
	safe := Cell(t, old, key, "safe")
	all := []stores.Store{old}
	if p.Hasty != "" {
		all = append(all, Open(t, p.Primary.At(p.Primary.Addr, namespace, p.Hasty)))
	}
	p.isolate()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := old.Swap(ctx, key, safe.Version, []byte("lost"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	noAnswer := func() {
		t.Helper()
		for _, s := range all {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			cell, err := s.Read(ctx, key)
			cancel()
			require.Error(t, err, "Read shows %q, and the standby lacks it", cell.Value)
		}
	}
	noAnswer()
	if p.EndWaiting != nil {
		p.EndWaiting(t)
		noAnswer()
	}
	require.NoError(t, p.Primary.Kill())
	require.NoError(t, p.Primary.Start())
	noAnswer()

	p.Promote(t)
	taken := Open(t, p.Standby.At(p.Standby.Addr, namespace))
	cell, err := taken.Read(Within(t), key)
	require.NoError(t, err)
	require.Equal(t, "safe", string(cell.Value))
	Swap(t, taken, cell, "next")
	noAnswer()
}

// A synchronous standby takes over from a primary that was killed. The clocks are stepped
// and a process crashes meanwhile.
func testSynchronous(t *testing.T, p *Pair) {
	f := keepersOn(t, p.URL, 3, pairWindow)
	f.Step(-time.Minute, 0)
	require.NoError(t, p.Primary.Kill())
	f.Step(time.Minute, 1)
	f.Crash(2)
	p.Promote(t)
	Recovered(t, f, "promoted")
	f.Verify(t)
}

// The primary cannot be reached and is replaced. Then it comes back without fencing, and clients
// reach it first. It answers nothing, because it waits for its standby.
func testComesBack(t *testing.T, p *Pair) {
	f := keepersOn(t, p.URL, 3, pairWindow)
	for _, proxy := range []*storetest.Proxy{p.Front, p.Link} {
		proxy.Hold(storetest.ToServer)
		proxy.Hold(storetest.ToClient)
	}
	f.Step(-time.Minute, 0)
	p.Promote(t)
	Recovered(t, f, "promoted")

	p.Return(t)
	f.Step(time.Minute, 0)
	f.Crash(0)
	f.Crash(1)
	time.Sleep(2 * time.Second) // the fault: longer than a window
	p.Fence(t)
	Recovered(t, f, "fenced")
	f.Verify(t)
}

// testAsynchronous lets a standby take over that lacks the last writes. The processes notice it, report
// it, and continue. Only IDs from before the end of the lost grants are issued twice.
func testAsynchronous(t *testing.T, p *Pair) {
	f := keepersOn(t, p.URL, 6, pairWindow)
	p.isolate()
	for i := range 3 {
		f.Crash(i) // the number that it claims now is free on the standby
	}
	Recovered(t, f, "standby cut off")
	require.NoError(t, p.Primary.Kill())
	lost, err := f.Layout.Min(time.Now().Add(pairWindow)) // no lost grant ends later
	require.NoError(t, err)
	f.Step(-time.Minute, 0)
	p.Promote(t)
	for i := range 3 {
		f.Crash(3 + i) // it may claim one of those
	}
	Recovered(t, f, "promoted")
	f.Verify(t, fleet.Unique, fleet.Stands)
	// Each of the three that did not crash notices it, or, if another process that has
	// noticed it took the number from above the lost grant, finds its number taken.
	conflicts := int64(0)
	for _, s := range f.Ended() {
		conflicts += int64(s.Conflicts)
	}
	noticed := f.Times(fleet.Stands)
	require.NotZero(t, noticed, "the processes have not noticed")
	require.GreaterOrEqual(t, noticed+conflicts, int64(3))
	n, example := f.IDs.From(int64(lost)).Twice()
	require.Zero(t, n, "issued twice, after the lost grants: %s", example)
}

// Recovered waits until the fleet has recovered, and logs from what, and how long that took.
func Recovered(t testing.TB, f *fleet.Fleet, what string) {
	t.Helper()
	begin := time.Now()
	f.Recovered()
	t.Logf("%s: recovered after %v", what, time.Since(begin))
}

// Trio is three servers that choose a leader.
type Trio struct {
	Members [3]*servers.Server
	Wanted  []servers.Wanted // by which they were started
	URL     string           // of all, with a namespace

	// Leader returns the leader, or nil while that is unknown. All members run.
	Leader func(context.Context) (*servers.Server, error)

	// Replace puts a new member in the place of one that was killed, with -long; nil starts it
	// again.
	Replace func(t testing.TB, killed *servers.Server)
}

// StartTrio starts them. Server i has the ports i and i+3 for the others.
func StartTrio(t testing.TB, kind servers.Kind, settings func(i int, ports [6]int) []string) *Trio {
	t.Helper()
	var ports [6]int
	for i := range ports {
		ports[i] = program.PortFor(t)
	}
	c := &Trio{}
	var addrs []string
	for i := range c.Members {
		c.Wanted = append(c.Wanted, servers.Wanted{Kind: kind, Port: program.PortFor(t), Settings: settings(i, ports)})
		addrs = append(addrs, fmt.Sprint("127.0.0.1:", c.Wanted[i].Port))
	}
	c.Members = [3]*servers.Server(servers.ForAll(t, c.Wanted...))
	c.URL = c.Members[0].At(strings.Join(addrs, ","), "namespace=failover")
	return c
}

// Await returns the leader, when there is one, and the others.
func (c *Trio) Await(t testing.TB) (leader *servers.Server, others []*servers.Server) {
	t.Helper()
	Until(t, func(ctx context.Context) (err error) {
		if leader, err = c.Leader(ctx); err == nil && leader == nil {
			err = errors.New("there is no leader")
		}
		return err
	})
	for _, m := range c.Members {
		if m != leader {
			others = append(others, m)
		}
	}
	return leader, others
}

// Test lets servers fail while a fleet issues IDs. The leader is killed and comes back. With
// -long it is replaced, the next leader is suspended and resumed, and then the majority is
// killed, and one of them comes back. Processes crash and clocks step meanwhile. No ID is
// issued twice, and IDs continue without a restart of the fleet.
func (c *Trio) Test(t *testing.T) {
	f := keepersOn(t, c.URL, 3, 2*time.Second)
	leader, _ := c.Await(t)
	require.NoError(t, leader.Kill())
	f.Crash(0)
	f.Step(-3 * time.Second)
	Recovered(t, f, "leader killed")
	if *long && c.Replace != nil {
		f.Crash(1)
		c.Replace(t, leader)
	} else {
		require.NoError(t, leader.Start())
	}
	if *long {
		c.testLong(t, f)
	}
	f.Verify(t)
}

// testLong suspends the leader, and later kills the majority.
func (c *Trio) testLong(t *testing.T, f *fleet.Fleet) {
	leader, _ := c.Await(t)
	require.NoError(t, leader.Suspend())
	f.Step(time.Minute, 0)
	f.Crash(2)
	Recovered(t, f, "leader suspended")
	require.NoError(t, leader.Resume())
	f.Crash(0)
	Recovered(t, f, "two leaders")

	leader, others := c.Await(t)
	outage(t, f, "majority killed", func() error { return errors.Join(leader.Kill(), others[0].Kill()) }, others[0].Start)
}

// outage lets the store be away until grants have ended. A clock steps meanwhile, and two processes crash, one
// of them after its grant.
func outage(t testing.TB, f *fleet.Fleet, name string, begin, end func() error) {
	t.Helper()
	require.NoError(t, begin())
	f.Step(2*time.Hour, 2)
	f.Crash(0)
	require.NoError(t, f.Failed(Within(t), "not granted", 3))
	f.Crash(1)
	f.Step(-3 * time.Second)
	require.NoError(t, end())
	Recovered(t, f, name)
}

// testAlone has a fleet on a server that no other stands in for, while it is away in each of these ways, given by how
// they begin and end.
func testAlone(t *testing.T, s *servers.Server, away map[string][2]func() error) {
	t.Run("away", func(t *testing.T) {
		f := keepersOn(t, s.At(s.Addr, "namespace=alone"), 3, 2*time.Second)
		for name, way := range away {
			outage(t, f, name, way[0], way[1])
		}
		f.Verify(t)
	})
}
