//go:build unix

package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// people writes a CSV file of n rows, with what CSV has to quote.
func people(t *testing.T, path string, n int) {
	t.Helper()
	var text strings.Builder
	text.WriteString("name,city\n")
	for i := range n {
		fmt.Fprintf(&text, "\"user, \"\"%d\"\"\",Bonn\n", i)
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
}

// imported reads what was written, and checks that it is all there, with IDs that
// ascend from after on. It returns the last of them.
func imported(t *testing.T, path string, n int, after snowflake.ID) snowflake.ID {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // it was only read
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, n+1)
	require.Equal(t, []string{"id", "name", "city"}, rows[0])
	for i, row := range rows[1:] {
		require.Equal(t, []string{fmt.Sprintf(`user, "%d"`, i), "Bonn"}, row[1:])
		id, err := snowflake.Parse(row[0])
		require.NoError(t, err)
		require.Greater(t, id, after)
		after = id
	}
	return after
}

func released(t *testing.T, dir string) {
	t.Helper()
	store, err := stores.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { assert.NoError(t, store.Close()) }()
	holdings, err := lease.Inspect(t.Context(), store)
	require.NoError(t, err)
	require.Len(t, holdings, 1)
	assert.Equal(t, lease.Released, holdings[0].State)
}

func TestMain(m *testing.M) { exampletest.Main(m) }

func TestImport(t *testing.T) {
	path, dir := exampletest.Build(t, "./bulkimport"), t.TempDir()
	in, out, state := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv"), filepath.Join(dir, "state")
	last := snowflake.ID(0)
	for _, n := range []int{1, 20000, 0, batch, batch + 1} {
		people(t, in, n)
		p := exampletest.Start(t, path, "--in", in, "--out", out, "--state", state)
		require.Equal(t, 0, p.Wait())
		require.Regexp(t, fmt.Sprintf(`^%d rows in .* rows/s; of it .* ns per ID\n$`, n), p.Stdout())
		last = imported(t, out, n, last)
		released(t, state)
		require.NoError(t, os.Remove(out))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2)
}

// What the output's name already names stays as it is: a file, a link, wherever it leads,
// and a pipe, as a device would.
func TestNothingIsReplaced(t *testing.T) {
	path, dir := exampletest.Build(t, "./bulkimport"), t.TempDir()
	in, state := filepath.Join(dir, "in.csv"), filepath.Join(dir, "state")
	people(t, in, 3)
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	link, dangling := filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), dangling))
	for _, out := range []string{file, pipe, link, dangling, in} {
		before, err := os.Lstat(out)
		require.NoError(t, err)
		p := exampletest.Start(t, path, "--in", in, "--out", out, "--state", state)
		assert.Equal(t, 1, p.Wait(), out)
		assert.Contains(t, p.Stderr(), "exists", out)
		after, err := os.Lstat(out)
		require.NoError(t, err)
		assert.True(t, os.SameFile(before, after), out)
		assert.Equal(t, before.Mode(), after.Mode(), out)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(text))
	assert.NoDirExists(t, state, "it fails before it takes a node number")
}

// An output that appears while the import runs stays, too, and one that is whole has the
// mode of any new file.
func TestOutputAppears(t *testing.T) {
	path, dir := exampletest.Build(t, "./bulkimport"), t.TempDir()
	in, out, state := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv"), filepath.Join(dir, "state")
	require.NoError(t, syscall.Mkfifo(in, 0o600))
	for _, meanwhile := range []bool{true, false} {
		p := exampletest.Start(t, path, "--in", in, "--out", out, "--state", state)
		pipe, err := os.OpenFile(in, os.O_WRONLY, 0) // returns when the program has opened it
		require.NoError(t, err)
		if meanwhile {
			require.NoError(t, os.WriteFile(out, []byte("precious"), 0o600))
		}
		_, err = pipe.WriteString("name\nada\n")
		require.NoError(t, err)
		require.NoError(t, pipe.Close())
		if meanwhile {
			assert.Equal(t, 1, p.Wait())
			assert.Contains(t, p.Stderr(), "exists")
			text, err := os.ReadFile(out)
			require.NoError(t, err)
			assert.Equal(t, "precious", string(text))
			assert.NoFileExists(t, out+".part")
			require.NoError(t, os.Remove(out))
			continue
		}
		assert.Equal(t, 0, p.Wait())
		usual, err := os.Create(filepath.Join(dir, "usual"))
		require.NoError(t, err)
		require.NoError(t, usual.Close())
		want, err := os.Stat(usual.Name())
		require.NoError(t, err)
		got, err := os.Stat(out)
		require.NoError(t, err)
		assert.Equal(t, want.Mode(), got.Mode())
	}
}

// One that is killed leaves what it has written, and the next one says so.
func TestKilled(t *testing.T) {
	path, dir := exampletest.Build(t, "./bulkimport"), t.TempDir()
	in, out, state := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv"), filepath.Join(dir, "state")
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	p := exampletest.Start(t, path, "--in", pipe, "--out", out, "--state", state)
	rows, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer rows.Close() //nolint:errcheck // what it tells is of no interest
	exampletest.Until(t, func() error { _, err := os.Stat(out + ".part"); return err })
	p.Signal(os.Kill)
	require.Equal(t, -1, p.Wait())
	require.NoFileExists(t, out)

	people(t, in, 3)
	p = exampletest.Start(t, path, "--in", in, "--out", out, "--state", state)
	assert.Equal(t, 1, p.Wait())
	assert.Contains(t, p.Stderr(), "out.csv.part exists: another import writes it, or was killed")
	require.NoError(t, os.Remove(out+".part"))
	p = exampletest.Start(t, path, "--in", in, "--out", out, "--state", state)
	require.Equal(t, 0, p.Wait())
	imported(t, out, 3, 0)
}

// An interrupt ends an import that waits for more rows, and leaves nothing behind.
func TestInterrupt(t *testing.T) {
	path, dir := exampletest.Build(t, "./bulkimport"), t.TempDir()
	in, out, state := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv"), filepath.Join(dir, "state")
	require.NoError(t, syscall.Mkfifo(in, 0o600))
	p := exampletest.Start(t, path, "--in", in, "--out", out, "--state", state)
	pipe, err := os.OpenFile(in, os.O_WRONLY, 0) // returns when the program has opened it
	require.NoError(t, err)
	defer pipe.Close() //nolint:errcheck // what it tells is of no interest
	// More than fits into a pipe, so that most of it has been read.
	_, err = pipe.WriteString("name\n" + strings.Repeat("a user of one line or the other\n", 3*batch))
	require.NoError(t, err)

	p.Signal(os.Interrupt)
	assert.Equal(t, 1, p.Wait())
	assert.Regexp(t, `interrupted after (4096|8192|12288) rows: interrupt`, p.Stderr())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2, "only the input and the state are to be left")
	released(t, state)
}

func TestFailures(t *testing.T) {
	path, dir := exampletest.Build(t, "./bulkimport"), t.TempDir()
	in, out, state := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv"), filepath.Join(dir, "state")
	for text, says := range map[string]string{
		"":                      "want a header",
		"a,b\n1,2\n1,2,3\n":     "wrong number of fields",
		"a,b\n1,\"no end of it": `extraneous or missing`,
	} {
		require.NoError(t, os.WriteFile(in, []byte(text), 0o600))
		p := exampletest.Start(t, path, "--in", in, "--out", out, "--state", state)
		assert.Equal(t, 1, p.Wait(), "%q", text)
		assert.Contains(t, p.Stderr(), says, "%q", text)
		assert.NoFileExists(t, out)
		released(t, state)
	}
	p := exampletest.Start(t, path, "--in", in, "--out", out)
	assert.Equal(t, 2, p.Wait())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2)
}

// The commands of the README.
func TestREADME(t *testing.T) {
	out := exampletest.RunREADME(t, "A bulk import")
	assert.Regexp(t, `(?m)^1000000 rows in .*: \d+ rows/s; of it .* for IDs: [\d.]+ ns per ID$`, out)
	assert.Regexp(t, `(?m)^\d+,user 1,Bonn$`, out)
}
