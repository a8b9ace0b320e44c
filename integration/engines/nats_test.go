package engines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	linked "github.com/tickflake/tickflake/integration/servers/nats"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/nats"
	"github.com/tickflake/tickflake/stores/storetest"
)

func natsClient(t testing.TB, addr string) jetstream.JetStream {
	t.Helper()
	conn, err := natsgo.Connect("nats://"+addr, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	client, err := jetstream.New(conn)
	require.NoError(t, err)
	return client
}

func TestNATS(t *testing.T) {
	t.Parallel()
	s := servers.For(t, servers.NATS)
	remove := func(do func(ctx context.Context, kv jetstream.KeyValue, key string) error) func(testing.TB, string, string) {
		return func(t testing.TB, namespace, key string) {
			kv, err := natsClient(t, s.Addr).KeyValue(Within(t), namespace)
			require.NoError(t, err)
			require.NoError(t, do(Within(t), kv, strings.ReplaceAll(key, "/", ".")))
		}
	}
	e := Engine{
		Name: "nats at " + s.Addr, Server: s,
		Damage: func(t testing.TB, namespace, key, text string) {
			kv, err := natsClient(t, s.Addr).KeyValue(Within(t), namespace)
			require.NoError(t, err)
			_, err = kv.Put(Within(t), strings.ReplaceAll(key, "/", "."), []byte(text))
			require.NoError(t, err)
		},
		Delete: map[string]func(testing.TB, string, string){
			"deleted": remove(func(ctx context.Context, kv jetstream.KeyValue, key string) error { return kv.Delete(ctx, key) }),
			"purged":  remove(func(ctx context.Context, kv jetstream.KeyValue, key string) error { return kv.Purge(ctx, key) }),
		},
		TLS: func(url string) string { return strings.Replace(url, "nats://", "tls://", 1) },
		BeforeTLS: func(conn net.Conn) {
			_, _ = io.WriteString(conn, `INFO {"server_id":"x","version":"2.15.0","proto":1,"headers":true,"max_payload":1048576,"tls_required":true}`+"\r\n")
		},
		AtRest: 1, AtMost: 5, // a closed connection counts for a moment
	}
	e.Test(t)
	t.Run("stale leader", func(t *testing.T) { testStale(t, e) })
	t.Run("unfit buckets", func(t *testing.T) { testUnfit(t, e) })
}

// staleLeader is a leader that was deposed: it answers the next request for a message by the text in next, if there
// is one, and last has its last answer. While it is silent, it does not answer the next one. Its buckets have replicas.
type staleLeader struct {
	last, next atomic.Pointer[string]
	silent     atomic.Bool
}

func (l *staleLeader) answer(to io.Writer, from io.Reader) {
	answers := bufio.NewReader(from)
	for line, err := answers.ReadString('\n'); err == nil; line, err = answers.ReadString('\n') {
		if fields := strings.Fields(line); strings.HasPrefix(line, "MSG ") {
			size, _ := strconv.Atoi(fields[len(fields)-1])
			payload := make([]byte, size+2)
			_, _ = io.ReadFull(answers, payload)
			text := strings.Replace(string(payload[:size]), `"num_replicas":1`, `"num_replicas":3`, 1)
			if strings.Contains(text, "stream_msg_get_response") {
				if l.silent.Swap(false) {
					continue
				}
				if old := l.next.Swap(nil); old != nil {
					text = *old
				}
				l.last.Store(&text)
			}
			fields[len(fields)-1] = strconv.Itoa(len(text))
			line = strings.Join(fields, " ") + "\r\n" + text + "\r\n"
		}
		_, _ = io.WriteString(to, line)
	}
}

// A leader that does not know the latest write makes neither an old cell of a Read nor a write
// over a cell that it does not know.
func testStale(t *testing.T, e Engine) {
	var leader staleLeader
	Cell(t, e.Open(t, e.Server.Addr, "stale"), "other", "") // makes the bucket
	s := e.Open(t, relay(t, e.Server.Addr, plain, leader.answer), "stale")
	first := Cell(t, s, "a", "first")
	_, err := s.Read(Within(t), "a")
	require.NoError(t, err)
	old := leader.last.Load()
	second := Swap(t, s, first, "second")

	leader.next.Store(old)
	is, err := s.Read(Within(t), "a")
	require.NoError(t, err)
	assert.Equal(t, second, is)
	leader.next.Store(old)
	_, err = s.Swap(Within(t), "a", first.Version, []byte("late"))
	assert.ErrorIs(t, err, stores.ErrConflict)
	leader.next.Store(old)
	Swap(t, s, second, "third")
	assert.Nil(t, leader.next.Load(), "it was asked")

	leader.silent.Store(true)
	is, err = s.Read(Within(t), "a")
	require.NoError(t, err)
	assert.Equal(t, "third", string(is.Value))
	assert.False(t, leader.silent.Load(), "it was asked")
	assert.Len(t, Cells(t, s), 2, "what confirms is no cell")
}

// Buckets that would lose cells, or show old ones, are refused and left alone. So is the stream
// of another program with the name of a bucket.
func testUnfit(t *testing.T, e Engine) {
	client := natsClient(t, e.Server.Addr)
	used := e.Open(t, e.Server.Addr, "used")
	Works(t, used)
	require.NoError(t, client.DeleteKeyValue(Within(t), "used"))
	for _, do := range Operations(used, stores.Cell{Key: "node/0000001"}) {
		require.ErrorContains(t, do(Within(t)), "was deleted")
	}
	Works(t, e.Open(t, e.Server.Addr, "fit"))
	made, err := client.Stream(Within(t), "KV_fit")
	require.NoError(t, err)
	// like returns the settings of a bucket that we have made, with another name.
	like := func(name string) jetstream.StreamConfig {
		config := made.CachedInfo().Config
		config.Name, config.Subjects = "KV_"+name, []string{"$KV." + name + ".>"}
		return config
	}
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"memory":  func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"history": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"age":     func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"count":   func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 10, jetstream.DiscardOld },
		"bytes":   func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 1000, jetstream.DiscardOld },
		"direct":  func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"work":    func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"async":   func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"noack":   func(c *jetstream.StreamConfig) { c.NoAck = true },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, config := Within(t), like(name)
			change(&config)
			unfit, err := client.CreateStream(ctx, config)
			require.NoError(t, err)
			s := Open(t, e.URL(e.Server.Addr, name)+"&forgetful=allow")
			for _, do := range Operations(s, stores.Cell{Key: "node/0000001"}) {
				assert.ErrorIs(t, do(ctx), nats.ErrBucket)
			}
			_, err = stores.Open(ctx, e.URL(e.Server.Addr, name))
			assert.ErrorIs(t, err, stores.ErrForgets)
			info, err := unfit.Info(ctx)
			require.NoError(t, err)
			assert.Zero(t, info.State.Msgs, "it has changed")
		})
	}
	_, err = client.CreateKeyValue(Within(t), jetstream.KeyValueConfig{Bucket: "added"}) // as "nats kv add"
	require.NoError(t, err)
	_, err = stores.Open(Within(t), e.URL(e.Server.Addr, "added"))
	assert.ErrorIs(t, err, stores.ErrForgets)

	limits := like("limited")
	limits.MaxBytes, limits.Description = 1<<20, "made by hand"
	_, err = client.CreateStream(Within(t), limits)
	require.NoError(t, err)
	Works(t, e.Open(t, e.Server.Addr, "limited"))

	_, err = client.CreateStream(Within(t), jetstream.StreamConfig{Name: "KV_foreign", Subjects: []string{"foreign"}})
	require.NoError(t, err)
	_, err = Open(t, e.URL(e.Server.Addr, "foreign")+"&forgetful=allow").Read(Within(t), "node/0000001")
	assert.Equal(t, stores.Permanent, stores.KindOf(err))
	assert.ErrorContains(t, err, "take another namespace")
}

// natsRights are those of the package's doc, for the namespace fleet.
const natsRights = `publish: ["$JS.API.STREAM.INFO.KV_fleet", "$JS.API.STREAM.CREATE.KV_fleet", "$JS.API.STREAM.MSG.GET.KV_fleet",
  "$KV.fleet.>"], subscribe: "_INBOX.>"`

// The rights in the package's doc are enough, and needed. The server has its users in its file of
// settings, so each change is a restart.
func TestNATSRights(t *testing.T) {
	t.Parallel()
	const password, inURL = "p@ss/wo:rd%?#", "p%40ss%2Fwo%3Ard%25%3F%23"
	s := servers.For(t, servers.NATS)
	restart := func(password, permissions string) {
		require.NoError(t, s.Kill())
		require.NoError(t, s.Configure(linked.Settings(s, fmt.Sprintf("authorization { users = [{user: flake, password: %q, permissions: {%s}}] }", password, permissions))...))
		require.NoError(t, s.Start())
	}
	restart(password, natsRights)
	url := "nats://flake:" + inURL + "@" + s.Addr
	Works(t, Open(t, url+"?namespace=fleet"))
	violated := func(err error) bool { return errors.Is(err, natsgo.ErrPermissionViolation) }
	assert.Error(t, Fails(t, violated, func(ctx context.Context) error { // it is not answered
		_, err := stores.Open(ctx, url+"?namespace=other")
		return err
	}))
	testDenied(t, s, map[string]string{"nats://flake:wr0ng@" + s.Addr: "nats at " + s.Addr + ": open: "})

	refusal := func(advice, password2, permissions string) func(*testing.T) Refusal {
		return func(t *testing.T) Refusal {
			return Refusal{Store: Open(t, url+"?namespace=fleet"), Advice: advice, Reads: true,
				Refuse: func() { restart(password2, permissions) }, Fix: func() { restart(password, natsRights) }}
		}
	}
	testRefusals(t, map[string]func(*testing.T) Refusal{
		"password": refusal("fix the URL", "other", natsRights),
		"rights":   refusal("grant the rights", password, `publish: "nothing"`),
	})
}

// Leaf nodes have a JetStream of their own, in a domain, behind what looks like one NATS. A store is in the domain that its URL
// names, whichever server it reaches, and without a name it is in none of them. A server alone keeps one copy.
func TestNATSDomains(t *testing.T) {
	t.Parallel()
	port, err := program.Port()
	require.NoError(t, err)
	all := map[string]*servers.Server{}
	for _, domain := range []string{"hub", "one", "two"} {
		s := servers.For(t, servers.NATS)
		leaf := fmt.Sprintf(`leafnodes { listen: "127.0.0.1:%d" }`, port)
		if domain != "hub" {
			leaf = fmt.Sprintf(`leafnodes { remotes: [{ url: "nats://127.0.0.1:%d" }] }`, port)
		}
		require.NoError(t, s.Kill())
		require.NoError(t, s.Configure(linked.Settings(s, fmt.Sprintf(`jetstream { store_dir: %q, domain: %q }`, s.Dir, domain), leaf)...))
		require.NoError(t, s.Start())
		all[domain] = s
	}
	unnamed := func(err error) {
		t.Helper()
		require.ErrorContains(t, err, "name one by domain=")
		assert.Equal(t, stores.Permanent, stores.KindOf(err))
	}
	for _, s := range all {
		store := Open(t, "nats://"+s.Addr)
		_, err := store.Swap(Within(t), "node/0000001", 0, nil)
		unnamed(err)
		_, err = store.Read(Within(t), "node/0000001")
		unnamed(err)
		_, err = stores.Open(Within(t), "nats://"+s.Addr)
		unnamed(err)
	}
	for _, domain := range []string{"hub", "one"} {
		cell := stores.Cell{Key: "node/0000001"}
		for _, s := range all {
			store := Open(t, "nats://"+s.Addr+"?namespace=named&domain="+domain)
			Until(t, func(ctx context.Context) error { // a leaf node may not be connected yet
				is, err := store.Read(ctx, cell.Key)
				if err == nil {
					assert.Equal(t, cell, is, "%s by way of %s", domain, s.Addr)
				}
				return err
			})
			cell = Swap(t, store, cell, s.Addr)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = stores.Open(ctx, "nats://"+all["hub"].Addr+"?domain=none")
	require.ErrorContains(t, err, "look at the servers, and at the option domain")
	_, err = Open(t, "nats://"+all["hub"].Addr+"?domain=hub&namespace=alone&replicas=3").Swap(Within(t), "node/0000001", 0, nil)
	require.ErrorContains(t, err, "take replicas=1")

	alone := servers.For(t, servers.NATS)
	var store stores.Store
	Until(t, func(ctx context.Context) (err error) { // the driver takes either first
		store, err = stores.Open(ctx, "nats://"+alone.Addr+","+all["one"].Addr)
		return err
	})
	defer store.Close()
	Cell(t, store, "node/0000001", "alone")
	require.NoError(t, alone.Kill())
	unnamed(Fails(t, func(err error) bool { return stores.KindOf(err) == stores.Permanent }, func(ctx context.Context) error {
		_, err := store.Read(ctx, "node/0000001")
		return err
	}))
}

func TestNATSFailover(t *testing.T) {
	t.Parallel()
	c := StartTrio(t, servers.NATS, func(i int, ports [6]int) []string {
		var others []string
		for j := range 3 {
			if j != i {
				others = append(others, fmt.Sprintf(`"nats://127.0.0.1:%d"`, ports[j]))
			}
		}
		return []string{fmt.Sprintf(`cluster { name: test, listen: "127.0.0.1:%d", routes: [%s] }`, ports[i], strings.Join(others, ", "))}
	})
	// The one that leads the bucket of the fleet.
	c.Leader = func(ctx context.Context) (*servers.Server, error) {
		stream, err := natsClient(t, c.Members[0].Addr).Stream(ctx, "KV_failover")
		if err != nil || stream.CachedInfo().Cluster == nil {
			return nil, errors.Join(errors.New("the bucket has no leader"), err)
		}
		assert.Equal(t, 3, stream.CachedInfo().Config.Replicas)
		for _, m := range c.Members {
			if stream.CachedInfo().Cluster.Leader == "n"+m.Port() {
				return m, nil
			}
		}
		return nil, nil
	}
	t.Run("store", func(t *testing.T) {
		Long(t)
		n := 0
		storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
			n++
			return Open(t, "nats://"+c.Members[n%3].Addr+"?namespace="+namespace)
		})
	})
	c.Test(t)
}
