//go:build unix

package directory

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

// Root may do everything, so what others may not do is tried as one of them, in a
// process of its own.
func TestAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		asUser(t, t.TempDir())
		return
	}
	nobody, err := user.Lookup("nobody")
	require.NoError(t, err)
	uid, err := strconv.Atoi(nobody.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(nobody.Gid)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "tf") // others cannot enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chown(dir, uid, gid))
	self, err := os.Executable()
	require.NoError(t, err)
	binary, err := os.ReadFile(self)
	require.NoError(t, err)
	reachable := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(reachable, binary, 0o755))
	cmd := exec.Command(reachable, "-test.run=^TestAsAnotherUser$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "--- PASS: TestAsAnotherUser")

	// And the other way round: root does not take what is another's.
	_, err = openPath(t.Context(), dir)
	require.ErrorIs(t, err, ErrUnfit)
	assert.ErrorContains(t, err, "belongs to user ")
	assert.ErrorContains(t, err, "and this process runs as user 0")
}

func asUser(t *testing.T, root string) {
	for path, want := range map[string]string{"/": "belongs to user 0", "/none-of-ours/state": "cannot be made"} {
		_, err := openPath(t.Context(), path)
		require.ErrorIs(t, err, ErrUnfit)
		assert.ErrorContains(t, err, want)
	}
	s := opened(t, filepath.Join(root, "state"), nil)
	cell := written(t, s, stores.Cell{Key: key}, "value")
	hold := s.file(key, holdFile)
	chmod := func(path string, mode os.FileMode) { require.NoError(t, os.Chmod(path, mode)) }
	chmod(s.path, 0o500)
	t.Cleanup(func() { _ = os.Chmod(s.path, 0o700) })
	s = opened(t, s.path, nil) // reading is allowed
	for op, err := range uses(t, s) {
		if op == "read" || op == "list" {
			assert.NoError(t, err)
			continue
		}
		assert.Equal(t, op != "swap" && op != "late swap", errors.Is(err, os.ErrPermission), "%s: %v", op, err) // its lock file is there
		assert.Equal(t, op == "lock", errors.Is(err, stores.Permanent), "%s: %v", op, err)
	}
	_, err := swap(t.Context(), s, cell, "new")
	assert.ErrorIs(t, err, os.ErrPermission)
	_, err = s.Swap(t.Context(), "node/0000008", 0, nil)
	assert.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "it must be readable and writable for the user that this process runs as")
	assert.Equal(t, stores.Permanent, stores.KindOf(err))

	chmod(s.path, 0o700)
	require.NoError(t, os.WriteFile(hold, nil, 0o400))
	_, err = s.lockCell(t.Context(), key)
	assert.ErrorIs(t, err, stores.ErrDamaged)
	assert.ErrorIs(t, err, stores.Permanent, "the lock, and not the cell")
	is, err := s.Read(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, cell, is)

	chmod(s.file(key, cellFile), 0)
	for op, err := range uses(t, s) {
		assert.ErrorIs(t, err, stores.ErrDamaged, op)
		assert.ErrorIs(t, err, os.ErrPermission, op)
	}
}
