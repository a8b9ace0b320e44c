package engines

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores/storetest"
)

// startRedisPair starts a primary, and a replica that has its writes.
func startRedisPair(t testing.TB) *Pair {
	t.Helper()
	p := &Pair{Primary: startRedis(t)}
	p.Front, p.Link = storetest.NewProxy(t, p.Primary.Addr), storetest.NewProxy(t, p.Primary.Addr)
	p.Standby = startRedis(t, "--replicaof", strings.Replace(p.Link.Addr(), ":", " ", 1))
	admin := redisClient(t, p.Primary) // WAIT after no write of its connection counts a replica that does not stream yet
	require.Eventually(t, func() bool {
		return admin.Set(Within(t), "x", "", 0).Err() == nil && admin.Wait(Within(t), 1, time.Second).Val() == 1
	}, Patience, 50*time.Millisecond)
	p.URL = p.Primary.At(p.Front.Addr(), "namespace=fleet")
	p.Promote = func(t testing.TB) { promote(t, p, p.Standby) }
	return p
}

// promote makes a replica the primary, and the URL lead to it.
func promote(t testing.TB, p *Pair, replica *servers.Server) {
	t.Helper()
	require.NoError(t, redisClient(t, replica).ReplicaOf(Within(t), "NO", "ONE").Err())
	p.Front.To(replica.Addr)
	p.Front.Cut()
}

// No write has waited for the replica.
func TestRedisAsynchronous(t *testing.T) {
	t.Parallel()
	testAsynchronous(t, startRedisPair(t))
}

// The primary is killed, and the next one is stopped for some time. Processes crash and clocks step meanwhile. A fleet whose
// writes the replica confirms continues when the former primary is back as a replica, and loses nothing.
func TestRedisConfirmed(t *testing.T) {
	t.Parallel()
	p := startRedisPair(t)
	f := keepersOn(t, p.URL+"&replicas=1", 3, 2*time.Second)
	old, next := p.Primary, p.Standby
	for name, away := range map[string]struct{ goes, comes func(*servers.Server) error }{
		"killed":  {func(s *servers.Server) error { return s.Kill() }, func(s *servers.Server) error { return s.Process.Start() }},
		"stopped": {func(s *servers.Server) error { return s.Suspend() }, func(s *servers.Server) error { return s.Resume() }},
	} {
		require.NoError(t, away.goes(old))
		f.Crash(1)
		f.Step(-3*time.Second, 0)
		f.Step(2*time.Hour, 2)
		promote(t, p, next)
		require.NoError(t, away.comes(old)) // there are two primaries
		f.Crash(0)
		require.NoError(t, redisClient(t, old).ReplicaOf(Within(t), "127.0.0.1", next.Port()).Err())
		Recovered(t, f, name)
		old, next = next, old
	}
	f.Verify(t)
}
