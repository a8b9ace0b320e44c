//go:build !simulate

package simulation

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/tickflake/tickflake/generator" // what is simulated, so that a change runs the test anew
)

// TestSimulation runs the tests of this package with the tag simulate.
func TestSimulation(t *testing.T) {
	// The files of that build are opened, so that a change of them runs the test anew.
	for _, dir := range []string{".", "../word", "../../generator"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			_, err := os.ReadFile(file)
			require.NoError(t, err)
		}
	}
	args := []string{"test", "-tags=simulate", "-timeout=0"}
	if raceEnabled {
		args = append(args, "-race")
	}
	if testing.Short() {
		args = append(args, "-short")
	}
	if testing.Verbose() {
		args = append(args, "-v")
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}
