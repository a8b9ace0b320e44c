package etcd

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
)

// serverEnv makes the test binary an etcd server instead: the data directory. It is a
// process of its own so that it can be killed.
const (
	serverEnv  = "TICKFLAKE_TEST_ETCD_DIR"
	clientsEnv = "TICKFLAKE_TEST_ETCD_CLIENTS"
	peersEnv   = "TICKFLAKE_TEST_ETCD_PEERS"
	clusterEnv = "TICKFLAKE_TEST_ETCD_CLUSTER" // NAME=URL of each member; none for a single server
	stateEnv   = "TICKFLAKE_TEST_ETCD_STATE"   // of the cluster: new or existing
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverEnv); dir != "" {
		fmt.Fprintln(os.Stderr, serve(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve runs etcd as it runs by default, with its syncing to disk.
func serve(dir string) error {
	address := func(port string) []url.URL {
		return []url.URL{{Scheme: "http", Host: "127.0.0.1:" + port}}
	}
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.BcryptCost = 4 // with the race detector, a password takes long enough
	config.ListenClientUrls = address(os.Getenv(clientsEnv))
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = address(os.Getenv(peersEnv))
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	if cluster := os.Getenv(clusterEnv); cluster != "" {
		config.Name = "m" + os.Getenv(peersEnv)
		config.InitialCluster, config.ClusterState = cluster, os.Getenv(stateEnv)
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}

// startServer runs etcd until the test ends, and returns its address.
func startServer(t testing.TB) (*servertest.Process, string) {
	t.Helper()
	return startMember(t, strconv.Itoa(servertest.Port(t)), strconv.Itoa(servertest.Port(t)))
}

// startMember runs a server on these ports, with an empty directory.
func startMember(t testing.TB, port, peers string, env ...string) (*servertest.Process, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := servertest.Dir(t, "")
	addr := "127.0.0.1:" + port
	return servertest.Start(t, servertest.Config{
		Path: self,
		Env:  append(env, serverEnv+"="+dir+"/data", clientsEnv+"="+port, peersEnv+"="+peers),
		Dir:  dir,
		Ready: func(ctx context.Context) error {
			client := newClient(t, addr)
			defer client.Close() //nolint:errcheck // only asked a question
			_, err := client.Get(ctx, "ready")
			return err
		},
	}), addr
}

func newClient(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// openURL opens a Store for the length of a test.
func openURL(t testing.TB, rawURL string) *Store {
	t.Helper()
	s, err := Open(limited(t), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func openStore(t testing.TB, addr, namespace string) stores.Store {
	return openURL(t, "etcd://"+addr+"?namespace="+namespace)
}

func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// openOffline returns a Store whose server does not exist.
func openOffline(t testing.TB) *Store {
	return openURL(t, "etcd://127.0.0.1:1")
}
