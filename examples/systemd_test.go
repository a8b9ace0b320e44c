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

	"github.com/tickflake/tickflake/integration/program"
)

// systemd accepts the unit, and rates the service as well confined. The program takes its command line.
func TestUnit(t *testing.T) {
	text := read(t, "examples/systemd/tickflake.service")
	dir := t.TempDir()
	file, copied := filepath.Join(dir, "clients.yaml"), filepath.Join(dir, "tickflake.service")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	path, err := program.Build("./cmd/tickflake", false)
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/tickflake (.*)$`).FindStringSubmatch(text)
	require.NotNil(t, line)
	args := strings.Fields(strings.ReplaceAll(line[1], "${CREDENTIALS_DIRECTORY}/clients.yaml", file))
	out, err := exec.Command(path, append(args, "--resp=off", "--http=off", "--grpc=off")...).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "there is nothing to serve", "all else is accepted")

	analyze := program.FindFor(t, "systemd-analyze", "systemd")
	require.NoError(t, os.WriteFile(copied, []byte(strings.ReplaceAll(text, "/usr/local/bin/tickflake", path)), 0o600)) // verify asks whether it is there
	out, err = exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out), "a setting that systemd does not know is a warning")
	out, err = exec.Command(analyze, "security", "--offline=true", "--threshold=20", copied).CombinedOutput()
	assert.NoError(t, err, "above 2.0 of 10:\n%s", out)
}
