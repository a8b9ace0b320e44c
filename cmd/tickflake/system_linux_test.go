package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/sim/disktest"
)

// systemd is told when the server is ready and when it stops.
func TestServeSystemd(t *testing.T) {
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer told.Close()
	next := func() string {
		buffer := make([]byte, 100)
		require.NoError(t, told.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := told.Read(buffer)
		require.NoError(t, err)
		return string(buffer[:n])
	}
	cmd := exec.Command("tickflake", "serve", "--resp", "off", "--http", "127.0.0.1:0", "--grpc", "off")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "NOTIFY_SOCKET="+told.LocalAddr().String())
	p, err := launch(cmd, "Ctrl-C ends the server")
	require.NoError(t, err)
	t.Cleanup(p.kill)
	assert.Equal(t, "READY=1", next())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	code, _ := p.end()
	assert.Zero(t, code, &p.stderr)
	assert.Equal(t, "STOPPING=1", next())
}

// Every command gives up after --timeout while the disk hangs, and names the directory. The
// kernel keeps a process until its threads need a frozen disk no more, so the message counts.
func TestCommandsWhileADiskHangs(t *testing.T) {
	for kind, disk := range disktest.Disks {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir, hang := disk(t)
			path := filepath.Join(dir, "state")
			start := func(args, pattern string) *process {
				p, err := launch(exec.Command("sh", "-c", `echo started; tickflake `+args+` --store "$0" 2>&1`, path), pattern)
				require.NoError(t, err)
				t.Cleanup(p.kill)
				return p
			}
			require.NoError(t, exec.Command("tickflake", "sequence", "create", "orders", "--store", path).Run())
			back := hang()
			var hung []*process
			for _, args := range []string{
				"generate", "lease list", "lease list 0-3", "store check", "lease reserve 7 --until 2090-02-02",
				"sequence create invoices", "sequence next orders", "sequence list", "sequence list orders",
				"sequence set orders --next 100 --yes", "sequence delete orders --yes",
			} {
				hung = append(hung, start(args+" --timeout 500ms", "started"))
			}
			for _, p := range hung {
				said, err := p.out.ReadString('\n')
				require.NoError(t, err, p.cmd.Args)
				if strings.Contains(said, "(--timeout)") || kind == "silent FUSE" { // a frozen disk can be read
					assert.Contains(t, said, "gave up after 500ms (--timeout)", p.cmd.Args)
					assert.Contains(t, said, path)
				}
			}
			back()
			for _, p := range hung {
				p.end()
			}
			out, err := exec.Command("tickflake", "generate", "--store", path).CombinedOutput()
			assert.NoErrorf(t, err, "%s", out)
		})
	}
}
