package ent_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tickflake/tickflake/examples/databases/ent/schema" // run again when it changes
	"github.com/tickflake/tickflake/internal/rig"
)

// orders is the package that uses ent. It imports the package orderdb, which ent generates
// from the schema and which is not in the repository.
const orders = "testdata/orders"

// TestOrders generates the package orderdb, overlays it on the package orders, and runs
// the tests of that, on PostgreSQL and on MariaDB.
func TestOrders(t *testing.T) {
	if testing.Short() {
		t.Skip("-short generates no code")
	}
	_, err := os.ReadDir(orders) // run again when it changes
	require.NoError(t, err)
	generated := t.TempDir()
	run(t, "run", "./internal/generate", "./schema", generated,
		"github.com/tickflake/tickflake/examples/databases/ent/"+orders+"/orderdb")

	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	at, err := filepath.Abs(filepath.Join(orders, "orderdb"))
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(generated, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(generated, path)
		overlay.Replace[filepath.Join(at, name)] = path
		return err
	}))
	require.NotEmpty(t, overlay.Replace)
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))

	// Vet wants to enter the directories of packages, and those of orderdb do not exist.
	args := []string{"test", "-count=1", "-v", "-vet=off", "-overlay=" + file}
	if rig.Race {
		args = append(args, "-race")
	}
	out := run(t, append(args, "./"+orders)...)
	t.Log(out) // which tests were skipped, and why
	assert.Contains(t, out, "=== RUN   TestPostgreSQL\n")
	assert.Contains(t, out, "=== RUN   TestMariaDB\n")
}

// run runs the go command and returns what it prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, "go %v\n%s", args, out)
	return string(out)
}
