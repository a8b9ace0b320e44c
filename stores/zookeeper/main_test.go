package zookeeper

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
)

// startServer runs ZooKeeper until the test ends, and returns its address.
func startServer(t testing.TB) (*servertest.Process, string) {
	t.Helper()
	port := servertest.Port(t)
	addr := fmt.Sprint("127.0.0.1:", port)
	config, err := server.ZooKeeper(servertest.Dir(t, ""), port)
	servertest.Need(t, err)
	config.Ready = func(ctx context.Context) error {
		conn, err := connect(addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = stores.Wait(ctx, func() (bool, error) {
			there, _, err := conn.Exists("/")
			return there, err
		})
		return err
	}
	return servertest.Start(t, config), addr
}

func connect(addr string) (*zk.Conn, error) {
	conn, _, err := zk.Connect([]string{addr}, sessionTime, zk.WithLogger(unspoken{}))
	return conn, err
}

func newConn(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	conn, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
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
	return openURL(t, "zk://"+addr+"?namespace="+namespace)
}

// openOffline returns a Store whose server does not exist.
func openOffline(t testing.TB) *Store {
	return openURL(t, "zk://127.0.0.1:1")
}

func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
