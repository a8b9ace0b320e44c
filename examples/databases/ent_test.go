package databases_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tickflake/tickflake/examples/databases/ent/schema" // run again when it changes
	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
)

// orders is the package that uses ent. It imports the package orderdb, which ent generates
// from the schema and which is not in the repository.
const orders = "ent/testdata/orders"

// TestEnt generates the package orderdb, overlays it on the package orders, and runs
// the tests of that, on PostgreSQL and on MariaDB.
func TestEnt(t *testing.T) {
	if testing.Short() {
		t.Skip("-short generates no code")
	}
	t.Parallel()
	run := func(args ...string) string {
		return program.RunFor(t, program.Config{Path: program.FindFor(t, "go", "golang-go"), Args: args, Wait: 5 * time.Minute})
	}
	_, err := os.ReadDir(orders) // run again when it changes
	require.NoError(t, err)
	generated := t.TempDir()
	require.NoError(t, entc.Generate("./ent/schema", &gen.Config{Target: generated, Package: "github.com/tickflake/tickflake/examples/databases/" + orders + "/orderdb"}))

	overlay := map[string]map[string]string{"Replace": {}}
	at, err := filepath.Abs(filepath.Join(orders, "orderdb"))
	require.NoError(t, err)
	require.NoError(t, fs.WalkDir(os.DirFS(generated), ".", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".go" {
			overlay["Replace"][filepath.Join(at, name)] = filepath.Join(generated, name)
		}
		return err
	}))
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	file := filepath.Join(generated, "overlay.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))

	// Vet wants to enter the directories of packages, and those of orderdb do not exist.
	args := []string{"test", "-count=1", "-v", "-vet=off", "-overlay=" + file, "./" + orders}
	if fleet.Race {
		args = append(args, "-race")
	}
	out := run(args...)
	t.Log(out) // which tests were skipped, and why
	assert.Contains(t, out, "=== RUN   TestPostgreSQL\n")
	assert.Contains(t, out, "=== RUN   TestMariaDB\n")
}
