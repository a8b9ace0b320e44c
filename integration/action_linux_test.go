package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/integration/program"
)

// The steps of action/action.yml run as they stand, as GitHub runs them: on a package of this repository
// that keeps its promises, and on a program that does not.
func TestAction(t *testing.T) {
	bash := program.FindFor(t, "bash", "bash")
	program.FindFor(t, "qemu-system-x86_64", "qemu-system-x86")
	if testing.Short() || program.Race {
		t.Skip("it boots a machine")
	}
	dir, action := t.TempDir(), filepath.Join(program.Top(), "chaos_test", "action")
	newcomer := filepath.Join(dir, "newcomer")
	program.RunFor(t, program.Config{Path: program.FindFor(t, "go", "golang-go"), Dir: program.Top(), Wait: 5 * time.Minute,
		Args: []string{"run", "-exec", "cp", "./cmd/tickflake-chaos/kernel/newcomer", newcomer}, Env: []string{"CGO_ENABLED=0"}})
	file, err := os.ReadFile(filepath.Join(action, "action.yml"))
	require.NoError(t, err)
	text := strings.NewReplacer("${{ inputs.package }}", "./chaos_test", "${{ inputs.run }}", "F5/^reject$/raw", "${{ inputs.program }}", newcomer,
		"${{ inputs.faults }}", `"none\nstep-back-1s\n"`, "${{ inputs.flags }}", "", "${{ inputs.reports }}", dir).Replace(string(file))
	require.NotContains(t, text, "${{", "another input")
	var is struct {
		Runs struct {
			Steps []struct {
				Name, Shell, Run string
				Env              map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &is))
	require.Len(t, is.Runs.Steps, 3)
	for i, step := range is.Runs.Steps {
		require.Equal(t, "bash", step.Shell)
		env := []string{"GITHUB_ACTION_PATH=" + action}
		for name, value := range step.Env {
			env = append(env, name+"="+value)
		}
		out, err := program.Run(t.Context(), program.Config{Path: bash, Args: []string{"--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run},
			Dir: program.Top(), Env: env, Wait: 10 * time.Minute})
		if t.Log(step.Name, out, err); i < 2 {
			require.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, "IDs are duplicates: ", "the program issues IDs twice, and it is printed, too")
		}
	}
	for name, says := range map[string]string{"catalogue.xml": "<testsuite ", "kernel.txt": "✗ step-back-1s, program: "} {
		report, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(report), says), name)
	}
}
