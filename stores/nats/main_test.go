package nats

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
)

// These make the test binary a NATS server instead. It is a process of its own so that
// it can be killed.
const (
	dirEnv    = "TICKFLAKE_TEST_NATS_DIR"
	portEnv   = "TICKFLAKE_TEST_NATS_PORT"
	routesEnv = "TICKFLAKE_TEST_NATS_ROUTES" // the ports of the cluster, its own first; may be none
	userEnv   = "TICKFLAKE_TEST_NATS_USER"   // and password, with a colon between; may be none
	// userFileEnv is a file with the value of userEnv, which it is read from at each start; with
	// ":nothing" after it, the user has no right.
	userFileEnv = "TICKFLAKE_TEST_NATS_USER_FILE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirEnv); dir != "" {
		fmt.Fprintln(os.Stderr, serve(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve runs NATS as the package's doc wants it.
func serve(dir string) error {
	port, err := strconv.Atoi(os.Getenv(portEnv))
	if err != nil {
		return err
	}
	options := &server.Options{
		ServerName: "n" + os.Getenv(portEnv), Host: "127.0.0.1", Port: port, NoSigs: true,
		JetStream: true, StoreDir: dir, SyncAlways: true,
	}
	who := os.Getenv(userEnv)
	if file := os.Getenv(userFileEnv); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		who = string(text)
	}
	who, nothing := strings.CutSuffix(who, ":nothing")
	if user, password, ok := strings.Cut(who, ":"); ok {
		options.Users = []*server.User{{Username: user, Password: password, Permissions: &server.Permissions{
			// As the package's doc says, for the namespace "fleet".
			Publish: &server.SubjectPermission{Allow: []string{
				"$JS.API.STREAM.INFO.KV_fleet", "$JS.API.STREAM.CREATE.KV_fleet", "$JS.API.STREAM.MSG.GET.KV_fleet",
				"$JS.API.CONSUMER.CREATE.KV_fleet.>", "$JS.API.CONSUMER.DELETE.KV_fleet.>", "$KV.fleet.>",
			}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}}
		if nothing {
			options.Users[0].Permissions.Publish.Allow = []string{"nothing"}
		}
	}
	if routes := strings.Split(os.Getenv(routesEnv), ","); len(routes) > 1 {
		options.Cluster.Name, options.Cluster.Host = "test", "127.0.0.1"
		if options.Cluster.Port, err = strconv.Atoi(routes[0]); err != nil {
			return err
		}
		for _, route := range routes[1:] {
			options.Routes = append(options.Routes, &url.URL{Scheme: "nats", Host: "127.0.0.1:" + route})
		}
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// startServer runs NATS until the test ends, and returns its address.
func startServer(t testing.TB, env ...string) (*servertest.Process, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := servertest.Dir(t, "")
	port := strconv.Itoa(servertest.Port(t))
	addr := "127.0.0.1:" + port
	return servertest.Start(t, servertest.Config{
		Path: self,
		Env:  append(env, dirEnv+"="+dir, portEnv+"="+port),
		Dir:  dir,
		Ready: func(ctx context.Context) error {
			conn, err := natsgo.Connect("nats://" + addr)
			if err != nil {
				if strings.Contains(err.Error(), "Authorization") {
					return nil
				}
				return err
			}
			defer conn.Close()
			js, err := jetstream.New(conn)
			if err != nil {
				return err
			}
			_, err = js.AccountInfo(ctx)
			return err
		},
	}), addr
}

// startCluster runs three servers, and returns the address of each.
func startCluster(t testing.TB) (processes []*servertest.Process, addrs []string) {
	t.Helper()
	var ports []string
	for range 3 {
		ports = append(ports, strconv.Itoa(servertest.Port(t)))
	}
	type started struct {
		process *servertest.Process
		addr    string
	}
	// They are ready only once they have found each other.
	results := make(chan started, 3)
	for i := range 3 {
		go func() {
			routes := append(append([]string(nil), ports[i:]...), ports[:i]...)
			process, addr := startServer(t, routesEnv+"="+strings.Join(routes, ","))
			results <- started{process, addr}
		}()
	}
	for range 3 {
		select {
		case r := <-results:
			processes, addrs = append(processes, r.process), append(addrs, r.addr)
		case <-time.After(90 * time.Second):
			t.Fatal("the cluster does not come up")
		}
	}
	return processes, addrs
}

func newClient(t testing.TB, addr string) jetstream.JetStream {
	t.Helper()
	conn, err := natsgo.Connect("nats://"+addr, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	client, err := jetstream.New(conn)
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
	return openURL(t, "nats://"+addr+"?namespace="+namespace)
}

// openOffline returns a Store whose server does not exist.
func openOffline(t testing.TB) *Store {
	conn, err := natsgo.Connect("nats://127.0.0.1:1", natsgo.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	client, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(client, "offline")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
