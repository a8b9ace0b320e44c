package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/directory"
)

// TestMovePage runs every tickflake command of docs/move.md, in the order of the page. Each
// section begins with stores of its own: OLD has a node number that is held, and a sequence
// orders. A line that ends in "# refused" must fail.
func TestMovePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/move.md")
	require.NoError(t, err)
	t.Setenv("TICKFLAKE_STORE", "")
	command := regexp.MustCompile(`(?m)^ +tickflake (.*)$`)
	year := time.Now().AddDate(1, 0, 0).Format(time.RFC3339)
	ran, refused := 0, 0
	for section := range strings.SplitSeq(string(page), "\n## ") {
		t.Chdir(t.TempDir())
		store, err := directory.Open(t.Context(), "OLD")
		require.NoError(t, err)
		keeper, err := lease.Claim(t.Context(), store, lease.WithPolling())
		require.NoError(t, err)
		require.Zero(t, tickflake("sequence", "create", "orders", "--store", "OLD").code)
		require.Zero(t, tickflake("sequence", "next", "orders", "--count", "41", "--store", "OLD").code)
		require.Zero(t, tickflake("generate", "--store", "NEW-FLEET").code) // another fleet's
		for _, match := range command.FindAllStringSubmatch(section, -1) {
			line, fails := strings.CutSuffix(match[1], "# refused")
			line, file, redirected := strings.Cut(line, " > ")
			line = strings.NewReplacer("URL", "OLD", "DATE", year).Replace(line)
			if (strings.HasPrefix(line, "lease export") || strings.HasPrefix(line, "lease reserve")) && !strings.Contains(line, "--running") {
				require.NoError(t, keeper.Close()) // the page says: stop all processes
			}
			r := tickflake(strings.Fields(line)...)
			assert.Equal(t, fails, r.code != 0, "%s: %s", line, r.err)
			if redirected {
				require.NoError(t, os.WriteFile(strings.TrimSpace(file), []byte(r.out), 0o600))
			}
			ran++
			if fails {
				refused++
			}
		}
		_ = keeper.Close()
		require.NoError(t, store.Close())
	}
	assert.Equal(t, strings.Count(string(page), "    tickflake "), ran)
	assert.Greater(t, ran, 12)
	assert.Positive(t, refused)
}

// A signal ends an import that waits for its document.
func TestImportInterrupted(t *testing.T) {
	for _, command := range []string{"lease import - --store new", "sequence import - --store new"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var out, err strings.Builder
		code := run(ctx, strings.Fields(command), stuckReader{func() { cancel(cli.Interruption{Signal: syscall.SIGTERM}) }}, &out, &err)
		assert.Contains(t, err.String(), "terminated")
		assert.Equal(t, 143, code, command)
	}
}

// TestMove moves a fleet and a sequence by the command line.
func TestMove(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Zero(t, tickflake("generate", "--store", "old", "--count", "3").code)
	require.Zero(t, tickflake("sequence", "create", "orders", "--max", "100", "--store", "old").code)
	require.Zero(t, tickflake("sequence", "next", "orders", "--count", "7", "--store", "old").code)
	hold(t, "old", lease.WithOwner("the holder"))

	for _, to := range []string{"", "password=secret host=h", "user:secret@h", "user:secret?x@h", "redis://user:secret?x@h", "two\nlines"} {
		got := tickflake("lease", "export", "--store", "old", "--to", to, "--yes")
		assert.Equal(t, 2, got.code, to)
		assert.Contains(t, got.err, "--to: name of the new store")
		assert.NotContains(t, got.err, "secret")
	}
	got := tickflake("lease", "export", "--store", "old", "--to", "redis://user:secret@h/1?namespace=x", "--yes")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "1 node numbers are held, the first is")
	assert.Contains(t, got.err, "the holder")
	fleet := tickflake("lease", "export", "--store", "old", "--to", "redis://user:secret@h/1?namespace=x", "--yes", "--running")
	require.Zero(t, fleet.code, fleet.err)
	assert.NotContains(t, fleet.out, "secret")
	require.NoError(t, os.WriteFile("fleet.json", []byte(fleet.out), 0o600))
	again := tickflake("lease", "export", "--store", "old", "--to", "elsewhere", "--yes")
	assert.Equal(t, fleet.out, again.out, "the same floors")
	assert.Contains(t, tickflake("generate", "--store", "old").err, "the fleet was moved to redis://h/1, namespace x")

	orders := tickflake("sequence", "export", "orders", "--store", "old", "--to", "new", "--yes")
	require.Zero(t, orders.code, orders.err)
	assert.Contains(t, tickflake("sequence", "next", "orders", "--store", "old").err, "was moved to new")
	assert.Contains(t, tickflake("sequence", "list", "--store", "old").out, "moved")
	for range 2 {
		assert.Zero(t, tickflake("lease", "import", "fleet.json", "--store", "new").code)
		got := tickflakeReading(orders.out, "sequence", "import", "-", "--store", "new")
		assert.Contains(t, got.out, "the next number is 8", got.err)
	}
	assert.Equal(t, "8\n", tickflake("sequence", "next", "orders", "--store", "new").out)
	assert.Contains(t, tickflakeReading(orders.out, "sequence", "import", "-", "--store", "new").out, "the next number is 9", "it is never set back")

	for input, want := range map[string]string{
		fleet.out[:len(fleet.out)/2]: "is not the whole document",
		orders.out:                   "is not the whole document",
		fleet.out + fleet.out:        "is not the whole document",
		strings.Replace(fleet.out, `"format": 1`, `"format": 2, "more": 1`, 1):     "upgrade this process",
		strings.Replace(fleet.out, `"format": 1`, `"format": 1, "more": 1`, 1):     "is not the whole document",
		strings.Replace(fleet.out, `"nodes"`, `"Nodes"`, 1):                        "is not the whole document",
		strings.Replace(fleet.out, `"nodes"`, `"nodes": [], "nodes"`, 1):           "is not the whole document",
		regexp.MustCompile(`,\s*"until": "[^"]*"`).ReplaceAllString(fleet.out, ""): "is not the whole document",
	} {
		got := tickflakeReading(input, "lease", "import", "-", "--store", "other")
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.err, want)
	}
	assert.Zero(t, tickflakeReading(regexp.MustCompile(`\s`).ReplaceAllString(orders.out, " "), "sequence", "import", "-", "--store", "other").code)
}

// stuckReader is a terminal without input.
type stuckReader struct{ asked func() }

func (r stuckReader) Read([]byte) (int, error) {
	r.asked()
	select {}
}
