//go:build !simulate

package simulation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tickflake/tickflake/generator" // what is simulated, so that a change runs the test anew
	"github.com/tickflake/tickflake/internal/fleettest"
)

// simulate runs the tests of this package with the tag simulate.
func simulate(t *testing.T, args ...string) (string, error) {
	args = append([]string{"test", "-tags=simulate", "-timeout=30m", "-failfast", "-vet=off", "-ldflags=-s -w"}, args...)
	if fleettest.Race {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput()
	return string(out), err
}

func TestSimulation(t *testing.T) {
	// The files of that build are opened, so that a change of them runs the test anew.
	for _, dir := range []string{".", "../word", "../../generator"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			_, err := os.ReadFile(file)
			require.NoError(t, err)
		}
	}
	out, err := simulate(t)
	require.NoError(t, err, out)
}

// TestMutants breaks a line of the code at a time, and sees the simulation fail.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("eight builds")
	}
	for _, m := range []struct{ name, file, line, broken, caught string }{
		{"M6, a write without a comparison", "internal/window/ticks.go", "if s.free.CompareAndSwap(free, end) {", "if s.free.Store(end); true {", "duplicate"},
		{"a change that does not seal", "internal/window/span.go", "free := s.free.Or(sealed) &^ sealed", "free := s.free.Load() &^ sealed", "after the end"},
		{"a channel that is taken after the look", "generator/grant.go", "c.waitFor(g, changed, ", "c.waitFor(g, g.window.Changed(), ", "not told"},
		{"a number of a sealed window", "internal/window/numbers.go", "if free+n > s.soft.Load() {", "if free&^sealed+n > s.soft.Load() {", "order: "},
		{"a seen ID of another node is ignored", "generator/after.go", "if id&(1<<nodeBits-1) >= node {", "if id&(1<<nodeBits-1) == node {", "not above"},
		{"a node number that becomes smaller under a seen ID", "generator/after.go", "id > seen {", "id > 0 {", "not above"},
		{"a wait for a seen ID moves the word", "generator/after.go", "if err := c.wait(g, floor,", "if front.Span.TakeOver(front.Slot, floor); false {\n}\nif err := c.wait(g, floor,", "moved"},
		{"a drift that counts twice", "monoclock/clock.go", "c.caughtUp.CompareAndSwap(before, before+int64(drift))", "c.caughtUp.Add(int64(drift))", "a reading of"},
	} {
		t.Run(m.name, func(t *testing.T) {
			file, err := filepath.Abs(filepath.Join("../..", m.file))
			require.NoError(t, err)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), m.line))
			mutant, overlay := filepath.Join(t.TempDir(), "mutant.go"), filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(mutant, []byte(strings.Replace(string(text), m.line, m.broken, 1)), 0o600))
			files, err := json.Marshal(map[string]any{"Replace": map[string]string{file: mutant}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, files, 0o600))
			out, err := simulate(t, "-overlay="+overlay)
			require.Error(t, err)
			assert.Contains(t, out, m.caught)
		})
	}
}
