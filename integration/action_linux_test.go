package integration

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
)

// The steps of action/action.yml run as they stand, as GitHub runs them: on a package of this repository
// that keeps its promises, and on a program that does not.
func TestAction(t *testing.T) {
	bash := program.FindFor(t, "bash", "bash")
	program.FindFor(t, "qemu-system-x86_64", "qemu-system-x86")
	if testing.Short() || fleet.Race {
		t.Skip("it boots a machine")
	}
	dir := t.TempDir()
	newcomer := filepath.Join(dir, "newcomer")
	program.RunFor(t, program.Config{Path: program.FindFor(t, "go", "golang-go"), Dir: fleet.Top(), Wait: 5 * time.Minute,
		Args: []string{"run", "-exec", "cp", "./cmd/tickflake-chaos/kernel/newcomer", newcomer}, Env: []string{"CGO_ENABLED=0"}})
	given := map[string]string{"package": "./chaos_test", "run": "F5/^reject$/raw", "program": newcomer, "faults": "none\nstep-back-1s\n", "reports": dir}

	text, err := os.ReadFile(filepath.Join(fleet.Top(), "chaos_test", "action", "action.yml"))
	require.NoError(t, err)
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Using string
			Steps []struct {
				Name, If, Shell, Run string
				Env                  map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &action))
	assert.Equal(t, "composite", action.Runs.Using)
	readme, err := os.ReadFile(filepath.Join(fleet.Top(), "chaos_test", "README.md"))
	require.NoError(t, err)
	_, snippet, _ := strings.Cut(string(readme), "```yaml\n")
	snippet, _, _ = strings.Cut(snippet, "```")
	var users []struct{ With map[string]string }
	require.NoError(t, yaml.Unmarshal([]byte(snippet), &users))
	for name := range users[len(users)-1].With {
		require.Contains(t, action.Inputs, name, "in the README")
	}

	input := regexp.MustCompile(`\$\{\{ inputs\.(\w+) \}\}`)
	var failed []string
	for _, step := range action.Runs.Steps {
		require.Equal(t, "bash", step.Shell)
		require.Regexp(t, `^inputs\.(package|program) != ''$`, step.If)
		cmd := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		cmd.Dir, cmd.Env = fleet.Top(), append(os.Environ(), "GITHUB_ACTION_PATH="+filepath.Join(fleet.Top(), "chaos_test", "action"))
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+input.ReplaceAllStringFunc(value, func(found string) string {
				name := input.FindStringSubmatch(found)[1]
				is, ok := action.Inputs[name]
				require.True(t, ok, "there is no input %s", name)
				if value, ok := given[name]; ok {
					return value
				}
				return is.Default
			}))
		}
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %v\n%s", step.Name, err, out)
		if err != nil {
			failed = append(failed, step.Name)
		}
	}
	assert.Equal(t, []string{"The faults on a real kernel"}, failed, "the program issues IDs twice")
	for name, failures := range map[string]bool{"catalogue.xml": false, "kernel.xml": true} {
		var report struct {
			Suites []struct {
				Cases []struct {
					Failure *struct {
						Message string `xml:"message,attr"`
					} `xml:"failure"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, xml.Unmarshal(text, &report))
		require.NotEmpty(t, report.Suites, name)
		last := report.Suites[len(report.Suites)-1]
		require.NotEmpty(t, last.Cases, name)
		if failure := last.Cases[0].Failure; failures && assert.NotNil(t, failure, name) {
			assert.Contains(t, failure.Message, "IDs are duplicates")
			assert.Len(t, report.Suites, 2, "a fault on each line")
		} else if !failures {
			assert.Nil(t, failure, name)
		}
	}
}
