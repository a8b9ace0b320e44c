//go:build unix

package service

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/redis"
	"github.com/tickflake/tickflake/stores/storetest"
)

// behindProxy is a real Redis behind a network that is cut. While it is, the server is killed
// and started again.
func behindProxy(t testing.TB) cuttable {
	t.Helper()
	dir, port := servertest.Dir(t, ""), servertest.Port(t)
	config, err := server.Redis(dir, port)
	servertest.Need(t, err)
	config.Args = append(config.Args, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	probe := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = probe.Close() })
	config.Ready = func(ctx context.Context) error { return probe.Ping(ctx).Err() }
	process := servertest.Start(t, config)
	proxy := storetest.NewProxy(t, addr)
	store, err := stores.Open(t.Context(), "redis://"+proxy.Addr()+"/0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	cut := func() {
		proxy.Refuse()
		proxy.Cut()
		require.NoError(t, process.Kill())
	}
	mend := func() {
		require.NoError(t, process.Start())
		proxy.Resume()
	}
	return cuttable{store, cut, mend}
}
