package directory_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
)

func TestOpenMakesTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "state")
	for range 2 {
		s, err := directory.Open(t.Context(), path)
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
	s, err := directory.Open(t.Context(), path)
	require.NoError(t, err)
	_, err = swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, []byte("value"))
	require.NoError(t, err)
	unlock, err := s.TryLock(t.Context(), "node/0000007")
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
	assert.Equal(t, []string{"node+0000007.cell", "node+0000007.hold", "node+0000007.swap"}, names)
}

// A relative path stays the same directory wherever the process goes.
func TestOpenRelativePath(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	s, err := directory.Open(t.Context(), "state")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	_, err = swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, []byte("value"))
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(home, "state", "node+0000007.cell"))
}

func TestOpenRefuses(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	cases := map[string]string{
		"":                            "has no name",
		file:                          "is not a directory",
		filepath.Join(file, "state"):  "cannot be looked at",
		filepath.Join(root, "a\x00b"): "control character",
		filepath.Join(root, strings.Repeat("too long", 1000)): "cannot be looked at",
	}
	if runtime.GOOS != "windows" {
		for mode, text := range map[os.FileMode]string{0o770: "has the mode 0770", 0o707: "has the mode 0707", 0o1777: "has the mode 0777", 0o720: "has the mode 0720"} {
			dir := filepath.Join(root, text)
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chmod(dir, mode&0o777))
			cases[dir] = text
		}
	}
	for path, want := range cases {
		s, err := directory.Open(t.Context(), path)
		assert.Nil(t, s, path)
		assert.ErrorIs(t, err, directory.ErrUnfit, path)
		assert.ErrorContains(t, err, want)
		assert.True(t, path == "" || strings.Count(err.Error(), path) <= 1, "%v", err)
	}
	// Others may look.
	open := filepath.Join(root, "open")
	require.NoError(t, os.Mkdir(open, 0o755))
	_, err := directory.Open(t.Context(), open)
	assert.NoError(t, err)
}

func TestRemovedDirectory(t *testing.T) {
	s, err := directory.Open(t.Context(), filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	cell, err := swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, []byte("value"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(s.Path()))
	_, err = s.Read(t.Context(), "node/0000007")
	assert.ErrorIs(t, err, directory.ErrUnfit)
	errs := []error{err}
	_, err = s.List(t.Context(), "", "\x7f", 1<<30)
	errs = append(errs, err)
	_, err = s.TryLock(t.Context(), "node/0000007")
	assert.ErrorContains(t, err, "was the directory removed while it was in use?")
	errs = append(errs, err)
	for _, old := range []stores.Cell{cell, {Key: "node/0000007"}} {
		_, err = swap(t.Context(), s, old, []byte("new"))
		assert.NotErrorIs(t, err, stores.ErrConflict)
		errs = append(errs, err)
	}
	for _, err := range errs {
		assert.ErrorIs(t, err, os.ErrNotExist)
		assert.Equal(t, 1, strings.Count(err.Error(), s.Path()), "%v", err)
	}
	assert.NoDirExists(t, s.Path())
}

// A file of one cell that cannot be used is an error for this cell alone.
func TestUnusableFiles(t *testing.T) {
	for _, kind := range []string{".cell", ".swap", ".hold", ".cell.tmp"} {
		t.Run(kind, func(t *testing.T) {
			s, err := directory.Open(t.Context(), filepath.Join(t.TempDir(), "state"))
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Join(s.Path(), "node+0000007"+kind, "full"), 0o700))
			s, err = directory.Open(t.Context(), s.Path())
			require.NoError(t, err)
			good, err := swap(t.Context(), s, stores.Cell{Key: "node/0000008"}, []byte("good"))
			require.NoError(t, err)

			_, err = s.Read(t.Context(), "node/0000007")
			is := func(err error, kinds ...string) {
				t.Helper()
				if !slices.Contains(kinds, kind) {
					assert.NoError(t, err)
					return
				}
				torn := new(stores.DamagedError)
				require.ErrorAs(t, err, &torn)
				assert.Equal(t, "node/0000007", torn.Key)
			}
			is(err, ".cell")
			cells, err := s.List(t.Context(), "", "\x7f", 9)
			is(err, ".cell")
			assert.Equal(t, []stores.Cell{good}, cells)
			_, err = swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, nil)
			is(err, ".cell", ".swap", ".cell.tmp")
			_, err = s.TryLock(t.Context(), "node/0000007")
			is(err, ".hold")
		})
	}
}

// Other files are no cells, and stay.
func TestOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(path, 0o700))
	others := []string{".cell", "+.cell", "A.cell", "a++b.cell", "x.cell~", "README", "X.cell.tmp", "000000７.cell", "a:b.cell"}
	for _, name := range others {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte("mine"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(path, "node+0000007.cell.tmp"), []byte("half"), 0o600))
	s, err := directory.Open(t.Context(), path)
	require.NoError(t, err)
	cells, err := s.List(t.Context(), "", "\xff", 9)
	require.NoError(t, err)
	assert.Empty(t, cells)
	assert.NoFileExists(t, filepath.Join(path, "node+0000007.cell.tmp"), "it is of a Swap that was interrupted")
	for _, name := range others {
		assert.FileExists(t, filepath.Join(path, name))
	}
}

func TestOpenByURL(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	for url, want := range map[string]string{
		"ids": "ids", "./i.d": "i.d", "file:i.d": "i.d", "file:i:d": "i:d", "file:x?namespace=Or-der_s": "x/Or-der_s", filepath.Join(root, "a"): "a",
		"file://" + root + "/b c?namespace=n": "b c/n", "file:" + root + "/b%20c": "b%20c",
	} {
		if runtime.GOOS == "windows" && strings.Contains(want, ":") {
			continue
		}
		s, err := stores.Open(t.Context(), url)
		require.NoError(t, err, url)
		assert.Equal(t, filepath.Join(root, filepath.FromSlash(want)), s.(*directory.Store).Path(), url)
		require.NoError(t, s.Close())
	}
	for url, want := range map[string]string{
		"file:": "names no directory", "file://host/ids": "names a host", "file://host": "names a host", "file:?namespace=n": "names no directory",
		"file:~/ids": "want the path in full", "file:ids?other=1": "its only option is namespace=NAME", "file:ids?namespace=a/b": "holds '/'",
	} {
		_, err := stores.Open(t.Context(), url)
		refused := new(stores.URLError)
		require.ErrorAs(t, err, &refused, url)
		assert.ErrorContains(t, err, want)
	}
	for _, url := range []string{"/dev/null/ids", "i\nds", "file:ids\r\n", "a\x7fb"} {
		_, err := stores.Open(t.Context(), url)
		assert.ErrorIs(t, err, directory.ErrUnfit)
		assert.NotContains(t, err.Error(), "\n")
	}
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
		assert.ErrorIs(t, err, directory.ErrUnfit, home)
	}
}

// swap is Swap from a cell to the next.
func swap(ctx context.Context, s stores.Store, old stores.Cell, value []byte) (stores.Cell, error) {
	version, err := s.Swap(ctx, old.Key, old.Version, value)
	if err != nil {
		return stores.Cell{}, err
	}
	return stores.Cell{Key: old.Key, Version: version, Value: value}, nil
}

func TestOpenAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	_, err := directory.Open(ctx, dir)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "directory "+dir+": open: context canceled")
}
