//go:build !simulate

package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tickflake/tickflake/generator" // what is simulated, so that a change runs the test anew
)

// simulate runs the tests of this package with the tag simulate.
func simulate(t *testing.T, args ...string) (string, error) {
	args = append([]string{"test", "-tags=simulate,invariants", "-timeout=30m", "-failfast", "-vet=off", "-ldflags=-s -w"}, args...)
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput()
	return string(out), err
}

func TestSimulation(t *testing.T) {
	// The files of that build are opened, so that a change of them runs the test anew.
	for _, dir := range []string{".", "../../word", "../../window", "../../../generator"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, file := range files {
			_, err := os.ReadFile(file)
			require.NoError(t, err)
		}
	}
	out, err := simulate(t)
	require.NoError(t, err, out)
}

// TestMutants breaks a line of the code at a time, and sees the simulation fail. All are built into one
// program, where a variable of the environment says which is broken.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("a build, and sixteen runs")
	}
	const elsewhere = "not granted|stale|ahead|order: |duplicate" // a slot of another tick than the ID tells
	mutants := []struct{ name, file, line, broken, caught string }{
		{"M6, a write without a comparison", "internal/window/span.go", "if s.free.CompareAndSwap(free, end) {",
			"if BROKEN {\ns.free.Store(end)\n}\nif BROKEN || s.free.CompareAndSwap(free, end) {", "duplicate"},
		{"additions that are open before the tick's first swap", "internal/window/span.go", "\t\tend := min(slot+n, (slot|s.sequence)+1)",
			"end := min(slot+n, (slot|s.sequence)+1)\nif BROKEN {\ns.steer(end)\n}", elsewhere},
		{"additions without a margin and a check", "internal/window/span.go", "slot < end || s.late(end, slot)", "slot < end || BROKEN || s.late(end, slot)", elsewhere},
		{"additions that a batch goes past", "internal/window/span.go", "if end >= to {", "if end >= to && !BROKEN {", "dropped"},
		{"a slot behind the end that was seen", "internal/window/span.go", "return slot < end+s.margin", "return slot < end+s.margin || BROKEN", elsewhere},
		{"a seal that believes the second reading", "internal/window/ticks.go", "s = w.current() // carries the change out: this one, or another that was first",
			"before := s\ns = w.current()\nif BROKEN && first {\ns = before\n}", "the end of a sealed window"},
		{"a change that does not seal", "internal/window/word.go", "return s.free.Or(sealed) &^ sealed",
			"if BROKEN {\nreturn s.free.Load() &^ sealed\n}\nreturn s.free.Or(sealed) &^ sealed", "duplicate|order: |after the end"},
		{"a channel that is taken after the look", "generator/call.go", "c.pause(g, changed, min(patience", "if BROKEN {\nchanged = g.window.Changed()\n}\nc.pause(g, changed, min(patience", "not told"},
		{"a number of a sealed window", "internal/window/numbers.go", "first = s.free.Load()\n",
			"first = s.free.Load()\nif BROKEN && first&sealed != 0 {\nreturn first, first&^sealed+n <= s.soft.Load() && s.free.CompareAndSwap(first, first+n)\n}\n", "order: |issued after"},
		{"a seen ID of another node is ignored", "generator/after.go", "if id&(1<<nodeBits-1) >= node {", "if low := id&(1<<nodeBits-1); low == node || !BROKEN && low > node {", "not above"},
		{"a wait for a seen ID moves the word", "generator/call.go", "err = c.wait(g, next,", "if BROKEN && c.apart {\nfront.Span.TakeAt(front.Slot, next, 1)\n}\nerr = c.wait(g, next,", "moved"},
		{"a copy is looked for before the slot is taken", "generator/generator.go", "if slot, ok := span.Add(end); ok && span.Original() {",
			"early := BROKEN && span.Original()\nif slot, ok := span.Add(end); ok && (early || span.Original()) {", "a copy returns"},
		{"streams forget copies", "generator/stream.go", "if s.span.Original() {", "if BROKEN || s.span.Original() {", "a copy returns"},
		{"a batch forgets what it had before a copy", "generator/generator.go", "filled = 0 // the original", "if !BROKEN {\nfilled = 0\n} // the original", "a copy returns"},
		{"a drift that counts twice", "monoclock/clock.go", "c.moved.CaughtUp.CompareAndSwap(before, before+int64(drift))",
			"if BROKEN {\nc.moved.CaughtUp.Add(int64(drift))\nreturn\n}\nc.moved.CaughtUp.CompareAndSwap(before, before+int64(drift))", "a reading of"},
	}
	dir, replaced, texts := t.TempDir(), map[string]string{}, map[string]string{}
	for i, m := range mutants {
		file, err := filepath.Abs(filepath.Join("../../..", m.file))
		require.NoError(t, err)
		if texts[file] == "" {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			texts[file] = string(text)
			in := filepath.Dir(file)
			texts[filepath.Join(in, "broken.go")] = "package " + filepath.Base(in) + "\n\nimport \"os\"\n\nvar broken = os.Getenv(\"BROKEN\")\n"
		}
		require.Equal(t, 1, strings.Count(texts[file], m.line), m.name)
		texts[file] = strings.Replace(texts[file], m.line, strings.ReplaceAll(m.broken, "BROKEN", fmt.Sprintf("(broken == %q)", fmt.Sprint(i))), 1)
	}
	for file, text := range texts {
		replaced[file] = filepath.Join(dir, fmt.Sprint(len(replaced), ".go"))
		require.NoError(t, os.WriteFile(replaced[file], []byte(text), 0o600))
	}
	files, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	program, overlay := filepath.Join(dir, "program"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, files, 0o600))
	out, err := simulate(t, "-overlay="+overlay, "-c", "-o", program)
	require.NoError(t, err, out)
	run := func(broken, seeds string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, "-test.failfast")
		cmd.Env = append(os.Environ(), "BROKEN="+broken, "SEEDS="+seeds)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err = run("", "500")
	require.NoError(t, err, "none is broken: %s", out)
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			out, err := run(fmt.Sprint(i), "500")
			if err == nil { // of the rarest, one of 1,400 runs of a generator fails
				out, err = run(fmt.Sprint(i), "4000")
			}
			require.Error(t, err)
			assert.Regexp(t, m.caught, out)
		})
	}
}
