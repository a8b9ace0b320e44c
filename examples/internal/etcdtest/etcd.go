// Package etcdtest runs an etcd for a test, as a process that the test can kill and
// start again. The test binary is its program, if it begins with Main:
//
//	func TestMain(m *testing.M) {
//		etcdtest.Main()
//		os.Exit(m.Run())
//	}
package etcdtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/etcd"
)

// The environment of the process that is the server.
const (
	dirEnv     = "ETCDTEST_DIR" // of its data; without it, the process is none
	clientsEnv = "ETCDTEST_CLIENTS"
	peersEnv   = "ETCDTEST_PEERS"
)

// Main makes the process an etcd, and does not return, if Start has started it.
func Main() {
	if dir := os.Getenv(dirEnv); dir != "" {
		fmt.Fprintln(os.Stderr, serve(dir))
		os.Exit(1)
	}
}

func serve(dir string) error {
	address := func(port string) []url.URL {
		return []url.URL{{Scheme: "http", Host: "127.0.0.1:" + port}}
	}
	config := embed.NewConfig()
	config.Dir, config.LogLevel = dir, "error"
	config.ListenClientUrls = address(os.Getenv(clientsEnv))
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = address(os.Getenv(peersEnv))
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}

// Start runs etcd until the test ends, and returns its URL.
func Start(t testing.TB) (server *servertest.Process, storeURL string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, port := servertest.Dir(t, ""), strconv.Itoa(servertest.Port(t))
	storeURL = "etcd://127.0.0.1:" + port
	return servertest.Start(t, servertest.Config{
		Path:  self,
		Env:   []string{dirEnv + "=" + dir + "/data", clientsEnv + "=" + port, peersEnv + "=" + strconv.Itoa(servertest.Port(t))},
		Dir:   dir,
		Ready: func(ctx context.Context) error { _, err := Inspect(ctx, storeURL); return err },
	}), storeURL
}

// Inspect returns what the etcd tells about every node number.
func Inspect(ctx context.Context, storeURL string) ([]lease.Holding, error) {
	store, err := etcd.Open(ctx, storeURL)
	if err != nil {
		return nil, err
	}
	defer store.Close() //nolint:errcheck // only asked a question
	return lease.Inspect(ctx, store)
}
