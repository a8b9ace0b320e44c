package zookeeper

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/lease"
)

// jars are where Debian's package zookeeper puts the server; its manifest names what
// else it needs.
const jars = "/usr/share/java/zookeeper.jar"

// startServer runs ZooKeeper until the test ends, and returns its address.
func startServer(t testing.TB) (*servertest.Process, string) {
	t.Helper()
	if _, err := os.Stat(jars); err != nil {
		servertest.Missing(t, "%s not found; install it with: apt-get install zookeeper", jars)
	}
	java := servertest.Find(t, "java", "default-jre-headless")
	dir := servertest.Dir(t, "")
	port := servertest.Port(t)
	addr := fmt.Sprint("127.0.0.1:", port)
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n", dir, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return servertest.Start(t, servertest.Config{
		Path: java,
		Args: []string{"-Xmx256m", "-Dzookeeper.jmx.log4j.disable=true", "-cp", jars + ":/usr/share/java/slf4j-nop.jar", "org.apache.zookeeper.server.quorum.QuorumPeerMain", config},
		Dir:  dir,
		Ready: func(ctx context.Context) error {
			conn, err := connect(addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = await(ctx, func() (bool, error) {
				there, _, err := conn.Exists("/")
				return there, err
			})
			return err
		},
	}), addr
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

func openStore(t testing.TB, addr, namespace string) lease.Store {
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
