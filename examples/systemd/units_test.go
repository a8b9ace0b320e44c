package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
)

const unit = "tickflake.service"

// lines returns the values of a setting in a unit.
func lines(t *testing.T, file, name string) (values []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, match := range regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		values = append(values, match[1])
	}
	return values
}

// systemd accepts the units, and rates the service as well confined.
func TestUnits(t *testing.T) {
	analyze := servertest.Find(t, "systemd-analyze", "systemd")
	dir := t.TempDir()
	files, err := filepath.Glob("tickflake*.s*")
	require.NoError(t, err)
	require.Len(t, files, 4)
	program := filepath.Join(dir, "tickflake") // verify asks whether it is there
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
	args := []string{"verify", "--man=no"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		copied := filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/tickflake", program)), 0o600))
		args = append(args, copied)
	}
	out, err := exec.Command(analyze, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out), "a setting that systemd does not know is a warning")

	out, err = exec.Command(analyze, "security", "--offline=true", "--threshold=20", filepath.Join(dir, unit)).CombinedOutput()
	assert.NoError(t, err, "above 2.0 of 10:\n%s", out)
}

// The sockets are those that the server takes, and belong to the service.
func TestSockets(t *testing.T) {
	for protocol, port := range map[string]string{"resp": "6380", "http": "8380", "grpc": "9380"} {
		file := "tickflake-" + protocol + ".socket"
		assert.Equal(t, []string{protocol}, lines(t, file, "FileDescriptorName"))
		assert.Equal(t, []string{"127.0.0.1:" + port}, lines(t, file, "ListenStream"))
		assert.Equal(t, []string{unit}, lines(t, file, "Service"))
	}
	assert.Equal(t, []string{"notify"}, lines(t, unit, "Type"))
}

// The command line is one that the program takes, and the service has the descriptors and the
// time that it needs.
func TestCommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "serve.yaml")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	start := lines(t, unit, "ExecStart")
	require.Len(t, start, 1)
	line, ok := strings.CutPrefix(start[0], "/usr/local/bin/tickflake ")
	require.True(t, ok)
	args := append([]string{"run", "github.com/tickflake/tickflake/cmd/tickflake"}, strings.Fields(strings.ReplaceAll(line, "${CREDENTIALS_DIRECTORY}/serve.yaml", file))...)
	out, err := exec.Command("go", append(args, "--print-config")...).Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "\nlog-format: json\n")
	assert.Contains(t, string(out), "\ndrain-timeout: 10s\n")
	assert.Equal(t, []string{"30"}, lines(t, unit, "TimeoutStopSec"), "above 10 s to drain and 5 s to release")
	connections := regexp.MustCompile(`\nmax-connections: (\d+)\n`).FindStringSubmatch(string(out))
	require.NotNil(t, connections)
	each, err := strconv.Atoi(connections[1])
	require.NoError(t, err)
	files, err := strconv.Atoi(lines(t, unit, "LimitNOFILE")[0])
	require.NoError(t, err)
	assert.Greater(t, files, 3*each)
}
