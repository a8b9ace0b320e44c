//go:build unix

package service

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What changes is put in use once two looks have found the same, also where the time and the size stay. A file that vanishes,
// hangs and comes back is found again; one that hangs has one reader, for which nothing waits long.
func TestFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	}
	f := NewFiles()
	f.patience = time.Minute
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
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	f.turn(t.Context(), true)
	assert.Contains(t, used[4], "it is a pipe: want a file")
	require.NoError(t, os.Remove(path))
	write("d")

	readers, answers := new(atomic.Int64), make(chan struct{})
	f.patience, f.file = 10*time.Millisecond, func(path string) ([]byte, os.FileMode, error) {
		readers.Add(1)
		<-answers
		return readFile(path)
	}
	began := time.Now()
	for range 100 {
		look()
	}
	assert.Less(t, time.Since(began), 10*time.Second, "nobody waits for a read that hangs")
	assert.Contains(t, used[5], "it was not read in time")
	assert.EqualValues(t, 1, readers.Load())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f.patience = time.Hour
	f.turn(ended, true)
	assert.Len(t, used, 6, "the end of the server does not wait either")
	close(answers)
	f.turn(t.Context(), true)
	assert.Equal(t, "d", used[6])
}
