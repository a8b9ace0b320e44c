package redis_test

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	servers "github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/redis"
)

// password is hard to hide, and hard to put into a URL.
const password = "s3cret/@:?#&%x"

// server is a private Redis.
type server struct {
	*servertest.Process
	host, port string
	addr       string
}

// start runs one that syncs each write, unless the settings say otherwise.
func start(t testing.TB, settings ...string) *server {
	t.Helper()
	dir, port := servertest.Dir(t, ""), servertest.Port(t)
	config, err := servers.Redis(dir, port)
	servertest.Need(t, err)
	config.Args = append(append(config.Args, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
		"--requirepass", password, "--masterauth", password, "--repl-diskless-sync-delay", "0"), settings...)
	s := &server{host: "127.0.0.1", port: strconv.Itoa(port)}
	s.addr = net.JoinHostPort(s.host, s.port)
	client := driver.NewClient(&driver.Options{Addr: s.addr, Password: password})
	t.Cleanup(func() { _ = client.Close() })
	config.Ready = func(ctx context.Context) error { return client.Ping(ctx).Err() }
	s.Process = servertest.Start(t, config)
	return s
}

func (s *server) options() *driver.Options {
	return &driver.Options{Addr: s.addr, Password: password}
}

// admin returns a client of the default user's.
func (s *server) admin(t testing.TB) *driver.Client {
	client := driver.NewClient(s.options())
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *server) url(params ...string) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("default", password), Host: s.addr, Path: "/0",
		RawQuery: strings.Join(params, "&")}
	return u.String()
}

func open(t testing.TB, rawURL string) *redis.Store {
	t.Helper()
	store, err := redis.Open(context.Background(), rawURL)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, store.Close())
		require.NoError(t, store.Close(), "again")
	})
	return store
}

func (s *server) open(t testing.TB, addr, namespace string) stores.Store {
	other := *s
	other.addr = addr
	return open(t, other.url("namespace="+namespace))
}

func (s *server) damage(t testing.TB, namespace, key, text string) {
	require.NoError(t, s.admin(t).HSet(within(t), "tickflake:{"+namespace+"}", key, text).Err())
}

// openNew is open by New, with a client as it is by default, which retries commands.
func (s *server) openNew(t testing.TB, addr, namespace string) stores.Store {
	options := s.options()
	options.Addr = addr
	client := driver.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	store, err := redis.New(client, namespace)
	require.NoError(t, err)
	require.NoError(t, store.Close(), "which leaves the caller's client open")
	return store
}

// counted returns a client with one connection, and the count of its round trips.
func (s *server) counted(t testing.TB) (*driver.Client, *atomic.Int64) {
	dial, n := servertest.Trips()
	options := s.options()
	options.PoolSize = 1
	options.Dialer = dial
	client := driver.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client, n
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
