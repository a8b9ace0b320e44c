package main

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// instruction is one of a Dockerfile.
type instruction struct {
	name, value string
	stage       int
}

// dockerfile reads the Dockerfile of the repository, whose instructions take a line each.
func dockerfile(t *testing.T) []instruction {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	var all []instruction
	stage := -1
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(line, " ")
		require.Contains(t, []string{"FROM", "WORKDIR", "COPY", "ENV", "RUN", "VOLUME", "EXPOSE", "USER", "ENTRYPOINT", "CMD"}, name)
		require.False(t, strings.HasSuffix(value, `\`), line)
		if name == "FROM" {
			stage++
		}
		all = append(all, instruction{name, value, stage})
	}
	return all
}

// valuesOf returns the values of an instruction in a stage.
func valuesOf(all []instruction, stage int, name string) (values []string) {
	for _, i := range all {
		if i.stage == stage && i.name == name {
			values = append(values, i.value)
		}
	}
	return values
}

// copyOf is a COPY from the stage build, with its owner.
var copyOf = regexp.MustCompile(`^--from=build (?:--chown=(\d+):(\d+) )?(/\S+) (/\S+)$`)

var image = flag.Bool("image", false, "build the image of the Dockerfile, and run it under chroot")

// The image of the Dockerfile works: what it copies is put into an empty root directory, and
// its entry point serves there, as its user.
func TestImage(t *testing.T) {
	if !*image {
		t.Skip("it builds all packages again, without cgo, and needs root for chroot (-image)")
	}
	all := dockerfile(t)
	require.Equal(t, []string{"golang:1.26 AS build"}, valuesOf(all, 0, "FROM"))
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	assert.Contains(t, string(mod), "\ngo 1.26", "the version of the image's Go")
	require.Equal(t, []string{"scratch"}, valuesOf(all, 1, "FROM"))

	// The build, in this tree.
	build, root := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	env := os.Environ()
	for _, value := range valuesOf(all, 0, "ENV") {
		env = append(env, strings.Fields(value)...)
	}
	for _, line := range valuesOf(all, 0, "RUN") {
		cmd := exec.Command("/bin/sh", "-c", "mkdir -p "+build+"/out && "+strings.Replace(line, " /out/", " "+build+"/out/", 1))
		cmd.Dir, cmd.Env = "../..", env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
	}
	for _, line := range valuesOf(all, 1, "COPY") {
		parts := copyOf.FindStringSubmatch(line)
		require.NotNil(t, parts, line)
		from, to := filepath.Join(build, parts[3]), filepath.Join(root, parts[4])
		if strings.HasPrefix(parts[3], "/etc/") { // of the image golang, which is a Debian
			from = parts[3]
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		out, err := exec.Command("cp", "-a", "-L", from, to).CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
		if parts[1] != "" {
			require.NoError(t, exec.Command("chown", "-R", parts[1]+":"+parts[2], to).Run())
		}
	}

	user := strings.Split(strings.Join(valuesOf(all, 1, "USER"), ""), ":")
	require.Len(t, user, 2)
	uid, err := strconv.ParseUint(user[0], 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(user[1], 10, 32)
	require.NoError(t, err)
	require.NotZero(t, uid)
	assert.Equal(t, []string{`["/tickflake"]`}, valuesOf(all, 1, "ENTRYPOINT"))
	assert.Equal(t, []string{`["serve"]`}, valuesOf(all, 1, "CMD"))
	state := ""
	var settings []string
	for _, value := range valuesOf(all, 1, "ENV") {
		for _, setting := range strings.Fields(value) {
			for _, port := range []string{"6380", "8380", "9380"} {
				setting = strings.Replace(setting, "="+":"+port, "=:0", 1)
			}
			if path, ok := strings.CutPrefix(setting, "XDG_STATE_HOME="); ok {
				state = path
			}
			settings = append(settings, setting)
		}
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command("/tickflake", append([]string{"serve"}, args...)...)
		cmd.Dir, cmd.Env = "/", settings
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		return cmd
	}
	refused, err := run().CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(refused), "give --plaintext")

	s := startServing(t, run("--open", "--plaintext", "--log-format", "text"), state)
	res, err := http.Get(s.http() + "/readyz")
	require.NoError(t, err)
	res.Body.Close()
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, 0, s.end(), s.stderr)
	cells, err := filepath.Glob(filepath.Join(root, state, "tickflake", "*", "*"))
	require.NoError(t, err)
	assert.NotEmpty(t, cells, "the volume has the state")
}
