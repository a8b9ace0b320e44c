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
	holdings, err := lease.List(t.Context(), store)
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

// The commands of the README.
func TestREADME(t *testing.T) {
	out := exampletest.RunREADME(t, "A bulk import")
	assert.Regexp(t, `(?m)^1000000 rows in .*: \d+ rows/s; of it .* for IDs: [\d.]+ ns per ID$`, out)
	assert.Regexp(t, `(?m)^\d+,user 1,Bonn$`, out)
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
