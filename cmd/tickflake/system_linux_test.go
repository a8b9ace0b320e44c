package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/sim/disktest"
)

// served starts a server, and returns its process and the address of HTTP.
func served(t *testing.T, cmd *exec.Cmd) (p *process, http string) {
	t.Helper()
	p, err := launch(cmd, "Ctrl-C ends the server")
	require.NoError(t, err)
	t.Cleanup(p.kill)
	return p, regexp.MustCompile(`https?://[^/]+`).FindString(p.seen.String())
}

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
	p, _ := served(t, cmd)
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

var image = flag.Bool("image", false, "build the image of the Dockerfile, and run it under chroot")

// The image of the Dockerfile works: what it copies is put into an empty root directory, and
// its entry point serves there, as its user.
func TestImage(t *testing.T) {
	if !*image {
		t.Skip("it builds all packages again, without cgo, and needs root for chroot (-image)")
	}
	build, root := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	text, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	copied := regexp.MustCompile(`^--from=build (?:--chown=(\d+:\d+) )?(/\S+) (/\S+)$`)
	var stages []string
	image := make(map[string]string) // the last instruction of each name in the last stage
	env := os.Environ()
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case name == "FROM":
			stages = append(stages, value)
		case len(stages) == 1 && name == "ENV":
			env = append(env, strings.Fields(value)...)
		case len(stages) == 1 && name == "RUN": // in this tree
			cmd := exec.Command("sh", "-c", "mkdir -p "+build+"/out && "+strings.Replace(value, " /out/", " "+build+"/out/", 1))
			cmd.Dir, cmd.Env = "../..", env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", value, out)
		case len(stages) == 2 && name == "COPY":
			parts := copied.FindStringSubmatch(value)
			require.NotNil(t, parts, value)
			from, to := filepath.Join(build, parts[2]), filepath.Join(root, parts[3])
			if strings.HasPrefix(parts[2], "/etc/") { // of the image golang, which is a Debian
				from = parts[2]
			}
			out, err := exec.Command("sh", "-c", `mkdir -p $(dirname "$1") && cp -a -L "$0" "$1" && chown -R "${2:-0:0}" "$1"`, from, to, parts[1]).CombinedOutput()
			require.NoError(t, err, "%s: %s", value, out)
		case len(stages) == 2:
			image[name] += value + " "
		}
	}
	require.Equal(t, []string{"--platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build", "scratch"}, stages)
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	assert.Contains(t, string(mod), "\ngo 1.26", "the version of the image's Go")
	assert.Equal(t, `["/tickflake"] ["serve"] `, image["ENTRYPOINT"]+image["CMD"])
	var uid, gid uint32
	_, err = fmt.Sscanf(image["USER"], "%d:%d", &uid, &gid)
	require.NoError(t, err)
	require.NotZero(t, uid)
	settings := strings.Fields(regexp.MustCompile(`=:[689]380`).ReplaceAllString(image["ENV"], "=:0"))
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command("/tickflake", append([]string{"serve"}, args...)...)
		cmd.Dir, cmd.Env = "/", settings
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
		return cmd
	}
	refused, err := run().CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(refused), "--plaintext")

	p, address := served(t, run("--open", "--plaintext", "--log-format", "text"))
	answer, err := http.Get(address + "/readyz")
	require.NoError(t, err)
	defer answer.Body.Close()
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	code, _ := p.end()
	assert.Zero(t, code, &p.stderr)
	state := regexp.MustCompile(`XDG_STATE_HOME=(\S+)`).FindStringSubmatch(image["ENV"])
	require.NotNil(t, state)
	cells, err := filepath.Glob(filepath.Join(root, state[1], "tickflake", "*", "*"))
	require.NoError(t, err)
	assert.NotEmpty(t, cells, "the volume has the state")
}
