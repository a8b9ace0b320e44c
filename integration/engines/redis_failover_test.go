//go:build unix

package engines

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/redis"
	"github.com/tickflake/tickflake/stores/storetest"
)

// owned closes the client with the store.
type owned struct {
	stores.Store
	client *driver.Client
}

func (o owned) Close() error { return o.client.Close() }

// The primary of two replicas is killed, and later another is stopped for some time. Processes crash and clocks step meanwhile. A
// fleet whose writes are confirmed by all replicas continues when the former primary is back as a replica, and loses nothing. What a
// fleet without confirmations loses is seen in TestRedisAsynchronous.
func TestRedisSentinel(t *testing.T) {
	Long(t)
	t.Parallel()
	all := []*servers.Server{startRedis(t)}
	for range 2 {
		all = append(all, startRedis(t, "--replicaof", "127.0.0.1 "+all[0].Port()))
	}
	var addrs []string
	for range 3 {
		addrs = append(addrs, startSentinel(t, all[0]))
	}
	sentinel := driver.NewSentinelClient(&driver.Options{Addr: addrs[0]})
	t.Cleanup(func() { _ = sentinel.Close() })
	primary := func() *servers.Server { // or nil while that is unknown
		addr, err := sentinel.GetMasterAddrByName(Within(t), "ids").Result()
		if err != nil {
			return nil
		}
		return all[slices.IndexFunc(all, func(s *servers.Server) bool { return s.Addr == net.JoinHostPort(addr[0], addr[1]) })]
	}
	for _, addr := range addrs {
		client := driver.NewSentinelClient(&driver.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		require.Eventually(t, func() bool {
			facts, err := client.Master(Within(t), "ids").Result()
			return err == nil && facts["num-slaves"] == "2" && facts["num-other-sentinels"] == "2"
		}, Patience, 50*time.Millisecond, "the sentinels have not found each other")
	}
	f := fleet.For(t, fleet.Config{Keepers: 3, Rate: 400, Keeper: fleet.KeeperConfig{
		// A try to read or write takes a second if the replicas do not answer.
		Window: 2 * time.Second, Timeout: 1500 * time.Millisecond,
		Open: func(context.Context) (stores.Store, error) {
			client := driver.NewFailoverClient(&driver.FailoverOptions{MasterName: "ids", SentinelAddrs: addrs,
				Password: all[0].Password, ContextTimeoutEnabled: true})
			store, err := redis.New(client, "fleet", 2)
			return owned{store, client}, err
		},
	}})
	for name, away := range map[string]struct{ goes, comes func(*servers.Server) error }{
		"killed":  {func(s *servers.Server) error { return s.Kill() }, func(s *servers.Server) error { return s.Process.Start() }},
		"stopped": {func(s *servers.Server) error { return s.Suspend() }, func(s *servers.Server) error { return s.Resume() }},
	} {
		old, now := primary(), (*servers.Server)(nil)
		require.NotNil(t, old)
		require.NoError(t, away.goes(old))
		begin := time.Now()
		f.Crash(1)
		f.Step(-3*time.Second, 0)
		f.Step(2*time.Hour, 2)
		require.Eventually(t, func() bool {
			now = primary()
			return now != nil && now != old
		}, Patience, 50*time.Millisecond, "no replica is promoted")
		t.Logf("%s: promoted after %v", name, time.Since(begin))
		require.NoError(t, away.comes(old)) // there may be two primaries
		f.Crash(0)
		// Sentinel waits for ten seconds until it does so.
		require.NoError(t, redisClient(t, old).ReplicaOf(Within(t), "127.0.0.1", now.Port()).Err())
		Recovered(t, f, "with the former primary")
	}
	f.Verify(t)
}

// startSentinel runs a sentinel that watches primary, and returns its address.
func startSentinel(t *testing.T, primary *servers.Server) string {
	dir, port := t.TempDir(), program.PortFor(t)
	file := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor ids %s %s 2\nsentinel auth-pass ids \"%s\"\n"+
		"sentinel down-after-milliseconds ids 1000\nsentinel failover-timeout ids 5000\n", "127.0.0.1", primary.Port(), primary.Password)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	config := program.Config{Path: program.FindFor(t, "redis-server", "redis-server"), Dir: dir, Args: []string{file, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--sentinel"}}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	client := driver.NewSentinelClient(&driver.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	config.Ready = func(ctx context.Context) error { return client.Ping(ctx).Err() }
	program.For(t, config)
	return addr
}

// No write has waited for the replica.
func TestRedisAsynchronous(t *testing.T) {
	t.Parallel()
	p := &Pair{Primary: startRedis(t)}
	p.Front, p.Link = storetest.NewProxy(t, p.Primary.Addr), storetest.NewProxy(t, p.Primary.Addr)
	p.Standby = startRedis(t, "--replicaof", strings.Replace(p.Link.Addr(), ":", " ", 1))
	admin := redisClient(t, p.Primary) // WAIT after no write of its connection counts a replica that does not stream yet
	require.Eventually(t, func() bool {
		return admin.Set(Within(t), "x", "", 0).Err() == nil && admin.Wait(Within(t), 1, time.Second).Val() == 1
	}, Patience, 50*time.Millisecond)
	p.URL = p.Primary.At(p.Front.Addr(), "namespace=fleet")
	p.Promote = func(t testing.TB) {
		require.NoError(t, redisClient(t, p.Standby).ReplicaOf(Within(t), "NO", "ONE").Err())
		p.Front.To(p.Standby.Addr)
		p.Front.Cut()
	}
	testAsynchronous(t, p)
}
