//go:build unix

package program

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Main runs the tests of a package in TestMain, and removes what was built.
func Main(m *testing.M) {
	code := m.Run()
	_ = Clean()
	os.Exit(code)
}

// Race says whether the program looks for data races.
var Race = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

// built has the programs of this process.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// Clean removes what was built. A program that builds calls it at its end.
func Clean() error {
	built.Lock()
	defer built.Unlock()
	built.paths = nil
	return os.RemoveAll(built.dir) // "" is nothing
}

// Build builds the program of a package, named by its path from the top of the repository, such
// as "./cmd/tickflake", and returns the path of the program. It is built once; [Clean] removes
// it. If clock is set, its monoclock reads a wall clock that is stepped by a [stepped.Page]. It
// has the race detector if this program has it.
func Build(pkg string, clock bool) (string, error) {
	built.Lock()
	defer built.Unlock()
	key := fmt.Sprint(pkg, clock)
	if path := built.paths[key]; path != "" {
		return path, nil
	}
	if built.paths == nil {
		dir, err := os.MkdirTemp("", "tickflake-rig-*")
		if err != nil {
			return "", err
		}
		built.dir, built.paths = dir, map[string]string{}
	}
	path := filepath.Join(built.dir, fmt.Sprintf("%s-%d", filepath.Base(pkg), len(built.paths)))
	// "go run" keeps the linked program in the build cache, and "go build" links it each time.
	args := []string{"run", "-exec", "cp"}
	if Race {
		args = append(args, "-race")
	}
	if clock {
		overlay, err := steppedClock(built.dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, pkg, path)...)
	cmd.Dir = Top()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	built.paths[key] = path
	return path, nil
}

// Top returns the top directory of the repository.
func Top() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// steppedClock returns an overlay for go build in which package monoclock reads the clock of
// package stepped. That is the only way to step the clock of a real server: the wall clock is
// the machine's.
func steppedClock(dir string) (path string, err error) {
	monoclock := filepath.Join(Top(), "monoclock")
	replaced := map[string]string{}
	for name, change := range map[string]struct {
		from  string
		pairs [][2]string
	}{
		"stepped.go": {filepath.Join(Top(), "integration", "stepped", "stepped.go"), [][2]string{{"package stepped", "package monoclock"}}},
		"clock.go": {filepath.Join(monoclock, "clock.go"), [][2]string{
			{"c := &Clock{}", "c := &Clock{source: ofThisProcess}"},
			{"func (c *Clock) UnixNano() int64 {", "func (c *Clock) UnixNano() int64 {\n\tif rawWall {\n\t\treturn c.source.Wall().UnixNano()\n\t}"},
		}},
	} {
		text, err := os.ReadFile(change.from)
		if err != nil {
			return "", err
		}
		for _, pair := range change.pairs {
			if n := strings.Count(string(text), "\n"+pair[0]) + strings.Count(string(text), "\t"+pair[0]); n != 1 {
				return "", fmt.Errorf("%s has %q %d times, want once: correct the overlay", change.from, pair[0], n)
			}
			text = []byte(strings.Replace(string(text), pair[0], pair[1], 1))
		}
		replaced[filepath.Join(monoclock, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}
