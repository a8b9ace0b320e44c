package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/sequence/sequencetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/redis"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestConformance(t *testing.T) {
	s := start(t)
	open := func(t testing.TB, namespace string) stores.Store { return s.open(t, s.addr, namespace) }
	storetest.TestStore(t, open)
	sequencetest.TestSequences(t, open)
}

// A cluster of one server, with a client that would rather ask replicas.
func TestConformanceOfCluster(t *testing.T) {
	// By itself its bus takes the port 10000 above the other, which may be in use.
	s := start(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(servertest.Port(t)))
	admin := s.admin(t)
	require.NoError(t, admin.ClusterAddSlotsRange(within(t), 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, err := admin.ClusterInfo(within(t)).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, 20*time.Second, 10*time.Millisecond)
	client := func(t testing.TB) *driver.ClusterClient {
		client := driver.NewClusterClient(&driver.ClusterOptions{Addrs: []string{s.addr}, Password: password, ReadOnly: true})
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
	_, err = swap(within(t), store, stores.Cell{Key: "node/0000001"}, nil)
	assert.ErrorIs(t, err, redis.ErrReplicas, "WAIT goes to the server that has the cells")
	promises, err := store.Durability(within(t))
	require.NoError(t, err)
	assert.Contains(t, strings.Join(promises.Risks, "\n"), "has 0 replicas, and 1 are to confirm")
}

func TestFaults(t *testing.T) {
	s := start(t)
	storetest.TestServer(t, storetest.Server{Addr: s.addr, Open: s.open, Damage: s.damage, Kill: s.Kill, Start: s.Start})
}

// A client that retries by default does not retry our writes.
func TestFaultsOfClientThatRetries(t *testing.T) {
	s := start(t)
	storetest.TestServer(t, storetest.Server{Addr: s.addr, Open: s.openNew, Damage: s.damage, Kill: s.Kill, Start: s.Start})
}

func TestReplicas(t *testing.T) {
	s := start(t)
	lonely := open(t, s.url("replicas=1"))
	_, err := swap(within(t), lonely, stores.Cell{Key: "node/0000001"}, []byte("v"))
	require.ErrorIs(t, err, redis.ErrReplicas)
	assert.NotErrorIs(t, err, stores.ErrConflict)
	_, err = lonely.Read(within(t), "node/0000001")
	require.ErrorIs(t, err, redis.ErrReplicas, "it is not safe yet")
	cell, err := open(t, s.url()).Read(within(t), "node/0000001")
	require.NoError(t, err)
	assert.Equal(t, "v", string(cell.Value), "but written")
	_, err = swap(within(t), lonely, stores.Cell{Key: "node/0000001"}, []byte("w"))
	require.ErrorIs(t, err, stores.ErrConflict, "which is known without replicas")

	replica := start(t, "--replicaof", s.host+" "+s.port)
	admin := s.admin(t)
	require.Eventually(t, func() bool { return admin.Wait(within(t), 1, time.Second).Val() == 1 }, 20*time.Second, time.Millisecond)
	// A disk that takes longer than WAIT is not what is tried here.
	toDisk := func(when string) {
		for _, c := range []*driver.Client{admin, replica.admin(t)} {
			require.NoError(t, c.ConfigSet(within(t), "appendfsync", when).Err())
		}
	}
	toDisk("no")
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
		return open(t, s.url("replicas=1", "namespace="+namespace))
	})
	toDisk("always")

	// Each Read sends them something: new servers do not wait otherwise.
	received := func() string {
		info, err := replica.admin(t).Info(within(t), "commandstats").Result()
		require.NoError(t, err)
		_, calls, _ := strings.Cut(info, "cmdstat_hdel:calls=")
		calls, _, _ = strings.Cut(calls, ",")
		return calls
	}
	before := received()
	is, err := lonely.Read(within(t), "node/0000001")
	require.NoError(t, err)
	assert.Equal(t, cell, is)
	assert.NotEqual(t, before, received())
	beside := open(t, replica.url())
	cells, err := beside.List(within(t), "", "\x7f", 1<<30)
	require.NoError(t, err)
	assert.Equal(t, []stores.Cell{cell}, cells, "it has got the cell")
	_, err = beside.Read(within(t), "node/0000001")
	assert.ErrorContains(t, err, "READONLY", "but is not asked for it")
	_, err = swap(within(t), beside, cell, nil)
	assert.ErrorContains(t, err, "READONLY")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	promises, err := beside.Durability(within(t))
	require.NoError(t, err)
	assert.Contains(t, strings.Join(promises.Risks, "\n"), `role is "slave"`)
	promises, err = open(t, s.url()).Durability(within(t))
	require.NoError(t, err)
	assert.Contains(t, strings.Join(promises.Risks, "\n"), "has 1 replicas, and no write waits for them")
	promises, err = lonely.Durability(within(t))
	require.NoError(t, err)
	assert.Zero(t, promises)

	// A primary that misses the replicas it needs may have been replaced.
	require.NoError(t, admin.ConfigSet(within(t), "min-replicas-to-write", "2").Err())
	_, err = lonely.Read(within(t), "node/0000001")
	assert.ErrorContains(t, err, "NOREPLICAS")
}

func TestDurability(t *testing.T) {
	s := start(t)
	store := open(t, s.url())
	promises, err := store.Durability(within(t))
	require.NoError(t, err)
	assert.Zero(t, promises)
	admin := s.admin(t)
	for _, set := range [][2]string{{"maxmemory-policy", "allkeys-lru"}, {"appendfsync", "everysec"}} {
		require.NoError(t, admin.ConfigSet(within(t), set[0], set[1]).Err())
		promises, err = store.Durability(within(t))
		require.NoError(t, err)
		assert.Contains(t, strings.Join(promises.Risks, "\n"), set[0]+" is "+set[1])
		assert.Empty(t, promises.Forgets)
	}
	require.NoError(t, admin.ConfigSet(within(t), "maxmemory", "100mb").Err())
	promises, err = store.Durability(within(t))
	require.NoError(t, err)
	assert.Contains(t, strings.Join(promises.Forgets, "\n"), "maxmemory-policy is allkeys-lru with maxmemory 104857600")
	require.NoError(t, admin.ConfigSet(within(t), "maxmemory", "0").Err())

	// The rights that the package's doc lists, and no others.
	require.NoError(t, admin.Do(within(t), "acl", "setuser", "poor", "on", ">"+password, "~tickflake:*",
		"+eval", "+hget", "+hset", "+hdel", "+zadd", "+zrangebylex", "+ping").Err())
	poor := open(t, strings.Replace(s.url(), "//default", "//poor", 1))
	cell, err := swap(within(t), poor, stores.Cell{Key: "node/0000001"}, []byte("v"))
	require.NoError(t, err)
	is, err := poor.Read(within(t), "node/0000001")
	require.NoError(t, err)
	assert.Equal(t, cell, is)
	cells, err := poor.List(within(t), "", "\x7f", 9)
	require.NoError(t, err)
	assert.Equal(t, []stores.Cell{cell}, cells)
	promises, err = poor.Durability(within(t))
	require.NoError(t, err)
	assert.Len(t, promises.Unknown, 5)
	assert.Empty(t, promises.Forgets)

	require.NoError(t, s.Kill())
	_, err = store.Durability(within(t))
	assert.ErrorContains(t, err, "redis at ")
}

// A server that forgets what it has acknowledged is refused, unless the URL accepts it.
func TestForgetfulServerIsRefused(t *testing.T) {
	s := start(t, "--appendonly", "no")
	_, err := stores.Open(within(t), s.url())
	require.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, "appendonly is no")
	assert.ErrorContains(t, err, "set it to yes")
	assert.NotContains(t, err.Error(), "s3cret")
	store, err := stores.Open(within(t), s.url("forgetful=allow", "namespace=n"))
	require.NoError(t, err)
	_, err = store.Swap(within(t), "k", 0, []byte("v"))
	require.NoError(t, err)
	require.NoError(t, s.Kill())
	require.NoError(t, s.Start())
	cell, err := store.Read(within(t), "k")
	require.NoError(t, err)
	assert.Zero(t, cell.Version, "which is the reason")
	require.NoError(t, store.Close())

	good := start(t, "--appendfsync", "everysec")
	store, err = stores.Open(within(t), good.url())
	require.NoError(t, err)
	require.NoError(t, store.Close())
}

// A refusal is final, and not waited out.
func TestOpenIsDenied(t *testing.T) {
	s := start(t)
	require.NoError(t, s.admin(t).Do(within(t), "acl", "setuser", "weak", "on", ">"+password, "~*", "+@all", "-ping").Err())
	wrong := url.URL{Scheme: "redis", User: url.UserPassword("default", "wrong"), Host: s.addr}
	for _, rawURL := range []string{wrong.String(), "redis://" + s.addr, strings.Replace(s.url(), "//default", "//weak", 1)} {
		ctx := within(t)
		_, err := stores.Open(ctx, rawURL)
		assert.ErrorIs(t, err, stores.ErrRefused)
		assert.NoError(t, ctx.Err())
	}
}

// INFO tells what CONFIG would.
func TestForgetfulServerWithoutConfigIsRefused(t *testing.T) {
	s := start(t, "--appendonly", "no")
	require.NoError(t, s.admin(t).Do(within(t), "acl", "setuser", "rented", "on", ">"+password, "~*", "+@all", "-config").Err())
	_, err := stores.Open(within(t), strings.Replace(s.url(), "//default", "//rented", 1))
	assert.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, "appendonly is no")
}

// A replica that takes writes loses them when it syncs with its primary.
func TestWritableReplicaIsRefused(t *testing.T) {
	primary := start(t)
	replica := start(t, "--replicaof", primary.host+" "+primary.port, "--replica-read-only", "no")
	_, err := stores.Open(within(t), replica.url())
	assert.ErrorIs(t, err, stores.ErrForgets)
	assert.ErrorContains(t, err, "connect to the primary")
}

// A connection that is lost in the middle of the questions leaves no setting unknown.
func TestDurabilityOfALostConnection(t *testing.T) {
	s := start(t, "--appendonly", "no")
	options := s.options()
	options.MaxRetries = -1
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return cutAt{conn, "appendonly"}, err
	}
	client := driver.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	store, err := redis.New(client, "n")
	require.NoError(t, err)
	_, err = store.Durability(within(t))
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

// Open waits for a server that is being started.
func TestOpenWaits(t *testing.T) {
	s := start(t)
	require.NoError(t, s.Kill())
	_, err := stores.Open(context.Background(), s.url())
	require.ErrorContains(t, err, "refused", "without a deadline it tries once")
	started := make(chan error, 1)
	go func() { started <- s.Start() }()
	store, err := stores.Open(within(t), s.url())
	require.NoError(t, err)
	require.NoError(t, store.Close())
	require.NoError(t, <-started)
}

// Data of other programs under our key is neither taken for a cell nor overwritten, and
// hides no cell.
func TestForeignData(t *testing.T) {
	s := start(t)
	admin, ctx := s.admin(t), within(t)
	hash := func(namespace string) string { return "tickflake:{" + namespace + "}" }
	store := open(t, s.url("namespace=junk"))
	good, err := swap(ctx, store, stores.Cell{Key: "b"}, []byte("good"))
	require.NoError(t, err)
	require.NoError(t, admin.HSet(ctx, hash("junk"), "JUNK", "5 v").Err())
	require.NoError(t, admin.ZAdd(ctx, hash("junk")+":keys", driver.Z{Member: "JUNK"}).Err())
	cells, err := store.List(ctx, "", "\x7f", 1)
	assert.ErrorIs(t, err, stores.ErrDamaged)
	assert.ErrorContains(t, err, `cell "JUNK" is damaged`)
	assert.Equal(t, []stores.Cell{good}, cells)
	// With other scores, a page ends before its begin.
	for score, key := range []string{"y", "x", "z"} {
		require.NoError(t, admin.ZAdd(ctx, hash("order")+":keys", driver.Z{Member: key, Score: float64(score)}).Err())
	}
	_, err = open(t, s.url("namespace=order")).List(ctx, "", "\x7f", 2)
	require.NoError(t, err)

	require.NoError(t, admin.Set(ctx, hash("string"), "v", 0).Err())
	store = open(t, s.url("namespace=string"))
	_, err = store.Swap(ctx, "a", 0, nil)
	assert.ErrorContains(t, err, "WRONGTYPE")
	assert.NotErrorIs(t, err, stores.ErrConflict)
	assert.Equal(t, "v", admin.Get(ctx, hash("string")).Val())
}

func TestRoundTrips(t *testing.T) {
	s := start(t)
	client, n := s.counted(t)
	for _, replicas := range []int{0, 1} {
		if replicas == 1 {
			start(t, "--replicaof", s.host+" "+s.port)
			require.Eventually(t, func() bool { return client.Wait(within(t), 1, time.Second).Val() == 1 }, 20*time.Second, time.Millisecond)
		}
		store, err := redis.New(client, fmt.Sprint("trips", replicas), redis.WithReplicas(replicas))
		require.NoError(t, err)
		cell, err := store.Read(within(t), "node/0000001")
		require.NoError(t, err)
		took := func(what string, want int64, f func() error) {
			before := n.Load()
			require.NoError(t, f())
			t.Logf("%d replicas: %s: %d round trips", replicas, what, n.Load()-before)
			assert.LessOrEqual(t, n.Load()-before, want)
		}
		_, err = store.Durability(within(t)) // the client has another connection for pipelines
		require.NoError(t, err)
		for range 2 {
			took("Swap", 1, func() (err error) {
				cell, err = swap(within(t), store, cell, []byte("v"))
				return err
			})
			took("Swap that conflicts", 1, func() error {
				_, err := swap(within(t), store, stores.Cell{Key: "node/0000001", Version: 1}, nil)
				require.ErrorIs(t, err, stores.ErrConflict)
				return nil
			})
			took("Read", 1, func() error { _, err := store.Read(within(t), "node/0000001"); return err })
			took("List", 1, func() error { _, err := store.List(within(t), "", "\x7f", 1<<30); return err })
			took("Durability", 2, func() error { _, err := store.Durability(within(t)); return err })
		}
	}
}

// Other bad URLs are tried in package stores.
func TestOpenOfBadURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"":                                 "begins with redis:// or rediss://",
		"unix://u:s3cret@/run/redis":       "begins with redis:// or rediss://",
		"redis://u:s3/cret@h":              "percent-encode",
		"redis://s3cret@h":                 "a user and no password",
		"redis://":                         "no host",
		"redis://u:cret@h/cret":            "database number",
		"redis://u:s3cret@h/x":             "database number",
		"redis://u:s3cret@h/0/1":           "URL path",
		"redis://u:s3cret@h?nonsense=1":    "unexpected option",
		"redis://u:s3cret@h?namespace=a.b": "holds '.'",
		"redis://u:s3cret@h?replicas=-1":   "replicas",
		"redis://u:s3cret@h?replicas=101":  "replicas",
		"redis://u:s3cret@h?replicas=x":    "replicas",
		// In an unusual place.
		"redis://:p@h/s3cret":              "it is about: database number",
		"redis://:p@h/0/s3cret":            "URL path",
		"redis://:p@h/s3%22cret":           "database number",
		"redis://h/s3cret":                 "database number",
		"redis://h?db=s3cret":              "database number",
		"redis://h?password=s3cret":        "unexpected option",
		"redis://h?s3cret=1":               "unexpected option",
		"redis://h?s3cret":                 "unexpected option",
		"redis://h?pool_size=s3cret":       "pool_size",
		"redis://h?pool_size=1&s3cret=":    "unexpected option",
		"redis://h?read_timeout=s3cret":    "read_timeout",
		"redis://h?read_timeout=%00s3cret": "read_timeout",
		"redis://h?pool_fifo=s3cret":       "pool_fifo",
		"rediss://h?skip_verify=s3cret":    "skip_verify",
		"redis://h?replicas=s3cret":        "replicas",
		"redis://h:s3cret":                 "malformed",
	} {
		store, err := redis.Open(t.Context(), rawURL)
		require.Nil(t, store, rawURL)
		bad, ok := errors.AsType[*stores.URLError](err)
		require.True(t, ok, "%s: %v", rawURL, err)
		assert.Contains(t, bad.Error(), want, rawURL)
		for e := err; e != nil; e = errors.Unwrap(e) {
			text := fmt.Sprintf("%v %+v %#v", e, e, e)
			assert.NotContains(t, text, "s3", rawURL)
			assert.NotContains(t, text, "cret", rawURL)
		}
	}
	for _, rawURL := range []string{"redis://h", "rediss://:p@h:1/2?read_timeout=5&replicas=3&namespace=A-b", "redis://[::1]:1"} {
		require.NotNil(t, open(t, rawURL))
	}
}

func TestNewOfBadThings(t *testing.T) {
	client := driver.NewClient(&driver.Options{})
	defer func() { _ = client.Close() }()
	_, err := redis.New(client, "a b")
	assert.ErrorContains(t, err, "namespace \"a b\"")
	for _, n := range []int{-1, 101} {
		_, err = redis.New(client, "a", redis.WithReplicas(n))
		assert.EqualError(t, err, fmt.Sprintf("redis.WithReplicas(%d): want 0 to 100", n))
	}
	_, err = redis.New(client, "a", redis.WithReplicas(1), nil)
	assert.EqualError(t, err, "redis.New: option 2 of 2 is nil")
	_, err = redis.New(nil, "a")
	assert.Error(t, err)
	_, err = redis.New((*driver.Client)(nil), "a")
	assert.Error(t, err)
	ring := driver.NewRing(&driver.RingOptions{})
	defer func() { _ = ring.Close() }()
	_, err = redis.New(ring, "a")
	assert.ErrorContains(t, err, "Ring")
}

func TestPasswordIsNotShown(t *testing.T) {
	s := start(t)
	for rawURL, want := range map[string]string{
		strings.Replace(s.url(), "s3cret", "wr0ng", 1):     "WRONGPASS",
		strings.Replace(s.url(), s.addr, "127.0.0.1:1", 1): "refused",
		strings.Replace(s.url(), "redis:", "rediss:", 1):   "",
		strings.Replace(s.url(), "/0", "/99", 1):           "out of range",
	} {
		limit := 20 * time.Second // the driver tries again, and again
		if want == "" {
			limit = 2 * time.Second // it never answers
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := open(t, rawURL).Read(ctx, "node/0000001")
		cancel()
		require.Error(t, err)
		text := fmt.Sprintf("%v %+v %q", err, err, err)
		assert.Contains(t, text, want)
		for _, part := range []string{"s3cret", "wr0ng", "%3A%3F"} {
			assert.NotContains(t, text, part)
		}
	}
}

// swap is Swap from a cell to the next.
func swap(ctx context.Context, s stores.Store, old stores.Cell, value []byte) (stores.Cell, error) {
	version, err := s.Swap(ctx, old.Key, old.Version, value)
	if err != nil {
		return stores.Cell{}, err
	}
	return stores.Cell{Key: old.Key, Version: version, Value: value}, nil
}
