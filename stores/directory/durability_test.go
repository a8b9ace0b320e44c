//go:build linux

package directory

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

// pretend makes the file system of every directory look like one of the number.
func pretend(t *testing.T, number uint32) {
	t.Helper()
	before := statfs
	statfs = func(string) (uint32, error) { return number, nil }
	t.Cleanup(func() { statfs = before })
}

func TestNetworkFileSystemIsRefused(t *testing.T) {
	for _, number := range []uint32{0x6969, 0x517b, 0xfe534d42, 0xff534d42, 0x01021997, 0x00c36400, 0x5346414f, 0x6b414653, 0x73757245, 0x0bd00bd0} {
		pretend(t, number)
		path := t.TempDir()
		_, err := Open(t.Context(), path)
		assert.ErrorIs(t, err, ErrUnfit)
		assert.ErrorContains(t, err, "a network file system")
		assert.Equal(t, stores.Refused, stores.KindOf(err))
		for _, url := range []string{path, "file:" + path, "file:" + path + "?namespace=n"} {
			_, err = stores.Open(t.Context(), url)
			assert.ErrorIs(t, err, stores.ErrForgets, url)
			assert.ErrorContains(t, err, path)
			assert.ErrorContains(t, err, "forgetful=allow in the URL accepts")
		}
		store, err := stores.Open(t.Context(), "file:"+path+"?forgetful=allow&namespace=n")
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(path, "n"), store.(*Store).Path())
		require.NoError(t, store.Close())
	}
}

// FUSE may be local and memory lasts as long as the host runs, so both are accepted.
func TestDoubtfulFileSystemIsAccepted(t *testing.T) {
	pretend(t, 0x65735546)
	s, err := Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	promises, err := stores.CheckDurability(t.Context(), s)
	require.NoError(t, err)
	assert.Empty(t, promises.Forgets)
	assert.Len(t, promises.Unknown, 1)

	pretend(t, 0x01021994)
	promises, err = s.Durability(t.Context())
	require.NoError(t, err)
	assert.Empty(t, promises.Forgets)
	assert.Len(t, promises.Risks, 1)

	const ext4 = 0xef53
	pretend(t, ext4)
	promises, err = s.Durability(t.Context())
	require.NoError(t, err)
	assert.Empty(t, promises)
}

// What is seen by one container only is said, and only then.
func TestPrivate(t *testing.T) {
	const ext4, overlayfs = 0xef53, 0x794c7630
	for _, tt := range []struct {
		system uint32
		pod    string
		want   string
	}{{ext4, "", ""}, {ext4, "10.0.0.1", "runs under Kubernetes"}, {overlayfs, "", "own layer"}, {overlayfs, "10.0.0.1", "own layer"}} {
		pretend(t, tt.system)
		t.Setenv("KUBERNETES_SERVICE_HOST", tt.pod)
		s, err := Open(t.Context(), t.TempDir())
		require.NoError(t, err)
		says := s.Private(t.Context())
		assert.Equal(t, tt.want == "", says == "", says)
		assert.Contains(t, says, tt.want)
	}
}

// The kernel is asked: procfs is none of the known kinds, and /dev/shm is in memory.
func TestFileSystem(t *testing.T) {
	name, kept, err := fileSystem("/proc")
	require.NoError(t, err)
	assert.Empty(t, name)
	assert.Equal(t, local, kept)
	_, _, err = fileSystem(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	if name, kept, err = fileSystem("/dev/shm"); errors.Is(err, os.ErrNotExist) {
		t.Skip("no /dev/shm here")
	}
	require.NoError(t, err)
	assert.Equal(t, "tmpfs", name)
	assert.Equal(t, memory, kept)
}
