// Package redis has the tests of stores/redis on real servers.
package redis

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig/enginetest"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/internal/rig/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/redis"
	"github.com/tickflake/tickflake/stores/storetest"
)

// quiet drops the driver's log, which has a line for each refused connection.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { driver.SetLogger(quiet{}) }

// start runs a server that syncs each write, unless the settings say otherwise.
func start(t testing.TB, settings ...string) *servers.Server {
	t.Helper()
	return servers.For(t, servers.Redis, append([]string{"--save", "", "--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"}, settings...)...)
}

// replicaOf runs a replica.
func replicaOf(t testing.TB, primary *servers.Server, settings ...string) *servers.Server {
	t.Helper()
	return start(t, append([]string{"--replicaof", "127.0.0.1 " + primary.Port()}, settings...)...)
}

// client returns one of the default user's.
func client(t testing.TB, s *servers.Server) *driver.Client {
	t.Helper()
	c, err := s.Redis()
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// as is the URL of a user.
func as(s *servers.Server, user string, options ...string) string {
	return strings.Replace(s.At(s.Addr, options...), "//default", "//"+user, 1)
}

// trips are the round trips of each call, also if replicas confirm it.
var trips = map[string]int64{"first Swap": 1, "Swap": 1, "conflict": 1, "Read": 1, "List": 1, "Durability": 2}

func TestMain(m *testing.M) { enginetest.Main(m) }

func TestEngine(t *testing.T) {
	s := start(t)
	enginetest.Engine{
		Name: "redis at " + s.Addr, Server: s,
		// A client as it is by default, which retries commands.
		New: func(t testing.TB, addr, namespace string) stores.Store {
			options, err := driver.ParseURL(s.At(addr))
			require.NoError(t, err)
			c := driver.NewClient(options)
			t.Cleanup(func() { _ = c.Close() })
			store, err := redis.New(c, namespace)
			require.NoError(t, err)
			require.NoError(t, store.Close(), "which leaves the caller's client open")
			return store
		},
		Damage: func(t testing.TB, namespace, key, text string) {
			require.NoError(t, client(t, s).HSet(enginetest.Within(t), "tickflake:{"+namespace+"}", key, text).Err())
		},
		TLS:    func(url string) string { return strings.Replace(url, "redis://", "rediss://", 1) },
		AtRest: 1, AtMost: 5,
	}.Test(t)
	t.Run("round trips", func(t *testing.T) { enginetest.TestTrips(t, s, trips) })
	t.Run("durability", func(t *testing.T) { testDurability(t, s) })
	t.Run("denied", func(t *testing.T) { testDenied(t, s) })
	t.Run("foreign data", func(t *testing.T) { testForeignData(t, s) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, s) })
	enginetest.TestMoves(t, s)
}

// A cluster of one server, with a client that would rather ask replicas.
func TestConformanceOfCluster(t *testing.T) {
	t.Parallel()
	// By itself its bus takes the port 10000 above the other, which may be in use.
	s := start(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(servertest.Port(t)))
	admin := client(t, s)
	require.NoError(t, admin.ClusterAddSlotsRange(enginetest.Within(t), 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, err := admin.ClusterInfo(enginetest.Within(t)).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, enginetest.Patience, 10*time.Millisecond)
	client := func(t testing.TB) *driver.ClusterClient {
		client := driver.NewClusterClient(&driver.ClusterOptions{Addrs: []string{s.Addr}, Password: s.Password, ReadOnly: true})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
		store, err := redis.New(client(t), namespace)
		require.NoError(t, err)
		return store
	})
	store, err := redis.New(client(t), "replicas", redis.WithReplicas(1))
	require.NoError(t, err)
	_, err = store.Swap(enginetest.Within(t), "node/0000001", 0, nil)
	assert.ErrorIs(t, err, redis.ErrReplicas, "WAIT goes to the server that has the cells")
	assert.Contains(t, strings.Join(enginetest.Promises(t, store).Risks, "\n"), "has 0 replicas, and 1 are to confirm")
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	s := start(t)
	lonely := enginetest.Open(t, s.At(s.Addr, "replicas=1"))
	_, err := lonely.Swap(enginetest.Within(t), "node/0000001", 0, []byte("v"))
	require.ErrorIs(t, err, redis.ErrReplicas)
	assert.NotErrorIs(t, err, stores.ErrConflict)
	_, err = lonely.Read(enginetest.Within(t), "node/0000001")
	require.ErrorIs(t, err, redis.ErrReplicas, "it is not safe yet")
	cell, err := enginetest.Open(t, s.URL).Read(enginetest.Within(t), "node/0000001")
	require.NoError(t, err)
	assert.Equal(t, "v", string(cell.Value), "but written")
	_, err = lonely.Swap(enginetest.Within(t), "node/0000001", 0, []byte("w"))
	require.ErrorIs(t, err, stores.ErrConflict, "which is known without replicas")

	replica := replicaOf(t, s)
	admin := client(t, s)
	// Until the replica streams, which it begins up to a second after its copy. The copy alone confirms a Read that has
	// begun before it, and not the next one.
	for begin, confirmed := time.Now(), 0; confirmed < 2; {
		_, err := lonely.Read(enginetest.Within(t), "node/0000001")
		if confirmed++; err != nil {
			confirmed = 0
			require.Less(t, time.Since(begin), enginetest.Patience, err)
		}
	}
	// A disk that takes longer than WAIT is not what is tried here.
	toDisk := func(when string) {
		for _, c := range []*driver.Client{admin, client(t, replica)} {
			require.NoError(t, c.ConfigSet(enginetest.Within(t), "appendfsync", when).Err())
		}
	}
	toDisk("no")
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
		return enginetest.Open(t, s.At(s.Addr, "replicas=1", "namespace="+namespace))
	})
	enginetest.TestTrips(t, s, trips, "replicas=1")

	// Each Read sends them something: new servers do not wait otherwise.
	received := func() string {
		info, err := client(t, replica).Info(enginetest.Within(t), "commandstats").Result()
		require.NoError(t, err)
		_, calls, _ := strings.Cut(info, "cmdstat_hdel:calls=")
		calls, _, _ = strings.Cut(calls, ",")
		return calls
	}
	before := received()
	is, err := lonely.Read(enginetest.Within(t), "node/0000001")
	require.NoError(t, err)
	assert.Equal(t, cell, is)
	assert.NotEqual(t, before, received())
	beside := enginetest.Open(t, replica.URL)
	assert.Equal(t, []stores.Cell{cell}, enginetest.Cells(t, beside), "it has got the cell")
	_, err = beside.Read(enginetest.Within(t), "node/0000001")
	assert.ErrorContains(t, err, "READONLY", "but is not asked for it")
	_, err = beside.Swap(enginetest.Within(t), cell.Key, cell.Version, nil)
	assert.ErrorContains(t, err, "READONLY")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	assert.Contains(t, strings.Join(enginetest.Promises(t, beside).Risks, "\n"), `role is "slave"`)
	assert.Contains(t, strings.Join(enginetest.Promises(t, enginetest.Open(t, s.URL)).Risks, "\n"), "has 1 replicas, and no write waits for them")
	toDisk("always")
	assert.Zero(t, enginetest.Promises(t, lonely))

	// A primary that misses the replicas it needs may have been replaced.
	require.NoError(t, admin.ConfigSet(enginetest.Within(t), "min-replicas-to-write", "2").Err())
	_, err = lonely.Read(enginetest.Within(t), "node/0000001")
	assert.ErrorContains(t, err, "NOREPLICAS")
}

func testDurability(t *testing.T, s *servers.Server) {
	store := enginetest.Open(t, s.URL)
	assert.Zero(t, enginetest.Promises(t, store))
	admin := client(t, s)
	for _, set := range [][2]string{{"maxmemory-policy", "allkeys-lru"}, {"appendfsync", "everysec"}} {
		require.NoError(t, admin.ConfigSet(enginetest.Within(t), set[0], set[1]).Err())
		promises := enginetest.Promises(t, store)
		assert.Contains(t, strings.Join(promises.Risks, "\n"), set[0]+" is "+set[1])
		assert.Empty(t, promises.Forgets)
	}
	require.NoError(t, admin.ConfigSet(enginetest.Within(t), "maxmemory", "100mb").Err())
	assert.Contains(t, strings.Join(enginetest.Promises(t, store).Forgets, "\n"), "maxmemory-policy is allkeys-lru with maxmemory 104857600")
	require.NoError(t, admin.ConfigSet(enginetest.Within(t), "maxmemory", "0").Err())

	// The rights that the package's doc lists, and no others.
	require.NoError(t, admin.Do(enginetest.Within(t), "acl", "setuser", "poor", "on", ">"+s.Password, "~tickflake:*",
		"+eval", "+hget", "+hset", "+hdel", "+zadd", "+zrangebylex", "+ping").Err())
	poor := enginetest.Open(t, as(s, "poor"))
	cell := enginetest.Cell(t, poor, "poor", "v")
	is, err := poor.Read(enginetest.Within(t), cell.Key)
	require.NoError(t, err)
	assert.Equal(t, cell, is)
	assert.Equal(t, []stores.Cell{cell}, enginetest.Cells(t, poor))
	promises := enginetest.Promises(t, poor)
	assert.Len(t, promises.Unknown, 5)
	assert.Empty(t, promises.Forgets)

	require.NoError(t, s.Kill())
	defer func() { require.NoError(t, s.Start()) }()
	_, err = stores.CheckDurability(enginetest.Within(t), store)
	assert.ErrorContains(t, err, "redis at ")
}

// A server that forgets what it has acknowledged is refused, unless the URL accepts it. INFO tells what CONFIG would, a
// replica that takes writes loses them when it syncs with its primary, and a connection that is lost in the middle of the
// questions leaves no setting unknown.
func TestForgetfulServersAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, "--appendonly", "no")
	require.NoError(t, client(t, s).Do(enginetest.Within(t), "acl", "setuser", "rented", "on", ">"+s.Password, "~*", "+@all", "-config").Err())
	for url, want := range map[string]string{
		s.URL:           "appendonly is no, so that a killed server loses all writes since the last snapshot: set it to yes",
		as(s, "rented"): "appendonly is no",
		replicaOf(t, start(t), "--replica-read-only", "no").URL: "connect to the primary",
	} {
		_, err := stores.Open(enginetest.Within(t), url)
		require.ErrorIs(t, err, stores.ErrForgets)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "s3cret")
	}
	store := enginetest.Open(t, s.At(s.Addr, "forgetful=allow", "namespace=n"))
	enginetest.Cell(t, store, "k", "v")
	require.NoError(t, s.Kill())
	require.NoError(t, s.Start())
	cell, err := store.Read(enginetest.Within(t), "k")
	require.NoError(t, err)
	assert.Zero(t, cell.Version, "which is the reason")

	options := client(t, s).Options()
	options.MaxRetries = -1
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return cutAt{conn, "appendfsync"}, err
	}
	c := driver.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	cut, err := redis.New(c, "n")
	require.NoError(t, err)
	_, err = stores.CheckDurability(enginetest.Within(t), cut)
	assert.ErrorIs(t, err, net.ErrClosed)
}

// cutAt is a connection that ends instead of sending a word.
type cutAt struct {
	net.Conn
	word string
}

func (c cutAt) Write(b []byte) (int, error) {
	if strings.Contains(string(b), c.word) {
		_ = c.Close()
	}
	return c.Conn.Write(b)
}

// A refusal is final, and not waited out.
func testDenied(t *testing.T, s *servers.Server) {
	require.NoError(t, client(t, s).Do(enginetest.Within(t), "acl", "setuser", "weak", "on", ">"+s.Password, "~*", "+@all", "-ping").Err())
	enginetest.TestDenied(t, s, map[string]string{
		strings.Replace(s.URL, "default:s3", "default:wr0ng", 1): "WRONGPASS",
		"redis://" + s.Addr:                    "NOAUTH",
		as(s, "weak"):                          "NOPERM",
		strings.Replace(s.URL, "/0", "/99", 1): "out of range",
	})
}

// Data of other programs under our key is neither taken for a cell nor overwritten, and
// hides no cell.
func testForeignData(t *testing.T, s *servers.Server) {
	admin, ctx := client(t, s), enginetest.Within(t)
	hash := func(namespace string) string { return "tickflake:{" + namespace + "}" }
	store := enginetest.Open(t, s.At(s.Addr, "namespace=junk"))
	good := enginetest.Cell(t, store, "b", "good")
	require.NoError(t, admin.HSet(ctx, hash("junk"), "JUNK", "5 v").Err())
	require.NoError(t, admin.ZAdd(ctx, hash("junk")+":keys", driver.Z{Member: "JUNK"}, driver.Z{Member: "a"}).Err()) // a was deleted
	cells, err := store.List(ctx, "", "\x7f", 1)
	require.NoError(t, err)
	assert.Equal(t, []stores.Cell{good}, cells)
	// With other scores, a page ends before its begin.
	for score, key := range []string{"y", "x", "z"} {
		require.NoError(t, admin.ZAdd(ctx, hash("order")+":keys", driver.Z{Member: key, Score: float64(score)}).Err())
	}
	_, err = enginetest.Open(t, s.At(s.Addr, "namespace=order")).List(ctx, "", "\x7f", 2)
	require.NoError(t, err)

	require.NoError(t, admin.Set(ctx, hash("string"), "v", 0).Err())
	store = enginetest.Open(t, s.At(s.Addr, "namespace=string"))
	_, err = store.Swap(ctx, "a", 0, nil)
	assert.ErrorContains(t, err, "WRONGTYPE")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	assert.Equal(t, "v", admin.Get(ctx, hash("string")).Val())
}

func testRefusals(t *testing.T, s *servers.Server) {
	admin := client(t, s)
	do := func(t testing.TB, command string) {
		var args []any
		for word := range strings.FieldsSeq(command) {
			args = append(args, word)
		}
		require.NoError(t, admin.Do(enginetest.Within(t), args...).Err(), command)
	}
	all := map[string]func(*testing.T) enginetest.Refusal{}
	for name, row := range map[string][4]string{ // how to refuse it, how to allow it again, what the error says and advises
		"password":  {"ACL SETUSER NAME resetpass >other", "ACL SETUSER NAME >" + s.Password, "WRONGPASS", "fix the URL"},
		"user":      {"ACL DELUSER NAME", "ACL SETUSER NAME on >" + s.Password + " ~* +@all", "WRONGPASS", "fix the URL"},
		"command":   {"ACL SETUSER NAME -eval", "ACL SETUSER NAME +eval", "NOPERM", "allow the commands"},
		"in-script": {"ACL SETUSER NAME -hget -hset -hdel -zadd", "ACL SETUSER NAME +@all", "can't run this command", "allow the commands"},
		"keys":      {"ACL SETUSER NAME resetkeys", "ACL SETUSER NAME ~*", "NOPERM", "fix the URL"},
		"type":      {"SET tickflake:{NAME} v", "DEL tickflake:{NAME}", "WRONGTYPE", "use another namespace"},
		"alone":     {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY", "connect to the primary"},
	} {
		all[name] = func(t *testing.T) enginetest.Refusal {
			do(t, "ACL SETUSER "+name+" on >"+s.Password+" ~* +@all")
			return enginetest.Refusal{Store: enginetest.Open(t, as(s, name, "namespace="+name)), Want: row[2], Advice: row[3],
				Refuse: func() {
					do(t, strings.ReplaceAll(row[0], "NAME", name))
					// A connection keeps the rights of its login until it ends.
					_ = admin.Do(enginetest.Within(t), "CLIENT", "KILL", "USER", name).Err()
				},
				Fix: func() { do(t, strings.ReplaceAll(row[1], "NAME", name)) }}
		}
	}
	enginetest.TestRefusals(t, all)
}
