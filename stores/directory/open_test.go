package directory_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/directory"
)

func TestOpenMakesTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "state")
	for range 2 {
		s, err := directory.Open(path)
		require.NoError(t, err)
		assert.Equal(t, path, s.Path())
	}
	for _, dir := range []string{path, filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm(), dir)
		}
	}
	s, err := directory.Open(path)
	require.NoError(t, err)
	_, err = s.Swap(t.Context(), lease.Cell{Node: 7}, []byte("value"))
	require.NoError(t, err)
	unlock, err := s.TryLock(t.Context(), 7)
	require.NoError(t, err)
	unlock()
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		info, err := entry.Info()
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			assert.Equal(t, os.FileMode(0o600), info.Mode(), entry.Name())
		}
	}
	assert.Equal(t, []string{"0000007.cell", "0000007.hold", "0000007.swap"}, names)
}

// A relative path stays the same directory wherever the process goes.
func TestOpenRelativePath(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	s, err := directory.Open("state")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	_, err = s.Swap(t.Context(), lease.Cell{Node: 7}, []byte("value"))
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(home, "state", "0000007.cell"))
}

func TestOpenRefuses(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	cases := map[string]string{
		"":                            "has no name",
		file:                          "is not a directory",
		filepath.Join(file, "state"):  "cannot be looked at",
		filepath.Join(root, "a\x00b"): "cannot be looked at",
		filepath.Join(root, strings.Repeat("too long", 1000)): "cannot be looked at",
	}
	if runtime.GOOS != "windows" {
		for mode, text := range map[os.FileMode]string{0o770: "its mode is 0770", 0o707: "its mode is 0707", 0o1777: "its mode is 0777", 0o720: "its mode is 0720"} {
			dir := filepath.Join(root, text)
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chmod(dir, mode&0o777))
			cases[dir] = text
		}
	}
	for path, want := range cases {
		s, err := directory.Open(path)
		assert.Nil(t, s, path)
		refused := new(directory.DirectoryError)
		if assert.ErrorAs(t, err, &refused, path) {
			assert.ErrorContains(t, err, want)
		}
	}
	// Others may look.
	open := filepath.Join(root, "open")
	require.NoError(t, os.Mkdir(open, 0o755))
	_, err := directory.Open(open)
	assert.NoError(t, err)
}

func TestRemovedDirectory(t *testing.T) {
	s, err := directory.Open(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	cell, err := s.Swap(t.Context(), lease.Cell{Node: 7}, []byte("value"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(s.Path()))
	_, err = s.Read(t.Context(), 7)
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorAs(t, err, new(*directory.DirectoryError))
	_, err = s.List(t.Context())
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = s.TryLock(t.Context(), 7)
	assert.ErrorContains(t, err, "was the directory removed while it was in use?")
	for _, old := range []lease.Cell{cell, {Node: 7}} {
		_, err = s.Swap(t.Context(), old, []byte("new"))
		assert.ErrorIs(t, err, os.ErrNotExist)
		assert.NotErrorIs(t, err, lease.ErrConflict)
	}
	assert.NoDirExists(t, s.Path())
}

func TestNotARegularFile(t *testing.T) {
	s, err := directory.Open(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(s.Path(), "0000007.cell"), 0o700))
	_, err = s.Read(t.Context(), 7)
	corrupt := new(directory.CorruptError)
	require.ErrorAs(t, err, &corrupt)
	assert.Equal(t, "it is no regular file", corrupt.Problem)
	_, err = s.Swap(t.Context(), lease.Cell{Node: 7}, nil)
	assert.ErrorAs(t, err, &corrupt)
}

// Other files are nobody's cells, and nobody's to remove.
func TestOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(path, 0o700))
	others := []string{"7.cell", "00000007.cell", "-000007.cell", "+000007.cell", "9999999.cell", "0000007.cell~", "README", "x.cell.tmp", "9999999.cell.tmp", "000000７.cell"}
	for _, name := range others {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte("mine"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(path, "0000007.cell.tmp"), []byte("half"), 0o600))
	s, err := directory.Open(path)
	require.NoError(t, err)
	cells, err := s.List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, cells)
	assert.NoFileExists(t, filepath.Join(path, "0000007.cell.tmp"), "it is of a Swap that was interrupted")
	for _, name := range others {
		assert.FileExists(t, filepath.Join(path, name))
	}
}

func TestBadArguments(t *testing.T) {
	s, err := directory.Open(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	for _, node := range []int64{-1, 1 << 22, -1 << 63, 1<<63 - 1} {
		want := fmt.Sprintf("node number %d: want 0 to 4194303", node)
		_, err := s.Read(t.Context(), node)
		assert.EqualError(t, err, want)
		_, err = s.Swap(t.Context(), lease.Cell{Node: node}, nil)
		assert.EqualError(t, err, want)
		_, err = s.TryLock(t.Context(), node)
		assert.EqualError(t, err, want)
	}
	_, err = s.Swap(t.Context(), lease.Cell{Node: 7}, make([]byte, lease.MaxValue+1))
	assert.EqualError(t, err, "value of 1025 bytes: want at most 1024")
}

func TestDefaultPath(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/of/mine")
	path, err := directory.DefaultPath()
	require.NoError(t, err)
	if runtime.GOOS != "linux" {
		t.Skipf("the rest is about Linux, and this is %s", runtime.GOOS)
	}
	assert.Equal(t, "/of/mine/tickflake", path)
	for _, ignored := range []string{"", "relative"} {
		t.Setenv("XDG_STATE_HOME", ignored)
		t.Setenv("HOME", "/home/me")
		path, err = directory.DefaultPath()
		require.NoError(t, err)
		assert.Equal(t, "/home/me/.local/state/tickflake", path)
	}
	for _, home := range []string{"", "relative"} {
		t.Setenv("HOME", home)
		_, err = directory.DefaultPath()
		assert.ErrorAs(t, err, new(*directory.DirectoryError), home)
	}
}

// Root may do everything, so what others may not do is tried as one of them, in a
// process of its own.
func TestAsAnotherUser(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("access to files is another matter on Windows")
	}
	if os.Geteuid() != 0 {
		asUser(t, t.TempDir())
		return
	}
	dir := servertest.Dir(t, "nobody")
	self := copyOfTest(t, dir)
	out := servertest.Run(t, servertest.Config{
		Path: self,
		Args: []string{"-test.run=^TestAsAnotherUser$", "-test.v"},
		Env:  []string{"TMPDIR=" + dir},
		Dir:  dir,
		User: "nobody",
	})
	assert.Contains(t, out, "--- PASS: TestAsAnotherUser")

	// And the other way round: root does not take what is another's.
	_, err := directory.Open(dir)
	refused := new(directory.DirectoryError)
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, refused.Problem, "belongs to user ")
	assert.Contains(t, refused.Problem, "and this process runs as user 0")
}

func asUser(t *testing.T, root string) {
	_, err := directory.Open("/")
	require.ErrorAs(t, err, new(*directory.DirectoryError))
	assert.ErrorContains(t, err, "belongs to user 0")
	_, err = directory.Open("/none-of-ours/state")
	require.ErrorAs(t, err, new(*directory.DirectoryError))
	assert.ErrorContains(t, err, "cannot be made")

	s, err := directory.Open(filepath.Join(root, "state"))
	require.NoError(t, err)
	cell, err := s.Swap(t.Context(), lease.Cell{Node: 7}, []byte("value"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(s.Path(), 0o500))
	t.Cleanup(func() { _ = os.Chmod(s.Path(), 0o700) })
	s, err = directory.Open(s.Path())
	require.NoError(t, err, "reading is allowed")
	is, err := s.Read(t.Context(), 7)
	require.NoError(t, err)
	assert.Equal(t, cell, is)
	_, err = s.Swap(t.Context(), cell, []byte("new"))
	assert.ErrorIs(t, err, os.ErrPermission)
	_, err = s.Swap(t.Context(), lease.Cell{Node: 8}, []byte("new"))
	assert.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "it must be readable and writable for the user that this process runs as")
	_, err = s.TryLock(t.Context(), 7)
	assert.ErrorIs(t, err, os.ErrPermission)
	is, err = s.Read(t.Context(), 7)
	require.NoError(t, err)
	assert.Equal(t, cell, is)

	require.NoError(t, os.Chmod(filepath.Join(s.Path(), "0000007.cell"), 0))
	_, err = s.Read(t.Context(), 7)
	assert.ErrorAs(t, err, new(*directory.FileError))
	_, err = s.List(t.Context())
	assert.True(t, errors.Is(err, os.ErrPermission), err)
}

func copyOfTest(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	binary, err := os.ReadFile(self)
	require.NoError(t, err)
	path := filepath.Join(dir, "directory.test")
	require.NoError(t, os.WriteFile(path, binary, 0o755))
	return path
}
