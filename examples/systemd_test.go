//go:build unix

package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
)

const unit = "systemd/tickflake.service"

// systemd accepts the unit, and rates the service as well confined.
func TestUnit(t *testing.T) {
	analyze := program.FindFor(t, "systemd-analyze", "systemd")
	dir := t.TempDir()
	program := filepath.Join(dir, "tickflake") // verify asks whether it is there
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	copied := filepath.Join(dir, filepath.Base(unit))
	require.NoError(t, os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/tickflake", program)), 0o600))
	out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out), "a setting that systemd does not know is a warning")

	out, err = exec.Command(analyze, "security", "--offline=true", "--threshold=20", copied).CombinedOutput()
	assert.NoError(t, err, "above 2.0 of 10:\n%s", out)
}

// The command line is one that the program takes.
func TestCommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "serve.yaml")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/tickflake (.*)$`).FindStringSubmatch(string(text))
	require.NotNil(t, line)
	program, err := fleet.Build("./cmd/tickflake", false)
	require.NoError(t, err)
	args := strings.Fields(strings.ReplaceAll(line[1], "${CREDENTIALS_DIRECTORY}/serve.yaml", file))
	out, err := exec.Command(program, append(args, "--print-config")...).Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "\nlog-format: json\n")
	assert.Contains(t, string(out), "\ndrain-timeout: 10s\n")
}
