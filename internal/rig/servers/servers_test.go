//go:build linux

package servers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const asProgram = "SERVERS_TEST_START"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		all, _ := All(context.Background(), Wanted{Kind: PostgreSQL}, Wanted{Kind: Redis})
		fmt.Println("started", all[0].Err, all[1].Err)
		select {}
	}
	os.Exit(m.Run())
}

// processes counts what has the directory in its arguments, or runs in it.
func processes(t *testing.T, dir string) (n int) {
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, process := range all {
		command, _ := os.ReadFile(process + "/cmdline") // it may have ended
		where, _ := os.Readlink(process + "/cwd")
		if strings.Contains(string(command), dir) || strings.HasPrefix(where, dir) {
			n++
		}
	}
	return n
}

// Not even kill -9 of the program leaves servers behind.
func TestServersEndWithTheProgram(t *testing.T) {
	For(t, PostgreSQL) // or it is skipped
	dir, err := os.MkdirTemp("/var/tmp", "servers-test")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) // the servers may have other users
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	running := processes(t, dir)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	assert.Contains(t, said, "started <nil>")
	assert.Greater(t, running, 2)
	assert.Eventually(t, func() bool { return processes(t, dir) == 0 }, 30*time.Second, 10*time.Millisecond)
}
