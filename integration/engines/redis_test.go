package engines

import (
	"strings"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/redis"
	"github.com/tickflake/tickflake/stores/storetest"
)

// The driver logs a line for each refused connection.
func init() { logging.Disable() }

// startRedis runs a server that syncs each write, unless the settings say otherwise.
func startRedis(t testing.TB, settings ...string) *servers.Server {
	t.Helper()
	return servers.For(t, servers.Redis, append([]string{"--save", "", "--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"}, settings...)...)
}

// redisClient returns one of the default user's.
func redisClient(t testing.TB, s *servers.Server) *driver.Client {
	t.Helper()
	c, err := s.Redis()
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// redisUser is the URL of a user.
func redisUser(s *servers.Server, user string, options ...string) string {
	return strings.Replace(s.At(s.Addr, options...), "//default", "//"+user, 1)
}

// redisTrips are the round trips of each call, also if replicas confirm it.
var redisTrips = map[string]int{"first Swap": 1, "Swap": 1, "conflict": 1, "Read": 1, "List": 1, "Durability": 2}

func TestRedis(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	Engine{
		Name: "redis at " + s.Addr, Server: s,
		// A client as it is by default, which retries commands.
		New: func(t testing.TB, addr, namespace string) stores.Store {
			options, err := driver.ParseURL(s.At(addr))
			require.NoError(t, err)
			c := driver.NewClient(options)
			t.Cleanup(func() { _ = c.Close() })
			store, err := redis.New(c, namespace, 0)
			require.NoError(t, err)
			require.NoError(t, store.Close(), "which leaves the caller's client open")
			return store
		},
		Damage: func(t testing.TB, namespace, key, text string) {
			require.NoError(t, redisClient(t, s).HSet(Within(t), "tickflake:{"+namespace+"}", key, text).Err())
		},
		TLS:    func(url string) string { return strings.Replace(url, "redis://", "rediss://", 1) },
		AtRest: 1, AtMost: 5,
	}.Test(t)
	t.Run("round trips", func(t *testing.T) { testTrips(t, s, redisTrips) })
	t.Run("durability", func(t *testing.T) { testRedisDurability(t, s) })
	t.Run("denied", func(t *testing.T) { testRedisDenied(t, s) })
	t.Run("foreign data", func(t *testing.T) { testRedisForeignData(t, s) })
	t.Run("refusals", func(t *testing.T) { testRedisRefusals(t, s) })
	t.Run("past", func(t *testing.T) { testPast(t, s.At(s.Addr, "namespace=past")) })
}

func TestRedisReplicas(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	lonely := Open(t, s.At(s.Addr, "replicas=1"))
	_, err := lonely.Swap(Within(t), "node/0000001", 0, []byte("v"))
	require.ErrorIs(t, err, redis.ErrReplicas)
	assert.NotErrorIs(t, err, stores.ErrConflict)
	_, err = lonely.Read(Within(t), "node/0000001")
	require.ErrorIs(t, err, redis.ErrReplicas, "it is not safe yet")
	cell, err := Open(t, s.URL).Read(Within(t), "node/0000001")
	require.NoError(t, err)
	assert.Equal(t, "v", string(cell.Value), "but written")
	_, err = lonely.Swap(Within(t), "node/0000001", 0, []byte("w"))
	require.ErrorIs(t, err, stores.ErrConflict, "which is known without replicas")

	replica := startRedis(t, "--replicaof", "127.0.0.1 "+s.Port())
	admin := redisClient(t, s)
	// Until the replica streams, which it begins up to a second after its copy. The copy alone confirms a Read that has
	// begun before it, and not the next one.
	for begin, confirmed := time.Now(), 0; confirmed < 2; {
		_, err := lonely.Read(Within(t), "node/0000001")
		if confirmed++; err != nil {
			confirmed = 0
			require.Less(t, time.Since(begin), Patience, err)
		}
	}
	// A disk that takes longer than WAIT is not what is tried here.
	toDisk := func(when string) {
		for _, c := range []*driver.Client{admin, redisClient(t, replica)} {
			require.NoError(t, c.ConfigSet(Within(t), "appendfsync", when).Err())
		}
	}
	toDisk("no")
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
		return Open(t, s.At(s.Addr, "replicas=1", "namespace="+namespace))
	})
	testTrips(t, s, redisTrips, "replicas=1")

	// Each Read sends them something: new servers do not wait otherwise.
	received := func() string {
		info, err := redisClient(t, replica).Info(Within(t), "commandstats").Result()
		require.NoError(t, err)
		_, calls, _ := strings.Cut(info, "cmdstat_hdel:calls=")
		calls, _, _ = strings.Cut(calls, ",")
		return calls
	}
	before := received()
	is, err := lonely.Read(Within(t), "node/0000001")
	require.NoError(t, err)
	assert.Equal(t, cell, is)
	assert.NotEqual(t, before, received())
	beside := Open(t, replica.URL)
	assert.Equal(t, []stores.Cell{cell}, Cells(t, beside), "it has got the cell")
	_, err = beside.Read(Within(t), "node/0000001")
	assert.ErrorContains(t, err, "READONLY", "but is not asked for it")
	_, err = beside.Swap(Within(t), cell.Key, cell.Version, nil)
	assert.ErrorContains(t, err, "READONLY")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	toDisk("always")

	// What is said of a number of replicas: while each that can be promoted is not asked for, a failover loses writes.
	Judged(t, beside, `role is "slave"`)
	startRedis(t, "--replicaof", "127.0.0.1 "+s.Port())
	require.Eventually(t, func() bool {
		info, err := admin.Info(Within(t), "replication").Result()
		return err == nil && strings.Contains(info, "connected_slaves:2")
	}, Patience, 20*time.Millisecond)
	for replicas, risk := range map[string]string{
		"0": "has 2 replicas, and a write waits for 0 of them", "1": "set replicas, in the URL or in redis.New, to the number of those that can be promoted, 2 if all can",
		"2": "", "3": "no write can succeed",
	} {
		Judged(t, Open(t, s.At(s.Addr, "replicas="+replicas)), risk)
	}

	// A primary that misses the replicas it needs may have been replaced.
	require.NoError(t, admin.ConfigSet(Within(t), "min-replicas-to-write", "3").Err())
	_, err = lonely.Read(Within(t), "node/0000001")
	assert.ErrorContains(t, err, "NOREPLICAS")
	assert.Equal(t, stores.Transient, stores.KindOf(err))
}

func testRedisDurability(t *testing.T, s *servers.Server) {
	store := Open(t, s.URL)
	assert.Zero(t, Promises(t, store))
	admin := redisClient(t, s)
	for _, set := range [][2]string{{"maxmemory-policy", "allkeys-lru"}, {"appendfsync", "everysec"}} {
		require.NoError(t, admin.ConfigSet(Within(t), set[0], set[1]).Err())
		promises := Promises(t, store)
		assert.Contains(t, strings.Join(promises.Risks, "\n"), set[0]+" is "+set[1])
		assert.Empty(t, promises.Forgets)
	}
	require.NoError(t, admin.ConfigSet(Within(t), "maxmemory", "100mb").Err())
	assert.Contains(t, strings.Join(Promises(t, store).Forgets, "\n"), "maxmemory-policy is allkeys-lru with maxmemory 104857600")
	require.NoError(t, admin.ConfigSet(Within(t), "maxmemory", "0").Err())

	// The rights that the package's doc lists, and no others.
	require.NoError(t, admin.Do(Within(t), "acl", "setuser", "poor", "on", ">"+s.Password, "~tickflake:*",
		"+eval", "+hget", "+hset", "+hdel", "+zadd", "+zrangebylex", "+ping").Err())
	poor := Open(t, redisUser(s, "poor"))
	cell := Cell(t, poor, "poor", "v")
	is, err := poor.Read(Within(t), cell.Key)
	require.NoError(t, err)
	assert.Equal(t, cell, is)
	assert.Equal(t, []stores.Cell{cell}, Cells(t, poor))
	promises := Promises(t, poor)
	assert.Len(t, promises.Unknown, 5)
	assert.Empty(t, promises.Forgets)

	require.NoError(t, s.Kill())
	defer func() { require.NoError(t, s.Start()) }()
	_, err = stores.CheckDurability(Within(t), store)
	assert.ErrorContains(t, err, "redis at ")
}

// A server that forgets what it has acknowledged is refused, unless the URL accepts it. INFO tells what CONFIG would, and a
// replica that takes writes loses them when it syncs with its primary.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	s := startRedis(t, "--appendonly", "no")
	require.NoError(t, redisClient(t, s).Do(Within(t), "acl", "setuser", "rented", "on", ">"+s.Password, "~*", "+@all", "-config").Err())
	for url, want := range map[string]string{
		s.URL:                  "appendonly is no, so that a killed server loses all writes since the last snapshot: set it to yes",
		redisUser(s, "rented"): "appendonly is no",
		startRedis(t, "--replicaof", "127.0.0.1 "+startRedis(t).Port(), "--replica-read-only", "no").URL: "connect to the primary",
	} {
		_, err := stores.Open(Within(t), url)
		require.ErrorIs(t, err, stores.ErrForgets)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "s3cret")
	}
	store := Open(t, s.At(s.Addr, "forgetful=allow", "namespace=n"))
	Cell(t, store, "k", "v")
	require.NoError(t, s.Kill())
	require.NoError(t, s.Start())
	cell, err := store.Read(Within(t), "k")
	require.NoError(t, err)
	assert.Zero(t, cell.Version, "which is the reason")
}

// A refusal is final, and not waited out.
func testRedisDenied(t *testing.T, s *servers.Server) {
	require.NoError(t, redisClient(t, s).Do(Within(t), "acl", "setuser", "weak", "on", ">"+s.Password, "~*", "+@all", "-ping").Err())
	testDenied(t, s, map[string]string{
		strings.Replace(s.URL, "default:s3", "default:wr0ng", 1): "WRONGPASS",
		"redis://" + s.Addr:                    "NOAUTH",
		redisUser(s, "weak"):                   "NOPERM",
		strings.Replace(s.URL, "/0", "/99", 1): "out of range",
	})
}

// Data of other programs under our key is neither taken for a cell nor overwritten, and
// hides no cell.
func testRedisForeignData(t *testing.T, s *servers.Server) {
	admin, ctx := redisClient(t, s), Within(t)
	hash := func(namespace string) string { return "tickflake:{" + namespace + "}" }
	store := Open(t, s.At(s.Addr, "namespace=junk"))
	good := Cell(t, store, "b", "good")
	require.NoError(t, admin.HSet(ctx, hash("junk"), "JUNK", "5 v").Err())
	require.NoError(t, admin.ZAdd(ctx, hash("junk")+":keys", driver.Z{Member: "JUNK"}, driver.Z{Member: "a"}).Err()) // a was deleted
	cells, err := store.List(ctx, "", "\x7f", 1)
	require.NoError(t, err)
	assert.Equal(t, []stores.Cell{good}, cells)
	// With other scores, a page ends before its begin.
	for score, key := range []string{"y", "x", "z"} {
		require.NoError(t, admin.ZAdd(ctx, hash("order")+":keys", driver.Z{Member: key, Score: float64(score)}).Err())
	}
	_, err = Open(t, s.At(s.Addr, "namespace=order")).List(ctx, "", "\x7f", 2)
	require.NoError(t, err)
}

func testRedisRefusals(t *testing.T, s *servers.Server) {
	admin := redisClient(t, s)
	do := func(t testing.TB, command string) {
		var args []any
		for word := range strings.FieldsSeq(command) {
			args = append(args, word)
		}
		require.NoError(t, admin.Do(Within(t), args...).Err(), command)
	}
	all := map[string]func(*testing.T) Refusal{}
	for name, row := range map[string][4]string{ // how to refuse it, how to allow it again, what the error says and advises
		"password":  {"ACL SETUSER NAME resetpass >other", "ACL SETUSER NAME >" + s.Password, "WRONGPASS", "fix the URL"},
		"user":      {"ACL DELUSER NAME", "ACL SETUSER NAME on >" + s.Password + " ~* +@all", "WRONGPASS", "fix the URL"},
		"command":   {"ACL SETUSER NAME -eval", "ACL SETUSER NAME +eval", "NOPERM", "allow the commands"},
		"in-script": {"ACL SETUSER NAME -hget -hset -hdel -zadd", "ACL SETUSER NAME +@all", "can't run this command", "allow the commands"},
		"keys":      {"ACL SETUSER NAME resetkeys", "ACL SETUSER NAME ~*", "NOPERM", "fix the URL"},
		"type":      {"SET tickflake:{NAME} v", "DEL tickflake:{NAME}", "WRONGTYPE", "use another namespace"},
		"alone":     {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY", "connect to the primary"},
	} {
		all[name] = func(t *testing.T) Refusal {
			do(t, "ACL SETUSER "+name+" on >"+s.Password+" ~* +@all")
			return Refusal{Store: Open(t, redisUser(s, name, "namespace="+name)), Want: row[2], Advice: row[3],
				Refuse: func() {
					do(t, strings.ReplaceAll(row[0], "NAME", name))
					// A connection keeps the rights of its login until it ends.
					_ = admin.Do(Within(t), "CLIENT", "KILL", "USER", name).Err()
				},
				Fix: func() { do(t, strings.ReplaceAll(row[1], "NAME", name)) }}
		}
	}
	testRefusals(t, all)
}
