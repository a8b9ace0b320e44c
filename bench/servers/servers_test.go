//go:build linux

package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asServer is the variable that makes this program start servers and wait.
const asServer = "SERVERS_TEST_START"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		started, _ := Start(context.Background(), Wanted{Kind: PostgreSQL}, Wanted{Kind: Redis})
		for _, s := range started {
			fmt.Println(s.Kind, s.Err)
		}
		fmt.Println("all started")
		select {}
	}
	os.Exit(m.Run())
}

// need skips the test if a server is not installed, or fails it, as package servertest
// does.
func need(t *testing.T, s *Server) {
	t.Helper()
	if s.Missing() && os.Getenv("TICKFLAKE_REQUIRE_SERVERS") != "1" {
		t.Skip(s.Err)
	}
	require.NoError(t, s.Err)
}

// home returns a directory in which all that is started keeps its data.
func home(t *testing.T) string {
	dir, err := os.MkdirTemp("/var/tmp", "servers-test")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) // the servers may have other users
	t.Setenv("TMPDIR", dir)
	return dir
}

// processes returns what runs in dir, or has its name in its arguments.
func processes(t *testing.T, dir string) (found []string) {
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, process := range all {
		command, _ := os.ReadFile(process + "/cmdline") // it may have ended
		where, _ := os.Readlink(process + "/cwd")
		if strings.Contains(string(command), dir) || strings.HasPrefix(where, dir) {
			found = append(found, fmt.Sprintf("%s in %s: %q", process, where, command))
		}
	}
	return found
}

func entries(t *testing.T, dir string) []os.DirEntry {
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	return all
}

// Several MariaDBs, since one that starts once removed temporary tables of the others.
func TestServersRunUntilStopped(t *testing.T) {
	dir := home(t)
	started, stop := Start(t.Context(), Wanted{Kind: PostgreSQL}, Wanted{Kind: MariaDB}, Wanted{Kind: MariaDB}, Wanted{Kind: MariaDB},
		Wanted{Kind: Redis, Settings: []string{"--appendonly", "yes"}}, Wanted{Kind: ZooKeeper})
	defer func() { require.NoError(t, stop()) }()
	for _, s := range started {
		need(t, s)
		assert.Regexp(t, `^\d+\.\d`, s.Version, s.Kind)
	}
	for _, s := range started[:4] {
		db, err := s.SQL(nil)
		require.NoError(t, err)
		_, err = db.Exec("CREATE TABLE t (id int PRIMARY KEY)")
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
	for _, user := range []string{"root", "bench"} {
		config := mysql.NewConfig()
		config.Net, config.Addr, config.User = "tcp", started[1].Addr, user
		connector, err := mysql.NewConnector(config)
		require.NoError(t, err)
		_, err = connector.Connect(t.Context())
		assert.ErrorContains(t, err, "Access denied", "without a password")
	}

	client, err := started[4].Redis()
	require.NoError(t, err)
	settings, err := client.ConfigGet(t.Context(), "append*").Result()
	require.NoError(t, err)
	assert.Equal(t, "yes", settings["appendonly"])
	require.NoError(t, client.Close())

	conn, _, err := zk.Connect([]string{started[5].Addr}, time.Second*10, zk.WithLogInfo(false))
	require.NoError(t, err)
	_, err = conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	conn.Close()

	assert.NotEmpty(t, processes(t, dir))
	require.NoError(t, stop())
	assert.Empty(t, processes(t, dir))
	assert.Empty(t, entries(t, dir))
	require.NoError(t, stop(), "again")
}

// Not even kill -9 leaves servers behind.
func TestServersEndWithTheProgram(t *testing.T) {
	dir := home(t)
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), asServer+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said strings.Builder
	for !strings.Contains(said.String(), "all started\n") {
		buffer := make([]byte, 4096)
		n, err := out.Read(buffer)
		said.Write(buffer[:n])
		require.NoError(t, err, said.String())
	}
	running := processes(t, dir)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	if strings.Contains(said.String(), "is not installed") && os.Getenv("TICKFLAKE_REQUIRE_SERVERS") != "1" {
		t.Skip(said.String())
	}
	require.NotContains(t, strings.ReplaceAll(said.String(), "<nil>", ""), ":", "each has started")
	assert.Greater(t, len(running), 2)
	assert.Eventually(t, func() bool { return len(processes(t, dir)) == 0 }, 30*time.Second, 10*time.Millisecond)
}
