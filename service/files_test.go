//go:build unix

package service

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What changes is put in use once two looks have found the same, also where the time and the size stay; a file that vanishes,
// hangs and comes back is found again; and one that hangs has few readers, for which nothing waits long, and of which none keeps
// a file from being read that has come in its place.
func TestFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path+".new", time.Unix(1, 0), time.Unix(1, 0)))
		require.NoError(t, os.Rename(path+".new", path))
	}
	f := NewFiles()
	f.patience, f.again = time.Minute, time.Hour
	var used []string
	write("a")
	f.Add(t.Context(), func(read ReadFile) func() {
		text, _, err := read(path)
		return func() {
			if used = append(used, string(text)); err != nil {
				used[len(used)-1] = err.Error()
			}
		}
	})()
	look := func() { f.turn(t.Context(), false) }
	look()
	write("b")
	look()
	write("c")
	look()
	assert.Equal(t, []string{"a"}, used, "it still changes")
	look()
	look()
	assert.Equal(t, []string{"a", "c"}, used)
	require.NoError(t, os.Chmod(path, 0o644))
	look()
	look()
	assert.Equal(t, []string{"a", "c", "c"}, used)
	require.NoError(t, os.Remove(path))
	look()
	look()
	assert.Contains(t, used[3], "no such file")
	f.patience = 100 * time.Millisecond
	hang(t, path)
	began := time.Now()
	for range 100 {
		look()
	}
	assert.Less(t, time.Since(began), 10*time.Second, "nobody waits for a read that hangs")
	assert.Contains(t, used[4], "it was not read in time")
	assert.Len(t, f.reads, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f.patience = time.Hour
	f.turn(ended, true)
	assert.Len(t, used, 5, "the end of the server does not wait either")
	f.patience = time.Minute
	release(t, path)
	require.NoError(t, os.Remove(path))
	write("d")
	for range 1000 { // the reader that hung may have to end
		if look(); strings.Join(used[4:], " ") != used[4] {
			break
		}
	}
	assert.Equal(t, "d", used[len(used)-1])

	require.NoError(t, os.Remove(path))
	hang(t, path)
	f.patience = 100 * time.Millisecond
	look()
	require.NoError(t, os.Rename(path, path+".hangs"))
	write("e")
	f.patience = time.Minute
	f.reads[path].began = f.reads[path].began.Add(-2 * time.Hour)
	f.turn(t.Context(), true)
	assert.Equal(t, "e", used[len(used)-1], "the first reader hangs still")
	assert.Empty(t, f.reads)
	release(t, path+".hangs")
}

// hang makes a file whose readers hang until release.
func hang(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }

func release(t *testing.T, path string) {
	out, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}
