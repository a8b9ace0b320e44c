package migrate_test

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/lease"
	flake "github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

func TestBwmarrinLease(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx := context.Background()
	old, err := bwmarrin.NewNode(1)
	require.NoError(t, err)
	last := snowflake.ID(old.Generate())

	store, err := stores.Open(ctx, "ids") // or "etcd://…", "postgres://…"
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	keeper, err := lease.Claim(ctx, store, lease.WithLayout(snowflake.Layout()))
	if err != nil {
		log.Fatal(err)
	}
	node, err := snowflake.NewLeasedNode(keeper, generator.WithFloor(flake.ID(last)))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close() // releases the node number

	assert.Greater(t, node.Generate(), last)
}

const (
	original = "github.com/bwmarrin/snowflake"
	adapter  = "github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
)

// command runs a command in dir and returns what it has printed. With -short it skips the test.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short runs no command")
	}
	path := program.FindFor(t, name, name)
	return program.RunFor(t, program.Config{Path: path, Dir: dir, Args: args, Wait: 5 * time.Minute})
}

// The adapter passes the tests that the original package has for itself.
func TestOriginalsTestsPass(t *testing.T) {
	folders := strings.Fields(command(t, ".", "go", "list", "-f", "{{.Dir}}", original, adapter))
	theirs := filepath.Join(folders[0], "snowflake_test.go")
	ours := filepath.Join(folders[1], "original_test.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {ours: theirs}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	tests, err := os.ReadFile(theirs)
	require.NoError(t, err)
	names := regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(tests), -1)
	require.Len(t, names, 15)
	out := command(t, ".", "go", "test", "-overlay", file, "-v", "-run", "^Test", adapter)
	for _, name := range names {
		assert.Contains(t, out, "--- PASS: "+name[1]+" ")
	}
}

// The command of the guide changes a program over, which says the same afterwards.
func TestOneLineChange(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/program")))
	sum, err := os.ReadFile("../go.sum")
	require.NoError(t, err)
	mod := "module program\n\ngo 1.26.0\n\nrequire " + original + " v0.3.0\n\n" +
		"replace github.com/tickflake/tickflake => " + root + "\n"
	for name, text := range map[string]string{"go.sum": string(sum), "go.mod": mod} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Setenv("GOWORK", "off")
	want := command(t, dir, "go", "run", ".")
	require.Contains(t, want, "true 7 true true\n")

	guide, err := os.ReadFile("../../docs/migrate/bwmarrin.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(string(guide))
	require.NotNil(t, block)
	command(t, dir, "bash", "-euc", block[1])
	assert.Contains(t, command(t, dir, "go", "list", "-deps", "."), adapter+"\n")
	assert.Equal(t, want, command(t, dir, "go", "run", "."))
}
