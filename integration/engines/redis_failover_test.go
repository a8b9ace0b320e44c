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

// cluster is a primary with two replicas, of which one is promoted when the primary is gone.
type cluster struct {
	servers []*servers.Server
	// client returns one that follows the primary.
	client func() driver.UniversalClient
	// primary returns who is the primary, or nil while that is unknown.
	primary func(context.Context) *servers.Server
	// demote makes a former primary a replica, if that does not happen soon by itself.
	demote func(t *testing.T, old *servers.Server)
}

func (c *cluster) at(addr string) *servers.Server {
	i := slices.IndexFunc(c.servers, func(s *servers.Server) bool { return s.Addr == addr })
	return c.servers[i]
}

// owned closes the client with the store.
type owned struct {
	stores.Store
	client driver.UniversalClient
}

func (o owned) Close() error { return o.client.Close() }

// try kills the primary, and later stops another for some time. Processes crash and clocks step meanwhile. A fleet whose
// writes are confirmed by all replicas continues when the former primary is back as a replica, and loses nothing. What a
// fleet without confirmations loses is seen in TestRedisAsynchronous.
func (c *cluster) try(t *testing.T) {
	f := fleet.For(t, fleet.Config{Keepers: 3, Rate: 400, Keeper: fleet.KeeperConfig{
		// A try to read or write takes a second if the replicas do not answer.
		Window: 2 * time.Second, Timeout: 1500 * time.Millisecond,
		Open: func(context.Context) (stores.Store, error) {
			client := c.client()
			store, err := redis.New(client, "fleet", 2)
			return owned{store, client}, err
		},
	}})
	for name, away := range map[string]struct{ goes, comes func(*servers.Server) error }{
		"killed":  {func(s *servers.Server) error { return s.Kill() }, func(s *servers.Server) error { return s.Process.Start() }},
		"stopped": {func(s *servers.Server) error { return s.Suspend() }, func(s *servers.Server) error { return s.Resume() }},
	} {
		old := c.primary(Within(t))
		require.NotNil(t, old)
		require.NoError(t, away.goes(old))
		begin := time.Now()
		f.Crash(1)
		f.Step(-3*time.Second, 0)
		f.Step(2*time.Hour, 2)
		require.Eventually(t, func() bool {
			now := c.primary(Within(t))
			return now != nil && now != old
		}, Patience, 50*time.Millisecond, "no replica is promoted")
		t.Logf("%s: promoted after %v", name, time.Since(begin))
		require.NoError(t, away.comes(old)) // there may be two primaries
		f.Crash(0)
		c.demote(t, old)
		Recovered(t, f, "with the former primary")
	}
	f.Verify(t)
}

func TestRedisSentinel(t *testing.T) {
	Long(t)
	t.Parallel()
	c := &cluster{servers: []*servers.Server{startRedis(t)}}
	for range 2 {
		c.servers = append(c.servers, startRedis(t, "--replicaof", "127.0.0.1 "+c.servers[0].Port()))
	}
	var addrs []string
	for range 3 {
		addrs = append(addrs, startSentinel(t, c.servers[0]))
	}
	c.client = func() driver.UniversalClient {
		return driver.NewFailoverClient(&driver.FailoverOptions{MasterName: "ids", SentinelAddrs: addrs,
			Password: c.servers[0].Password, ContextTimeoutEnabled: true})
	}
	sentinel := driver.NewSentinelClient(&driver.Options{Addr: addrs[0]})
	t.Cleanup(func() { _ = sentinel.Close() })
	c.primary = func(ctx context.Context) *servers.Server {
		addr, err := sentinel.GetMasterAddrByName(ctx, "ids").Result()
		if err != nil {
			return nil
		}
		return c.at(net.JoinHostPort(addr[0], addr[1]))
	}
	// Sentinel waits for ten seconds until it does so.
	c.demote = func(t *testing.T, old *servers.Server) {
		now := c.primary(Within(t))
		require.NotNil(t, now)
		require.NoError(t, redisClient(t, old).ReplicaOf(Within(t), "127.0.0.1", now.Port()).Err())
	}
	for _, addr := range addrs {
		client := driver.NewSentinelClient(&driver.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		require.Eventually(t, func() bool {
			facts, err := client.Master(Within(t), "ids").Result()
			return err == nil && facts["num-slaves"] == "2" && facts["num-other-sentinels"] == "2"
		}, Patience, 50*time.Millisecond, "the sentinels have not found each other")
	}
	c.try(t)
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

func TestRedisClusterFailover(t *testing.T) {
	Long(t)
	t.Parallel()
	c := &cluster{demote: func(*testing.T, *servers.Server) {}}
	for range 5 {
		c.servers = append(c.servers, startRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
			"--cluster-allow-replica-migration", "no",
			"--cluster-port", strconv.Itoa(program.PortFor(t))))
	}
	// The first three are primaries, which elect. The first has the cells, and two replicas.
	var admins []*driver.Client
	for i, s := range c.servers {
		admin := redisClient(t, s)
		admins = append(admins, admin)
		switch first := i == 0; {
		case first:
			require.NoError(t, admin.ClusterAddSlotsRange(Within(t), 0, 16381).Err())
		case i < 3:
			require.NoError(t, admin.ClusterAddSlots(Within(t), 16381+i).Err())
		}
	}
	for i, s := range c.servers[1:] {
		bus, err := redisClient(t, s).ConfigGet(Within(t), "cluster-port").Result()
		require.NoError(t, err)
		require.NoError(t, admins[0].Do(Within(t), "cluster", "meet", "127.0.0.1", s.Port(), bus["cluster-port"]).Err(), i)
	}
	id, err := admins[0].ClusterMyID(Within(t)).Result()
	require.NoError(t, err)
	for _, admin := range admins[3:] {
		require.Eventually(t, func() bool { return admin.ClusterReplicate(Within(t), id).Err() == nil }, Patience, 50*time.Millisecond)
	}
	for _, admin := range admins {
		require.Eventually(t, func() bool {
			nodes, err := admin.ClusterNodes(Within(t)).Result()
			info, err2 := admin.ClusterInfo(Within(t)).Result()
			return err == nil && err2 == nil && strings.Count(nodes, "slave "+id) == 2 && strings.Contains(info, "cluster_state:ok")
		}, Patience, 50*time.Millisecond, "the cluster has not come up")
	}
	require.Eventually(t, func() bool {
		info, err := admins[0].Info(Within(t), "replication").Result()
		return err == nil && strings.Count(info, "state=online") == 2
	}, Patience, 50*time.Millisecond)

	addrs := []string{c.servers[1].Addr, c.servers[2].Addr}
	c.client = func() driver.UniversalClient {
		return driver.NewClusterClient(&driver.ClusterOptions{Addrs: addrs, Password: c.servers[0].Password, ContextTimeoutEnabled: true,
			ClusterStateReloadInterval: time.Hour}) // the driver does not find the new primary by itself
	}
	// The server that has the first slot, as seen by a server that is never killed.
	c.primary = func(ctx context.Context) *servers.Server {
		nodes, err := admins[1].ClusterNodes(ctx).Result()
		if err != nil {
			return nil
		}
		for line := range strings.Lines(nodes) {
			if fields := strings.Fields(line); slices.Contains(fields, "0-16381") { // id, address, …
				addr, _, _ := strings.Cut(fields[1], "@")
				return c.at(addr)
			}
		}
		return nil
	}
	c.try(t)
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
