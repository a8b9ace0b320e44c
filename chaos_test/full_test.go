//go:build linux

package chaos_test

import (
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/stores"
)

// asNobody continues the test as a user without root's rights, if it runs as root, and
// gives that user a directory.
func asNobody(t *testing.T, dir string) {
	const nobody = 65534
	if os.Geteuid() != 0 {
		return
	}
	require.NoError(t, os.Chown(dir, nobody, nobody))
	for _, above := range []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} { // of t.TempDir
		require.NoError(t, os.Chmod(above, 0o755))
	}
	require.NoError(t, syscall.Seteuid(nobody))
	t.Cleanup(func() { require.NoError(t, syscall.Seteuid(0)) })
}

// alone runs the calling test in a process of its own, because the test changes
// process-wide state, and reports whether this is that process.
func alone(t *testing.T) bool {
	const mark = "CHAOS_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	child.Env = append(os.Environ(), mark+"=yes")
	output, err := child.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "--- PASS: "+t.Name(), "%s", output)
	return false
}

// withRoom limits the size of files to so many bytes while f runs, as a full disk
// would.
func withRoom(t *testing.T, bytes uint64, f func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: was.Max}))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was)) }()
	f()
}

// A directory that cannot be written to: the grant is used up, then calls fail with the
// typed error and the advice, until the directory can be written again.
func TestF20_TornState_ReadOnly(t *testing.T) {
	if !alone(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o700))
	asNobody(t, dir)
	first := begins(t, dir)
	first.issue(t, 20)
	require.NoError(t, os.Chmod(dir, 0o500))
	defer func() { require.NoError(t, os.Chmod(dir, 0o700)) }()
	before := stateOf(t, dir)
	_, limit := first.keeper.Granted()
	first.clock.Advance(limit.Sub(first.clock.Wall()))
	_, err := first.next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
	assert.ErrorIs(t, err, fs.ErrPermission)
	assert.Equal(t, before, stateOf(t, dir))
	first.crash()
	_, err = begin(dir)
	assert.ErrorIs(t, err, fs.ErrPermission)

	require.NoError(t, os.Chmod(dir, 0o700))
	next := begins(t, dir)
	floor, _ := next.keeper.Granted()
	assert.False(t, floor.Before(limit))
	next.end(t)
}

// A full disk: the same, without the advice.
func TestF20_TornState_NoRoom(t *testing.T) {
	if !alone(t) {
		return
	}
	dir, first := used(t)
	before := stateOf(t, dir)
	_, limit := first.keeper.Granted()
	first.clock.Advance(limit.Sub(first.clock.Wall()))
	var calls, starts error
	withRoom(t, 100, func() {
		_, calls = first.next()
		first.crash()
		_, starts = begin(dir)
	})
	for _, err := range []error{calls, starts} {
		assert.ErrorIs(t, err, syscall.EFBIG)
	}
	assert.ErrorIs(t, calls, generator.ErrNotGranted)
	assert.Equal(t, before, stateOf(t, dir))
	next := begins(t, dir)
	floor, _ := next.keeper.Granted()
	assert.False(t, floor.Before(limit))
	next.end(t)
}

// TestF20_TornState_CrashAtEachByte kills a process when its extension has written so
// many bytes. The next process starts after the whole grant, even if its clock has gone
// back.
func TestF20_TornState_CrashAtEachByte(t *testing.T) {
	if !alone(t) {
		return
	}
	c := crashAtEachByte(t, 7, func(dir string) stores.Store {
		store, err := openFiles(dir)
		require.NoError(t, err)
		return store
	}, func(u *user, dir string, bytes int) {
		path := filepath.Join(dir, cellPath)
		was, err := os.ReadFile(path)
		require.NoError(t, err)
		_, limit := u.keeper.Granted()
		withRoom(t, uint64(bytes), func() { u.keeper.Poll(t.Context()) })
		if _, now := u.keeper.Granted(); !now.After(limit) { // a process that dies does not clean up
			require.NoError(t, os.WriteFile(path+".tmp", was[:min(len(was), bytes)], 0o600))
			is, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(was), string(is), "%d bytes", bytes)
		}
		u.crash()
	})
	assert.Equal(t, crashes{}, c)
}
