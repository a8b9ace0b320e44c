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
	"pgregory.net/rapid"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/rig/servertest"
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

// forms are the text forms of an ID, as each package writes and reads them.
var forms = []struct {
	name   string
	theirs func(bwmarrin.ID) string
	ours   func(snowflake.ID) string
	read   func(string) (bwmarrin.ID, error)
	parse  func(string) (snowflake.ID, error)
	strict bool // the original reads foreign digits, and panics for a negative ID
}{
	{"decimal", bwmarrin.ID.String, snowflake.ID.String, bwmarrin.ParseString, snowflake.ParseString, false},
	{"bytes", text(bwmarrin.ID.Bytes), text(snowflake.ID.Bytes), bytes(bwmarrin.ParseBytes), bytes(snowflake.ParseBytes), false},
	{"base 2", bwmarrin.ID.Base2, snowflake.ID.Base2, bwmarrin.ParseBase2, snowflake.ParseBase2, false},
	{"base 32", bwmarrin.ID.Base32, snowflake.ID.Base32, bytes(bwmarrin.ParseBase32), bytes(snowflake.ParseBase32), true},
	{"base 36", bwmarrin.ID.Base36, snowflake.ID.Base36, bwmarrin.ParseBase36, snowflake.ParseBase36, false},
	{"base 58", bwmarrin.ID.Base58, snowflake.ID.Base58, bytes(bwmarrin.ParseBase58), bytes(snowflake.ParseBase58), true},
	{"base 64", bwmarrin.ID.Base64, snowflake.ID.Base64, bwmarrin.ParseBase64, snowflake.ParseBase64, false},
	{"JSON", toJSON[bwmarrin.ID], toJSON[snowflake.ID],
		func(text string) (id bwmarrin.ID, err error) { id = 7; err = id.UnmarshalJSON([]byte(text)); return },
		func(text string) (id snowflake.ID, err error) { id = 7; err = id.UnmarshalJSON([]byte(text)); return }, false},
}

func text[ID any](write func(ID) []byte) func(ID) string {
	return func(id ID) string { return string(write(id)) }
}

func bytes[ID any](parse func([]byte) (ID, error)) func(string) (ID, error) {
	return func(text string) (ID, error) { return parse([]byte(text)) }
}

func toJSON[ID any](id ID) string {
	text, _ := json.Marshal(id) // an error makes an empty text
	return string(text)
}

// Both packages write any number in the same way, and read or refuse any text in the same way, except for
// what the adapter's package doc says.
func TestFormsAreTheOriginals(t *testing.T) {
	sameReading := func(t *rapid.T, text string) {
		for _, f := range forms {
			ours, ourErr := f.parse(text)
			if ourErr != nil && f.strict {
				continue
			}
			theirs, theirErr := f.read(text)
			assert.EqualValues(t, theirs, ours, "%s %q", f.name, text)
			assert.Equal(t, theirErr == nil, ourErr == nil, "%s %q: %v, %v", f.name, text, theirErr, ourErr)
		}
	}
	texts := rapid.OneOf(rapid.String(), rapid.StringMatching(`"?[+-]?[0-9]{0,21}"?`), rapid.StringMatching(`[01]{1,66}`),
		rapid.StringMatching(`[0-9a-zA-Z]{1,16}`), rapid.StringMatching(`[ybndrfg8ejkmcpqxot1uwisza345h769]{1,14}`),
		rapid.StringMatching(`[0-9A-Za-z+/]{1,28}={0,2}`))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		theirs, ours := bwmarrin.ID(n), snowflake.ID(n)
		assert.Equal(t, theirs.IntBytes(), ours.IntBytes())
		assert.Equal(t, []int64{theirs.Time(), theirs.Node(), theirs.Step()}, []int64{ours.Time(), ours.Node(), ours.Step()})
		for _, f := range forms {
			written := f.ours(ours)
			if !f.strict || n >= 0 {
				assert.Equal(t, f.theirs(theirs), written, f.name)
			}
			back, err := f.parse(written)
			require.NoError(t, err)
			assert.Equal(t, ours, back, f.name)
			sameReading(t, written)
		}
		sameReading(t, texts.Draw(t, "text"))
	})
}

const (
	original = "github.com/bwmarrin/snowflake"
	adapter  = "github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
)

// run runs a command in dir and returns what it has printed. With -short it skips the test.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short runs no command")
	}
	path := servertest.Find(t, name, name)
	return servertest.Run(t, servertest.Config{Path: path, Dir: dir, Args: args, Wait: 5 * time.Minute})
}

// The adapter passes the tests that the original package has for itself.
func TestOriginalsTestsPass(t *testing.T) {
	folder := func(pkg string) string { return strings.TrimSpace(run(t, ".", "go", "list", "-f", "{{.Dir}}", pkg)) }
	theirs := filepath.Join(folder(original), "snowflake_test.go")
	ours := filepath.Join(folder(adapter), "original_test.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {ours: theirs}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	tests, err := os.ReadFile(theirs)
	require.NoError(t, err)
	names := regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(tests), -1)
	require.Len(t, names, 15)
	out := run(t, ".", "go", "test", "-overlay", file, "-v", "-run", "^Test", adapter)
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
	want := run(t, dir, "go", "run", ".")
	require.Contains(t, want, "true 7 true true\n")

	guide, err := os.ReadFile("../../docs/migrate/bwmarrin.md")
	require.NoError(t, err)
	command := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(string(guide))
	require.NotNil(t, command)
	run(t, dir, "bash", "-euc", command[1])
	assert.Contains(t, run(t, dir, "go", "list", "-deps", "."), adapter+"\n")
	assert.Equal(t, want, run(t, dir, "go", "run", "."))
}
