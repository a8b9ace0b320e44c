//go:build unix

package directory_test

import (
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
	"github.com/tickflake/tickflake/stores/directory"
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
	reachable := filepath.Join(dir, "directory.test")
	require.NoError(t, os.WriteFile(reachable, binary, 0o755))
	cmd := exec.Command(reachable, "-test.run=^TestAsAnotherUser$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "--- PASS: TestAsAnotherUser")

	// And the other way round: root does not take what is another's.
	_, err = directory.Open(t.Context(), dir)
	require.ErrorIs(t, err, directory.ErrUnfit)
	assert.ErrorContains(t, err, "belongs to user ")
	assert.ErrorContains(t, err, "and this process runs as user 0")
}

func asUser(t *testing.T, root string) {
	_, err := directory.Open(t.Context(), "/")
	require.ErrorIs(t, err, directory.ErrUnfit)
	assert.ErrorContains(t, err, "belongs to user 0")
	_, err = directory.Open(t.Context(), "/none-of-ours/state")
	require.ErrorIs(t, err, directory.ErrUnfit)
	assert.ErrorContains(t, err, "cannot be made")

	s, err := directory.Open(t.Context(), filepath.Join(root, "state"))
	require.NoError(t, err)
	cell, err := swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, []byte("value"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(s.Path(), 0o500))
	t.Cleanup(func() { _ = os.Chmod(s.Path(), 0o700) })
	s, err = directory.Open(t.Context(), s.Path())
	require.NoError(t, err, "reading is allowed")
	is, err := s.Read(t.Context(), "node/0000007")
	require.NoError(t, err)
	assert.Equal(t, cell, is)
	_, err = swap(t.Context(), s, cell, []byte("new"))
	assert.ErrorIs(t, err, os.ErrPermission)
	_, err = swap(t.Context(), s, stores.Cell{Key: "node/0000008"}, []byte("new"))
	assert.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "it must be readable and writable for the user that this process runs as")
	assert.Equal(t, stores.Refused, stores.KindOf(err))
	_, err = s.TryLock(t.Context(), "node/0000007")
	assert.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorIs(t, err, stores.Refused)
	require.NoError(t, os.WriteFile(filepath.Join(root, "hold"), nil, 0o400))
	require.NoError(t, os.Chmod(s.Path(), 0o700))
	require.NoError(t, os.Rename(filepath.Join(root, "hold"), filepath.Join(s.Path(), "node+0000007.hold")))
	require.NoError(t, os.Chmod(s.Path(), 0o500))
	_, err = s.TryLock(t.Context(), "node/0000007")
	assert.ErrorIs(t, err, stores.ErrDamaged)
	assert.ErrorIs(t, err, stores.Refused, "the lock, and not the cell")
	is, err = s.Read(t.Context(), "node/0000007")
	require.NoError(t, err)
	assert.Equal(t, cell, is)

	require.NoError(t, os.Chmod(filepath.Join(s.Path(), "node+0000007.cell"), 0))
	_, err = s.Read(t.Context(), "node/0000007")
	assert.ErrorIs(t, err, stores.ErrDamaged)
	_, err = s.List(t.Context(), "", "\x7f", 1<<30)
	assert.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorIs(t, err, stores.ErrDamaged)
}
